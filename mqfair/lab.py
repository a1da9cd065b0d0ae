# SPDX-License-Identifier: GPL-2.0
"""mqfair lab: run a command or a shell in a guest, with a kernel of Debian or user-mode Linux."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import lab
from lab.debian import MACHINES
from mqfair.text.errors import Failure, UsageError

VM = "vm"

EXAMPLES = """\
examples:
  mqfair lab exec --cpus 2 --nvme size=1G,queues=2 -- fio --name=a --rw=randread \\
      --filename=/dev/nvme0n1 --size=64M
  mqfair lab exec --module build/module/RELEASE/mqfair.ko -- \\
      sh -c 'modprobe null_blk && echo mqfq > /sys/block/nullb0/queue/scheduler'
  mqfair lab exec --kernel 7.2 -- uname -r
  mqfair lab exec --machine debian12 -- systemctl list-units
  mqfair lab exec --on uml -- nproc
  mqfair lab shell --cpus 8 --sockets 2 --threads 2
"""


def set_argparser(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    verbs = parser.add_subparsers(dest="lab_verb", required=True, metavar="VERB")
    run = verbs.add_parser(
        "exec",
        help="run a command in a guest and return its output, exit status and files",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_guest_arguments(run)
    run.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object at the end: status, stdout, stderr, dmesg, accel, times",
    )
    run.add_argument("command", nargs="+", metavar="CMD", help="the command, after '--'")
    shell = verbs.add_parser(
        "shell",
        help="open a shell in a guest on this terminal",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_guest_arguments(shell)
    shell.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object at the end: status, dmesg, accel, times",
    )


def _add_guest_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--on",
        choices=(VM, lab.UML),
        default=VM,
        help="a virtual machine (vm, the default), or user-mode Linux (uml, after `make uml`):"
        " a program of this host with real CPUs, without NVMe drives and counted time",
    )
    parser.add_argument(
        "--cpus", type=int, default=2, metavar="N", help="virtual CPUs, 1..8 (default %(default)s)"
    )
    parser.add_argument(
        "--sockets", type=int, default=1, metavar="N", help="CPU sockets (default %(default)s)"
    )
    parser.add_argument(
        "--threads", type=int, default=1, metavar="N", help="threads per core (default %(default)s)"
    )
    parser.add_argument(
        "--memory", default="2G", metavar="SIZE", help="memory (default %(default)s)"
    )
    parser.add_argument(
        "--nvme",
        action="append",
        default=[],
        metavar="KEY=VALUE,…",
        help="add an emulated drive: size=1G, queues=2, backing=file|null|PATH,"
        " latency=1ms (null only), iops=N, mdts=7, namespaces=1, controllers=1,"
        " bus=nvme|virtio-blk|virtio-scsi; may be repeated",
    )
    parser.add_argument(
        "--module",
        action="append",
        default=[],
        type=Path,
        metavar="FILE.ko",
        help="load a built module before the command; may be repeated",
    )
    parser.add_argument(
        "--accel",
        choices=("auto", "kvm", "tcg"),
        default="auto",
        help="acceleration: KVM, emulation (tcg), or KVM if it is available (auto, the default)",
    )
    parser.add_argument(
        "--icount",
        action="store_true",
        help="one instruction is one nanosecond of guest time; one CPU, emulated",
    )
    add_kernel_argument(parser)
    parser.add_argument(
        "--machine",
        default="",
        metavar="NAME",
        help="a whole Debian with systemd, udev and a kernel of its own, in place of this host's"
        f" root: {', '.join(MACHINES)}; root makes it at first use (4 minutes)",
    )
    parser.add_argument(
        "--append", default="", metavar="ARGS", help="words to add to the kernel command line"
    )
    parser.add_argument(
        "--share",
        action="append",
        default=[],
        type=Path,
        metavar="DIR",
        help="make a host folder writable in the guest; may be repeated",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help=f"host folder that appears as {lab.GUEST_OUT} in the guest",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=600.0,
        metavar="S",
        help="end the guest after S seconds (default %(default)s)",
    )


def add_kernel_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kernel",
        metavar="NAME",
        help=f"kernel of the guest: {', '.join(lab.KERNELS)} (default {lab.DEFAULT_KERNEL});"
        " fetched at first use",
    )


def main(args: argparse.Namespace) -> int:
    if args.out is not None and not args.out.is_dir():
        raise UsageError(f"lab: --out {args.out}: no such folder: create it")
    try:
        spec = _spec(args)
        if args.lab_verb == "shell":
            result = lab.shell(spec, out_dir=args.out)
        else:
            result = lab.run(spec, args.command, out_dir=args.out, stream=not args.json)
    except lab.SpecError as error:
        raise UsageError(f"lab: {error}") from error
    except lab.LabError as error:
        raise Failure(f"lab: {error}") from error
    if args.json:
        print(json.dumps(_as_json(result), indent=2))
    elif trouble := result.trouble():
        print(f"mqfair lab: {trouble}", file=sys.stderr)
    return result.status


def _spec(args: argparse.Namespace) -> lab.GuestSpec:
    if args.on == lab.UML and args.kernel is not None:
        raise UsageError(f"lab: --kernel {args.kernel}: names another guest's kernel: use --on vm")
    return lab.GuestSpec(
        cpus=args.cpus,
        sockets=args.sockets,
        threads=args.threads,
        memory_mb=lab.parse_size(args.memory) >> 20,
        drives=tuple(lab.parse_drive(text) for text in args.nvme),
        accel=args.accel,
        icount=args.icount,
        kernel=lab.UML if args.on == lab.UML else args.kernel,
        append=args.append,
        timeout_s=args.timeout,
        host_dirs=tuple(lab.HostDir(path) for path in args.share),
        modules=tuple(args.module),
        machine=args.machine,
    )


def _as_json(result: lab.GuestResult) -> dict[str, object]:
    return {
        "schema": "mqfair.lab/1",
        "status": result.status,
        "timed_out": result.timed_out,
        "died": result.died,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "dmesg": result.dmesg,
        "console": result.console,
        "out_dir": str(result.out_dir) if result.out_dir is not None else None,
        "kernel": result.kernel,
        "accel": result.accel,
        "boot_s": round(result.boot_s, 3),
        "wall_s": round(result.wall_s, 3),
    }
