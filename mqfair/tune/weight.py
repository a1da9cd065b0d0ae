# SPDX-License-Identifier: GPL-2.0
"""mqfair weight: read or set the weight of a cgroup, for all devices or for one."""

import argparse
import errno
import re

from mqfair.machine import kmod
from mqfair.machine.blockdev import Disk, find_disk, heads, is_head, lowest, require_number
from mqfair.machine.cgroup import (
    WEIGHT_DEFAULT,
    WEIGHT_FILE,
    WEIGHT_MAX,
    WEIGHT_MIN,
    Cgroup,
    Weights,
)
from mqfair.machine.controllers import domain_of, enabling_all
from mqfair.machine.fs import Fs
from mqfair.machine.group_name import CGROUP_HELP, find_cgroup
from mqfair.text.errors import Failure, UsageError
from mqfair.text.output import add_dry_run_argument, add_json_argument, print_json, quoted, visible

EPILOG = f"""\
With DEVICE, the value `default` removes the device's own weight. Without DEVICE, it sets
the cgroup's default weight to {WEIGHT_DEFAULT}.

examples:
  mqfair weight prod                read the weights
  mqfair weight prod 900            set the weight on all devices
  mqfair weight prod nvme0n1 500    set the weight on one device
  mqfair weight nginx.service 900   set the weight of a systemd unit
"""

# nvme0n1, /dev/nvme0n1, ./link, 259:0
_DEVICE = re.compile(r"[A-Za-z/.][^ ]*|\d+:\d+")


