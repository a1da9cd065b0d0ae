# SPDX-License-Identifier: GPL-2.0
"""The command line: a table of verbs, each a module with set_argparser() and main()."""

import argparse
import contextlib
import importlib
import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from mqfair import __version__
from mqfair.machine import kmod
from mqfair.machine.blockdev import KERNEL_SCHEDULERS
from mqfair.machine.fs import Fs
from mqfair.packages import NEEDED, lacking
from mqfair.text.errors import Failure, UsageError
from mqfair.text.output import WRITE_ERRORS, NotWrittenError, nearest, visible

EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141

# The wheel has the package lab in this folder, because its name is too common for site-packages.
# A checkout and the packages of distributions have it beside this package.
PRIVATE = Path(__file__).parent / "private"
LAB = "lab"


@dataclass(frozen=True)
class SubCommand:
    """One verb. @module has set_argparser(). @main_module, or @module if there is none, has main().
    Each is imported only when it is needed: bench needs packages, and bench --help does not."""

    name: str
    module: str
    summary: str
    main_module: str = ""

    def set_argparser(self, parser: argparse.ArgumentParser) -> None:
        self._load(self.module).set_argparser(parser)
        parser.set_defaults(main=self.main)

    def main(self, args: argparse.Namespace) -> int:
        module = self._load(self.main_module or self.module)
        try:
            status: int = module.main(args)
        except ModuleNotFoundError as error:
            raise self._lacks(error) from error
        return status

    def _load(self, module: str) -> ModuleType:
        try:
            return importlib.import_module(module)
        except ModuleNotFoundError as error:
            raise self._lacks(error) from error

    def _lacks(self, error: ModuleNotFoundError) -> Failure:
        module = error.name or "unknown"
        package = module.partition(".")[0]
        # pip would install the package `lab` of another project.
        if package == LAB or module in (self.module, self.main_module):
            return Failure(f"{self.name}: this installation lacks {module}: reinstall mqfair")
        return Failure(f"{self.name}: {lacking(package, NEEDED.get(self.name, ()))}")


SUBCOMMANDS = (
    SubCommand("status", "mqfair.watch.status", "show schedulers, tunables and shares"),
    SubCommand("top", "mqfair.watch.top", "show shares, rates and times of the cgroups, live"),
    SubCommand("check", "mqfair.check.check", "explain why a weight is or is not in force"),
    SubCommand("enable", "mqfair.tune.enable", "switch a device to an mqfair scheduler"),
    SubCommand("disable", "mqfair.tune.disable", "switch a device back"),
    SubCommand("weight", "mqfair.tune.weight", "read or set the weight of a cgroup"),
    SubCommand(
        "follow", "mqfair.follow.follow", "carry weights from io.weight to io.mqfair.weight"
    ),
    SubCommand("latency", "mqfair.tune.latency", "read or set the latency goals of a cgroup"),
    SubCommand(
        "bench",
        "mqfair.bench.options",
        "run a fio job file under several schedulers",
        main_module="mqfair.bench.command",
    ),
    SubCommand(
        "sim",
        "mqfair.bench.simulated.short_form",
        "run a fio job file under several schedulers in the simulator",
        main_module="mqfair.bench.command",
    ),
    SubCommand(
        "qualify",
        "mqfair.qualify.options",
        "measure a drive of this host for ten minutes, and write a report",
        main_module="mqfair.qualify.command",
    ),
    SubCommand("fit", "mqfair.drives.command", "make a model of a drive from measured figures"),
    SubCommand("compare", "mqfair.report.compare", "compare two results of bench, with confidence"),
    SubCommand("record", "mqfair.watch.record", "record drives and cgroups to a file"),
    SubCommand("trace", "mqfair.traces.command", "show, convert and generate block traces"),
    SubCommand(
        "report", "mqfair.report.report", "make plots of a recording or of results of bench"
    ),
    SubCommand(
        "metrics", "mqfair.watch.metrics", "give drives' and cgroups' figures to Prometheus"
    ),
    SubCommand("lab", "mqfair.lab", "run a command in a guest kernel"),
)

EXAMPLES = """\
examples:
  mqfair enable nvme0n1
  mqfair weight prod 900
  mqfair check nvme0n1 prod
  mqfair status
"""


def _plain(message: str) -> str:
    """The message of argparse about a word that is no choice, with the nearest choice, or with all
    of them; any other message as it is."""
    found = re.fullmatch(r"argument (\S+): invalid choice: '(.*)' \(choose from (.*)\)", message)
    if found is None:
        return message
    name, word, choices = found[1], found[2], re.findall(r"[\w-]+", found[3])
    if name == "VERB" and word in ("help", "version"):
        return f"unknown {name} '{word}': write --{word}"
    if name == "--scheduler" and word in KERNEL_SCHEDULERS:
        return f"{name} {word}: one of the kernel's comes with `mqfair disable DEVICE --to {word}`"
    return f"unknown {name} '{word}': {nearest(word, choices) or 'use ' + ', '.join(choices)}"


