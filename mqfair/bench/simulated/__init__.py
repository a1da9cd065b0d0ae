# SPDX-License-Identifier: GPL-2.0
"""The library of mqfair sim: fio job files on the simulated host of sim/.

program.py    the program sim-run: built when it is first needed, and run
scene_file.py the other input: a scene, which is a description without a scheduler
options.py    from the options of a job file to the loads of sim-run
drive.py      from --device to the drive of sim-run
model.py      iocost's model of a drive
session.py    all runs of a bench
player.py     the place of the runs: this machine
cluster.py    another place: the workers of a Dask cluster; remote.py is sent to them
"""
