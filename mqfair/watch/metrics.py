# SPDX-License-Identifier: GPL-2.0
"""The command line of mqfair metrics: figures of drives and cgroups for Prometheus.

exposition.py has the figures and the server, openmetrics.py the formats.
"""

import argparse
import ipaddress
import os
import socket
from pathlib import Path

from mqfair.machine.blockdev import Disk, all_disks, find_disks
from mqfair.machine.fs import Fs
from mqfair.text.errors import Failure, UsageError
from mqfair.text.numbers import is_number
from mqfair.text.output import print_json, require_writable
from mqfair.watch import exposition
from mqfair.watch.drives import seconds_of

PORT = 9917
# The first descriptor that systemd passes, and the address that stands for it.
FIRST_DESCRIPTOR = 3
SYSTEMD = "systemd"
IDLE_MOST_S = 86400.0

EPILOG = f"""\
Without an option the figures are printed as OpenMetrics text. --textfile writes them for the
textfile collector of node_exporter, at once: a reader sees the old file or the new one. --listen
answers HTTP on an address of this machine alone, or on the socket that systemd passes. Every
request reads the figures anew.

All drives with a scheduler are listed, so that a drive that lost its mqfair scheduler is noticed.
The folder contrib/ of the source has a dashboard for Grafana and alert rules.

examples:
  mqfair metrics
  mqfair metrics --textfile /var/lib/prometheus/node-exporter/mqfair.prom
  mqfair metrics --listen 127.0.0.1:{PORT}
  systemctl enable --now mqfair-metrics.socket
"""


def set_argparser(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument(
        "devices", nargs="*", metavar="DEVICE", help="drives (default: all with a scheduler)"
    )
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--textfile", metavar="FILE", help="replace FILE; its name must end in .prom")
    way.add_argument(
        "--listen",
        metavar="ADDRESS:PORT",
        help=f"answer HTTP there; `{SYSTEMD}` takes the socket of a .socket unit",
    )
    way.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument(
        "--idle-exit",
        metavar="S",
        help="with --listen: end after S seconds without a request (default: never)",
    )


def _disks(fs: Fs, names: list[str]) -> list[Disk]:
    asked = find_disks(fs, names)
    for disk in asked:
        disk.require_selector()
    found = asked or [disk for disk in all_disks(fs) if disk.selector() is not None]
    return list({disk.name: disk for disk in found}.values())


def address_of(text: str) -> tuple[str, int]:
    """The address and port in @text; raises UsageError for one that other machines reach."""
    host, _, port = text.rpartition(":")
    host = host.strip("[]")
    if host == "localhost":
        host = "127.0.0.1"
    if not is_number(port, 0, 65535):
        raise UsageError(f"--listen {text}: write ADDRESS:PORT, such as 127.0.0.1:{PORT}")
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError as error:
        raise UsageError(
            f"--listen {text}: '{host}' is no address: write 127.0.0.1:{PORT}"
        ) from error
    if not loopback:
        raise UsageError(
            f"--listen {text}: cgroups' names are not for other machines: use 127.0.0.1:{PORT}, and"
            " a proxy with authentication before it"
        )
    return host, int(port)


def listener(text: str) -> socket.socket:
    """A socket that listens. Raises Failure if there is none."""
    if text == SYSTEMD:
        return _passed_socket()
    host, port = address_of(text)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        raise Failure(f"--listen {text}: {reason}: choose another port") from error


def _passed_socket() -> socket.socket:
    """The socket of sd_listen_fds(3)."""
    passed = os.environ.get("LISTEN_FDS", "0")
    if os.environ.get("LISTEN_PID") != str(os.getpid()) or passed != "1":
        raise Failure(
            f"--listen {SYSTEMD}: systemd passed no socket: systemctl start mqfair-metrics.socket,"
            f" or use --listen 127.0.0.1:{PORT}"
        )
    return socket.socket(fileno=FIRST_DESCRIPTOR)


def _require_textfile(name: str) -> None:
    """A rename must not replace a device or a pipe."""
    path = Path(name)
    if path.suffix != ".prom" or (path.exists() and not path.is_file()):
        raise UsageError(f"--textfile {name}: node_exporter reads files named *.prom alone")
    require_writable("--textfile", name)


def main(args: argparse.Namespace) -> int:
    if args.idle_exit is not None and args.listen is None:
        raise UsageError("--idle-exit needs --listen")
    idle_s = None
    if args.idle_exit is not None:
        idle_s = seconds_of("--idle-exit", args.idle_exit, 1, IDLE_MOST_S)
    if args.textfile is not None:
        _require_textfile(args.textfile)
    fs = Fs()
    _disks(fs, args.devices)
    figures = exposition.Collector(fs, lambda: _disks(fs, args.devices))
    if args.listen is not None:
        listening = listener(args.listen)
        if args.listen != SYSTEMD:
            host, port = listening.getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            print(f"http://{shown}:{port}/metrics", flush=True)
        exposition.serve(figures, listening, idle_s)
    elif args.textfile is not None:
        exposition.write_textfile(figures, args.textfile)
    elif args.json:
        print_json({"schema": "mqfair.metrics/1", "metrics": exposition.as_list(figures)})
    else:
        print(exposition.text(figures), end="")
    return 0
