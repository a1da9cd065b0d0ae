# SPDX-License-Identifier: GPL-2.0
"""Findings about a device: its scheduler, and the devices that it is stacked on."""

import contextlib
import re
from collections.abc import Iterator

from mqfair.check.finding import Finding, note, ok, problem, warn
from mqfair.check.rival import properties
from mqfair.machine import kmod
from mqfair.machine.blockdev import (
    Disk,
    Selector,
    above,
    active_word,
    below,
    device_slots,
    disks_below,
    find_device,
    is_indirect,
    loop_backing,
    lowest,
    multipath_paths,
)
from mqfair.machine.fs import Fs
from mqfair.text.errors import UsageError
from mqfair.tune.enable import AUTO_SLOTS, COST_LEAST, TAGS_PER_SLOT, slots_of

# RAID levels with writes issued by the array's own thread and not by the writer's cgroup.
RAID_WITH_PARITY = ("raid4", "raid5", "raid6")
NVME_TARGETS = "/sys/kernel/config/nvmet/subsystems"
LIO_STORES = "/sys/kernel/config/target/core"
# The device of a store of iblock, or the file of fileio, in the text of its file `info`.
_LIO_BACKING = re.compile(r"(?:UDEV PATH|File): (\S+)")


def device_findings(disk: Disk) -> Iterator[Finding]:
    if disk.partition:
        yield note(
            "partition",
            f"{disk.partition} is a partition: scheduler and weights are those of {disk.name}",
            f"{disk.path}/{disk.partition}/partition",
        )
    yield from _stacking(disk)
    yield from _copies(disk)
    for low in lowest(disk):
        yield from _disk_findings(low)
    yield note(
        "passthrough",
        "passthrough I/O (SG_IO, NVMe commands through io_uring or ioctl) is not scheduled",
        disk.path,
    )


def _copies(disk: Disk) -> Iterator[Finding]:
    """Two installations of the module, such as `make install` and DKMS."""
    files = kmod.copies(disk.fs)
    if len(files) > 1:
        chosen = kmod.file(disk.fs)
        others = [file for file in files if file != chosen]
        yield warn(
            "module",
            f"{len(files)} copies are installed: {' '.join(files)}",
            files[0].rpartition("/")[0],
            f"modprobe loads {chosen or 'one of them'}: remove {' '.join(others)}",
        )


def kernel_findings(fs: Fs) -> Iterator[Finding]:
    """A kernel on which the tests do not run. Its types may have known shapes all the same."""
    kernel = kmod.release(fs)
    if not kmod.is_tested(kernel):
        yield warn(
            "kernel",
            f"mqfair was never tested on Linux {kernel}, only on {', '.join(kmod.TESTED)}",
            kmod.RELEASE_FILE,
            "try it with data that you can lose, and watch the kernel log",
        )


def _stacking(disk: Disk) -> Iterator[Finding]:
    yield from _loop(disk)
    yield from _server(disk)
    lows = lowest(disk)
    if lows == [disk]:
        yield from _own_queue_over_others(disk)
        return
    names = " ".join(low.name for low in lows)
    yield note(
        "stacking",
        f"{disk.name} ({_kind(disk)}) has no queue of its own: weights act on {names}",
        f"{disk.path}/slaves" if disk.fs.names(f"{disk.path}/slaves") else disk.path,
    )
    yield from _attribution_lost(disk)
    yield from _spread(disk)


def _spread(disk: Disk) -> Iterator[Finding]:
    """Stacked drivers that choose one of several disks for a request without regard to its
    cgroup."""
    fs = disk.fs
    if (fs.read_if_any(f"{disk.path}/md/level") or "").strip() == "raid1":
        yield warn(
            "shares",
            f"{disk.name} is raid1: the reads of a cgroup may all wait at one copy, so weights hold"
            " for the reads of each copy and not for their sum",
            f"{disk.path}/md/level",
            f"echo writemostly > {disk.path}/md/dev-NAME/state for all copies but one",
        )
    policy = (fs.read_if_any(f"{disk.path}/device/iopolicy") or "").strip()
    paths = len(multipath_paths(disk))
    if paths > 1 and policy not in ("", "numa"):
        yield warn(
            "shares",
            f"{disk.name} chooses among {paths} paths by {policy}: the requests of a cgroup may all"
            " wait at one path, so weights hold on each path and not for their sum",
            f"{disk.path}/device/iopolicy",
            f"echo numa > {disk.path}/device/iopolicy",
        )


def _own_queue_over_others(disk: Disk) -> Iterator[Finding]:
    under = below(disk)
    if under:
        names = " ".join(low.name for low in under)
        yield note(
            "stacking",
            f"{disk.name} ({_kind(disk)}) has its own scheduler and bypasses those of {names}",
            f"{disk.path}/slaves",
        )