def set_argparser(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("cgroup", metavar="CGROUP", help=CGROUP_HELP)
    parser.add_argument(
        "device", nargs="?", metavar="DEVICE", help="the device (default: all devices)"
    )
    parser.add_argument(
        "value", nargs="?", metavar="VALUE", help=f"{WEIGHT_MIN}..{WEIGHT_MAX} or default"
    )
    add_dry_run_argument(parser)
    add_json_argument(parser)


def _split(fs: Fs, args: argparse.Namespace) -> tuple[str | None, str | None]:
    """(device, value). A single word after the cgroup is a device if it looks like one."""
    if args.value is not None or args.device is None or _is_device(fs, args.device):
        return args.device, args.value
    return None, args.device


def _is_device(fs: Fs, word: str) -> bool:
    """A word with a letter in front may be the name of a device, unless there is no such device."""
    if word == "default":
        return False
    return bool(_DEVICE.match(word)) or _exists(fs, word)


def _exists(fs: Fs, word: str) -> bool:
    try:
        find_disk(fs, word)
    except UsageError:
        return False
    return True


def _validated(fs: Fs, group: Cgroup, device: str | None, value: str) -> str:
    number = int(value) if re.fullmatch(r"\d{1,9}", value, re.ASCII) else 0
    if value == "default" or WEIGHT_MIN <= number <= WEIGHT_MAX:
        return value if value == "default" else str(number)
    if device is not None and re.fullmatch(r"default|\d+", device) and _exists(fs, value):
        raise UsageError(
            f"'{device}' and '{value}' are in the wrong order:"
            f" mqfair weight {quoted(group.name)} {value} {device}"
        )
    raise UsageError(
        f"weight '{value}' for {group.file(WEIGHT_FILE)}:"
        f" use a whole number in {WEIGHT_MIN}..{WEIGHT_MAX}, in digits alone, or default"
    )


def require_lowest(disk: Disk, noun: str) -> Disk:
    """@disk, or the head of a path, or an error if @disk only passes its I/O on. A head of NVMe
    multipath has the settings of its paths."""
    if is_head(disk):
        return disk
    if disk.head is not None:
        return disk.head
    disks = [low.name for low in heads(lowest(disk))]
    if disks != [disk.name]:
        raise UsageError(
            f"{disk.name} takes no scheduler: set the {noun} on the disks below it:"
            f" {' '.join(disks)}"
        )
    return disk


def _device(fs: Fs, text: str) -> Disk:
    try:
        disk = find_disk(fs, text)
    except UsageError as error:
        if "/" not in text:
            hint = f"{error}; a weight is {WEIGHT_MIN}..{WEIGHT_MAX} or default"
            raise UsageError(hint) from None
        raise
    return require_lowest(disk, "weight")


def require_file(group: Cgroup, name: str, noun: str) -> None:
    """Raises an error that names the cause if @group does not have the module's file @name."""
    path = group.file(name)
    if group.fs.exists(path):
        return
    if not group.path:
        raise UsageError(f"the root cgroup has no {noun}: name a cgroup below it")
    if not kmod.loaded(group.fs):
        raise Failure(f"{path} does not exist: {kmod.hint(group.fs)}")
    domain = domain_of(group)
    if domain.path != group.path:
        raise Failure(
            f"{path} does not exist: {group.name} is threaded, and its I/O is charged to"
            + (
                f" {domain.name}: name it: {quoted(domain.path)}"
                if domain.path
                else f" the root, which has no {noun}: use a cgroup of type domain"
            )
        )
    commands = enabling_all(group, "io")
    if commands:
        raise Failure(
            f"{path} does not exist: the io controller is not enabled for {group.name}: {commands}"
        )
    raise Failure(
        f"{path} does not exist although module {kmod.MODULE} is loaded:"
        " see the reason in the kernel log (dmesg)"
    )


def _require_weights(group: Cgroup) -> Weights:
    require_file(group, WEIGHT_FILE, "weight")
    return group.weights() or Weights()


def _line(disk: Disk | None, value: str) -> str:
    if disk is None:
        return f"default {WEIGHT_DEFAULT if value == 'default' else value}"
    return f"{require_number(disk)} {value}"


def _holds(weights: Weights, disk: Disk | None, value: str) -> bool:
    if value == "default":
        # `mqfair follow` takes the cgroup back at once, and may have written its own weight.
        return True
    if disk is None:
        return weights.default == int(value)
    own = weights.devices.get(require_number(disk))
    # The kernel may drop a device's line if its weight equals the default.
    return (weights.default if own is None else own) == int(value)


def _set(group: Cgroup, disk: Disk | None, value: str) -> Weights:
    path = group.file(WEIGHT_FILE)
    gone = f"{disk.name} takes no weight: it was removed or is no whole disk" if disk else None
    hints = {errno.ENODEV: gone} if gone else {}
    group.fs.write(path, _line(disk, value), hints)
    weights = _require_weights(group)
    if not group.fs.dry_run and not _holds(weights, disk, value):
        on = disk.name if disk else "all devices"
        found = weights.on(require_number(disk)) if disk else weights.default
        raise Failure(f"{path} reads back {found} for {on} after '{_line(disk, value)}'")
    return weights


def _device_names(fs: Fs, weights: Weights) -> dict[str, str]:
    """Device names by number; the number itself for a device that does not exist."""
    names: dict[str, str] = {}
    for number in weights.devices:
        try:
            names[number] = find_disk(fs, number).name
        except UsageError:
            names[number] = number
    return names


def _report(group: Cgroup, disk: Disk | None, weights: Weights) -> dict[str, object]:
    return {
        "schema": "mqfair.weight/1",
        "cgroup": group.name,
        "device": disk.name if disk else None,
        "weight": weights.on(disk.number) if disk else weights.default,
        "default": weights.default,
        "devices": weights.devices,
        "dry_run": group.fs.dry_run,
        "writes": [{"path": w.path, "value": w.value} for w in group.fs.writes],
    }


def _print_text(group: Cgroup, disk: Disk | None, weights: Weights) -> None:
    if group.fs.writes and group.fs.dry_run:
        print(visible(str(group.fs.writes[0])))
        return
    own = visible(group.name)
    if disk is not None:
        source = "" if disk.number in weights.devices else "  (the default)"
        print(f"{own}  {disk.name}  {weights.on(disk.number)}{source}")
        return
    print(f"{own}  default  {weights.default}")
    for number, name in _device_names(group.fs, weights).items():
        print(f"{own}  {name}  {weights.devices[number]}")


def main(args: argparse.Namespace) -> int:
    fs = Fs(dry_run=args.dry_run)
    device, value = _split(fs, args)
    group = find_cgroup(fs, args.cgroup)
    if value is not None:
        value = _validated(fs, group, device, value)
    disk = _device(fs, device) if device is not None else None
    weights = _require_weights(group)
    if value is not None:
        weights = _set(group, disk, value)
    if args.json:
        print_json(_report(group, disk, weights))
    else:
        _print_text(group, disk, weights)
    return 0
