# SPDX-License-Identifier: GPL-2.0
"""The bpftrace scripts in a guest: two cgroups on a drive that both want whole."""

import re

import pytest
from conftest import ROOT, built_module, require

import lab

SCRIPTS = ROOT / "mqfair/bpftrace"
SECONDS = 6
# 4 slots of 16 ms: 250 requests a second, so that the processor is not the limit.
LOAD = """
set -e
mount -t tracefs tracefs /sys/kernel/tracing 2> /dev/null || :
modprobe null_blk nr_devices=1 irqmode=2 completion_nsec=16000000 hw_queue_depth=4 gb=1
echo mqfq > /sys/block/nullb0/queue/scheduler
echo +io > /sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/prod /sys/fs/cgroup/batch
echo default 900 > /sys/fs/cgroup/prod/io.mqfair.weight
for group in prod batch; do
	sh -c 'echo 0 > /sys/fs/cgroup/$0/cgroup.procs
		exec fio --name=$0 --filename=/dev/nullb0 --rw=randread --iodepth=16 \\
			--ioengine=libaio --direct=1 --time_based --runtime=900 > /dev/null' $group &
done
sleep 3
for script in latency waits; do
	echo "script $script"
	bpftrace -c '/bin/sleep %d' %s/$script.bt
done
"""


@pytest.fixture(scope="module", params=lab.KERNELS)
def said(request):
    """The output of each script on one kernel, by name."""
    require("bpftrace")
    module = built_module(request.param)
    spec = lab.GuestSpec(cpus=2, kernel=request.param, modules=(module,), timeout_s=550)
    result = lab.run(spec, ["/bin/sh", "-c", LOAD % (SECONDS, SCRIPTS)], stream=False)
    assert result.status == 0, result.trouble() or result.stdout + result.stderr
    parts = re.split(r"^script (\w+)\n", result.stdout, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_the_latencies_of_each_cgroup(said):
    text = said["latency"]
    named = re.findall(r"^cgroup (\d+) is \w+:/(\w+)$", text, re.M)
    numbers = {name: number for number, name in named}
    assert set(numbers) == {"prod", "batch"}
    for number in numbers.values():
        for part in ("wait_us", "drive_us"):
            assert re.search(rf"^@{part}\[\d+, \d+, {number}\]:", text, re.M)


def test_which_cgroup_waits_for_which(said):
    """prod has nine tenths of the drive. So batch waits for prod, and prod seldom for batch."""
    found = {}
    for line in said["waits"].splitlines():
        if waits := re.match(r"\w+:/(\w+) waited (-?\d+) ms", line):
            found[waits[1]] = {"ms": int(waits[2])}
            last = waits[1]
        elif part := re.match(r" +(\d+) percent for (?:\w+:/)?(?:the )?(\w+)$", line):
            found[last][part[2]] = int(part[1])
    assert set(found) == {"prod", "batch"}
    for parts in found.values():
        assert parts.pop("ms") > 0
        assert 95 <= sum(parts.values()) <= 100
    assert found["batch"]["prod"] > 60
    assert found["prod"].get("batch", 0) < 30