def _loop(disk: Disk) -> Iterator[Finding]:
    backing = loop_backing(disk)
    if backing is None:
        return
    file, under = backing
    name = under.name if under else "the disk that holds it"
    yield warn(
        "stacking",
        f"{disk.name} is a loop device over {file}: cgroups compete on {name}",
        f"{disk.path}/loop/backing_file",
        f"mqfair enable {under.name if under else 'DISK'}, and set the weights on that disk",
    )
    if (disk.fs.read_if_any(f"{disk.path}/loop/dio") or "").strip() == "0":
        yield warn(
            "attribution",
            f"{disk.name} buffers its file: writes are charged to the cgroup that owns the file",
            f"{disk.path}/loop/dio",
            f"losetup --direct-io=on /dev/{disk.name}",
        )


def _server(disk: Disk) -> Iterator[Finding]:
    if disk.name.startswith("ublkb"):
        yield note(
            "attribution",
            f"a process serves {disk.name}: on the disks below, its I/O is charged to the cgroup of"
            " that process. A scheduler of this disk sees the cgroups that use it",
            disk.path,
        )


def _targets(disk: Disk) -> Iterator[Finding]:
    """Targets that export @disk, or a device or a file on it."""
    for target, device, file in (*_nvme_targets(disk.fs), *_lio_stores(disk.fs)):
        with contextlib.suppress(UsageError):
            if device and disk.name in {low.name for low in _under(disk.fs, device)}:
                yield warn(
                    "attribution",
                    f"{target} exports {device}: its kernel threads issue the requests to"
                    f" {disk.name}, which are charged to the root",
                    file,
                    "mqfair enable on the initiators, where each tenant has its cgroup",
                )


def _nvme_targets(fs: Fs) -> Iterator[tuple[str, str, str]]:
    """Each namespace that nvmet exports: the target in words, its device, and the file with it."""
    for subsystem in fs.names(NVME_TARGETS):
        spaces = f"{NVME_TARGETS}/{subsystem}/namespaces"
        for space in fs.names(spaces):
            file = f"{spaces}/{space}/device_path"
            yield f"the NVMe target {subsystem}", (fs.read_if_any(file) or "").strip(), file


def _lio_stores(fs: Fs) -> Iterator[tuple[str, str, str]]:
    """The same for each store of LIO, which iSCSI, vhost-scsi and other fabrics export."""
    for adapter in fs.names(LIO_STORES):
        for store in fs.names(f"{LIO_STORES}/{adapter}"):
            file = f"{LIO_STORES}/{adapter}/{store}/info"
            backing = _LIO_BACKING.search(fs.read_if_any(file) or "")
            if backing:
                yield f"the LIO store {adapter}/{store}", backing[1], file


def _under(fs: Fs, device: str) -> list[Disk]:
    """The disks below a device, or below a file."""
    return disks_below(fs, device) if is_indirect(fs, device) else lowest(find_device(fs, device))


def _kind(disk: Disk) -> str:
    fs = disk.fs
    if fs.is_dir(f"{disk.path}/dm"):
        return "device-mapper"
    if fs.is_dir(f"{disk.path}/md"):
        return "md array"
    if fs.is_dir(f"{disk.path}/bcache"):
        return "bcache"
    return "NVMe multipath" if disk.name.startswith("nvme") else "bio-based"


def _attribution_lost(disk: Disk) -> Iterator[Finding]:
    """Stacked drivers that issue a cgroup's I/O from their own threads."""
    fs = disk.fs
    level = (fs.read_if_any(f"{disk.path}/md/level") or "").strip()
    if level in RAID_WITH_PARITY:
        # The kernel cuts the names of its threads.
        thread = f"{disk.name}_{level}"[:15]
        yield warn(
            "attribution",
            f"{disk.name} is {level}: its thread issues writes, which are charged to the root",
            f"{disk.path}/md/level",
            "use raid1 or raid10 where writes must be shared by weight, or give all writes of the"
            f" array one weight: pgrep -x {thread} > /sys/fs/cgroup/ARRAY/cgroup.procs",
        )
    if (fs.read_if_any(f"{disk.path}/dm/uuid") or "").startswith("CRYPT-"):
        yield warn(
            "attribution",
            f"{disk.name} is dm-crypt: unless it has no_write_workqueue, its thread issues writes,"
            " and cgroups share half of the tags in order of arrival",
            f"{disk.path}/dm/uuid",
            "cryptsetup refresh --perf-no_write_workqueue NAME",
        )
    if fs.is_dir(f"{disk.path}/bcache"):
        yield warn(
            "attribution",
            f"{disk.name} writes its cache back in its own thread, which is charged to the root",
            f"{disk.path}/bcache",
            f"echo writearound > {disk.path}/bcache/cache_mode",
        )
    for under in below(disk):
        yield from _attribution_lost(under)


