# SPDX-License-Identifier: GPL-2.0
"""mqfair qualify: a fixed plan of bench runs on one drive of this host, and a report about it.

loads    the jobs of the plan
drive    what sysfs says of the drive, without its serial number
figures  the tables and the sentences that the results give
command  from the command line to the files
"""