class Parser(argparse.ArgumentParser):
    """Raises UsageError for a bad command line, so that one line is printed, not the usage."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{_plain(message)} (see {self.prog} --help)")

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        """Parses @argv; the message about superfluous words names the verb that does not take
        them."""
        args, extra = self.parse_known_args(argv)
        if not extra:
            return args
        verb = f"{self.prog} {args.verb}"
        words = " ".join(extra)
        if any(word.startswith("-") for word in extra):
            names = "" if words.startswith("--") else "; a name with - in front goes behind --"
            raise UsageError(f"unrecognized arguments: {words} (see {verb} --help{names})")
        raise UsageError(f"{verb} takes no '{words}': see {verb} --help")


class VersionAction(argparse.Action):
    """--version: prints the version of the command and, if it is loaded, of the module."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        print(f"mqfair {__version__}")
        module = kmod.version(Fs())
        if module:
            print(f"module {kmod.MODULE} {module} (loaded)")
        parser.exit()


def _chosen(argv: Sequence[str]) -> str | None:
    return next((word for word in argv if not word.startswith("-")), None)


def build_parser(argv: Sequence[str]) -> Parser:
    """The parser for @argv; only the verb in @argv has its options."""
    parser = Parser(
        prog="mqfair",
        description="Share one fast SSD between cgroups by weight.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version",
        nargs=0,
        action=VersionAction,
        help="print the versions of the command and of the loaded module, and end",
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    chosen = _chosen(argv)
    for command in SUBCOMMANDS:
        sub = verbs.add_parser(
            command.name,
            help=command.summary,
            description=command.summary[0].upper() + command.summary[1:] + ".",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if command.name == chosen:
            command.set_argparser(sub)
    return parser


def _run(argv: Sequence[str]) -> int:
    """Runs the chosen verb."""
    args = build_parser(argv).parse(argv)
    status: int = args.main(args)
    return status


def _flushed(program: Callable[[], int]) -> int:
    """Runs @program. Standard output is flushed here, also after --help, so that a closed pipe
    raises BrokenPipeError where ended() handles it."""
    try:
        return program()
    finally:
        # There is no standard output after `>&-`.
        if sys.stdout is not None:
            sys.stdout.flush()


def _discard_stdout() -> None:
    """Redirects standard output to /dev/null, so that the flush at exit does not fail again."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def _allow_all_names() -> None:
    """Names of cgroups may have characters that the encoding of a terminal lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def _complain(name: str, message: str) -> None:
    """Prints @message of the program @name. Names in it may have characters that a terminal would
    obey. There is no standard error after `2>&-`."""
    if sys.stderr is None:
        return
    shown = "\n".join(map(visible, message.split("\n")))
    with contextlib.suppress(OSError):
        print(f"{name}: {shown}", file=sys.stderr, flush=True)


def _described(error: OSError) -> str:
    """An error of the operating system that no verb has foreseen. One without a file is that of
    standard output, if its number is one of those of a write."""
    reason = error.strerror or str(error)
    if isinstance(error, NotWrittenError):
        mend = f"{'free space, or ' if error.errno in WRITE_ERRORS else ''}name another place"
        return f"cannot write {error.filename}: {reason}: nothing is written: {mend}"
    if error.filename is None and error.errno in WRITE_ERRORS:
        return f"cannot write to standard output: {reason}: the output is incomplete"
    if error.errno in WRITE_ERRORS:
        mend = "free space, or name another file"
        return f"cannot write {error.filename}: {reason}: it is incomplete: {mend}"
    return f"{error.filename}: {reason}" if error.filename else reason


def ended(name: str, program: Callable[[], int]) -> int:
    """The exit status of @program. An error becomes a message that begins with @name."""
    try:
        return _flushed(program)
    except UsageError as error:
        _complain(name, str(error))
        return EXIT_USAGE
    except Failure as error:
        _complain(name, str(error))
        return EXIT_FAILURE
    except KeyboardInterrupt as interrupt:
        _complain(name, "; ".join(["interrupted", *map(str, interrupt.args)]))
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _discard_stdout()
        return EXIT_BROKEN_PIPE
    except OSError as error:
        _discard_stdout()
        _complain(name, _described(error))
        return EXIT_FAILURE


def main(argv: Sequence[str] | None = None) -> int:
    if PRIVATE.is_dir():
        sys.path.insert(0, str(PRIVATE))
    _allow_all_names()
    return ended("mqfair", lambda: _run(sys.argv[1:] if argv is None else argv))


if __name__ == "__main__":
    sys.exit(main())
