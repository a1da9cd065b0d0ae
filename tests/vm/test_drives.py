# SPDX-License-Identifier: GPL-2.0
"""The rows of the table of devices that QEMU emulates: see table.py.

These drives have the time of the host, and so has this guest. With one processor it stands still as
a whole, with both tenants and the scheduler.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from guestlib import Disk, Guest, cases, read, slow, wait_until, write
from table import WAYS, Device, Maker, check_removal, check_share

# The drive is the limit, also while another program has the processor of the host.
IOPS = 100
_DRIVE = f"size=64M,queues=1,backing=null,iops={IOPS}"
guest = Guest(
    cpus=1,
    memory_mb=1024,
    nvme=(
        f"{_DRIVE},namespaces=2",
        f"{_DRIVE},controllers=2",
        f"{_DRIVE},bus=virtio-blk",
        f"{_DRIVE},bus=virtio-scsi",
    ),
    needs_module=True,
)


def named(number: int, pattern: str, file: str) -> Disk:
    """The disk of drive @number of the guest. Its name may change when it returns."""

    def found() -> list[str]:
        disks = []
        for path in Path("/sys/block").glob(pattern):
            with contextlib.suppress(OSError):
                if read(path / file) == f"lab{number}" and Path("/dev", path.name).exists():
                    disks.append(path.name)
        return disks

    wait_until(found, f"drive {number} is there")
    return Disk(found()[0])


def pci(path: Path) -> Path:
    """The PCI device that contains @path of sysfs."""
    return next(one for one in path.resolve().parents if (one / "remove").exists())


def leaving(path: Path) -> Callable[[], None]:
    """Removes the PCI device of @path."""
    device = pci(path)
    return lambda: write(device / "remove", 1)


@contextlib.contextmanager
def returning() -> Iterator[None]:
    """Removed PCI devices return after the block."""
    try:
        yield
    finally:
        write("/sys/bus/pci/rescan", 1)


@contextlib.contextmanager
def namespaces() -> Iterator[Device]:
    with returning():
        disks = [named(0, f"nvme*n{space}", "device/serial") for space in (1, 2)]
        yield Device({disk: [disk] for disk in disks}, [leaving(disks[0].sysfs)])


@contextlib.contextmanager
def controllers() -> Iterator[Device]:
    with returning():
        head = named(1, "nvme*n1", "device/serial")
        pattern = head.name.replace("n1", "c*n1")

        def paths() -> list[Path]:
            return sorted(Path("/sys/block").glob(pattern))

        wait_until(lambda: len(paths()) == 2, f"{head.name} has two paths")
        lows = [Disk(path.name) for path in paths()]
        yield Device({head: lows}, [leaving(low.sysfs) for low in lows])


@contextlib.contextmanager
def virtio(number: int, pattern: str, file: str) -> Iterator[Device]:
    with returning():
        disk = named(number, pattern, file)
        yield Device({disk: [disk]}, [leaving(disk.sysfs)])


KINDS: dict[str, Maker] = {
    "two namespaces": namespaces,
    "two controllers": controllers,
    "virtio-blk": lambda: virtio(2, "vd*", "serial"),
    "virtio-scsi": lambda: virtio(3, "sd*", "device/model"),
}


@slow
@cases(
    *((kind, way, "mqfq") for kind in KINDS for way in WAYS),
    *((kind, "randread", "hwabc") for kind in KINDS),
)
def test_the_share(kind: str, way: str, scheduler: str) -> None:
    check_share(KINDS[kind], way, scheduler)


@slow
@cases(*KINDS)
def test_removal_under_load(kind: str) -> None:
    check_removal(KINDS[kind])