def _zfs(disk: Disk) -> Iterator[Finding]:
    for name in _of_zfs(disk):
        yield warn(
            "attribution",
            f"{name} belongs to ZFS: its threads issue reads and writes, which are charged to the"
            " root",
            disk.path,
            "use another file system where cgroups must share the disk",
        )


def _of_zfs(disk: Disk) -> list[str]:
    """The disk and its partitions that are members of a pool, by the database of udev."""
    fs = disk.fs
    numbers = {disk.name: disk.own_number}
    for name in fs.subdirs(fs.resolve(disk.path)):
        text = fs.glance(f"{disk.path}/{name}/dev")
        if text is not None and fs.exists(f"{disk.path}/{name}/partition"):
            numbers[name] = text.strip()
    kinds = {name: properties(disk, number) or {} for name, number in numbers.items()}
    return [name for name, own in kinds.items() if own.get("ID_FS_TYPE") == "zfs_member"]


def _disk_findings(disk: Disk) -> Iterator[Finding]:
    selector = disk.selector()
    if selector is None:
        yield problem(
            "scheduler",
            f"{disk.name} takes no scheduler",
            disk.scheduler_file,
            "use a disk with a queue of its own (blk-mq)",
        )
        return
    over = above(disk)
    if over is not None:
        yield problem(
            "scheduler",
            f"{over.name} ({_kind(over)}) sends its requests to {disk.name} past the scheduler of"
            f" {disk.name}",
            f"{disk.path}/holders",
            f"mqfair enable {over.name}, and set the weights for {over.name}",
        )
        return
    if not selector.ours:
        yield _not_ours(disk, selector)
        return
    yield ok("scheduler", f"{selector.active} is active on {disk.name}", disk.scheduler_file)
    yield from _tag_map(disk)
    yield from _cost(disk)
    yield from _write_cache(disk)
    yield from _zfs(disk.head or disk)
    yield from _targets(disk)


def _cost(disk: Disk) -> Iterator[Finding]:
    """A linear cost of zeros, which shares requests and not their work."""
    words = disk.tunables().get("cost", "").split()
    if len(words) != 5:
        return
    for requests, line in (("reads", words[1:3]), ("writes", words[3:5])):
        if line == ["0", "0"]:
            yield warn(
                "cost",
                f"{requests} of every size cost {COST_LEAST}, the least charge, on {disk.name}",
                disk.tunable("cost"),
                f"echo bytes > {disk.tunable('cost')}",
            )


def _not_ours(disk: Disk, selector: Selector) -> Finding:
    fs = disk.fs
    seen = f"{disk.name} runs {selector.active}, not an mqfair scheduler"
    hint = f"mqfair enable {disk.name} (it retries while the kernel answers busy)"
    if not kmod.loaded(fs) and not kmod.autoloads(fs, "mqfq"):
        hint = f"{kmod.missing(fs)}; then mqfair enable {disk.name}"
    elif refused := kmod.barred(fs):
        hint = f"{refused}; then mqfair enable {disk.name}"
    return problem("scheduler", seen, disk.scheduler_file, hint)


def _tag_map(disk: Disk) -> Iterator[Finding]:
    depth = disk.tunables().get("depth", "")
    tags = disk.nr_requests()
    queues = disk.queue_count()
    slots = slots_of(depth, device_slots(disk) or AUTO_SLOTS * queues)
    if active_word(depth) == "" or slots is None or tags is None or queues == 0:
        return
    all_tags = tags * queues
    seen = f"{tags} tags x {queues} queues for depth {slots}"
    if all_tags <= slots:
        why = "all requests are inside the drive, where no weight counts"
    elif all_tags < TAGS_PER_SLOT * slots:
        why = "tasks often sleep for a tag"
    else:
        return
    file = disk.queue("nr_requests")
    yield warn("tags", f"{seen}: {why}", file, f"mqfair enable {disk.name}")


def _write_cache(disk: Disk) -> Iterator[Finding]:
    """Some kernels send the writes of O_DSYNC and of journal commits past every scheduler."""
    cache = disk.queue("write_cache")
    if (disk.fs.read_if_any(cache) or "").strip() != "write back":
        return
    if (disk.fs.read_if_any(kmod.FLUSH_DATA) or "").strip() == "N":
        yield warn(
            "write cache",
            f"{disk.name} has a volatile write cache, and this kernel schedules no write that must "
            "pass it (O_DSYNC, journal commits): weights do not bind such writers",
            cache,
            "limit such a cgroup by io.max, or use a newer kernel: 6.12 schedules these writes",
        )
