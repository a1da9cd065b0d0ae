# SPDX-License-Identifier: GPL-2.0
"""Writes the man pages of mqfair(8) and of its verbs, from the same parsers as --help.

    python3 -m mqfair.manual.man FOLDER

A page takes its options from the verb's parser and its other sections from the parser's epilog. A
line such as `examples:` begins a section; all other paragraphs belong to the description. The
module needs the standard library alone.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mqfair import __version__
from mqfair.__main__ import SUBCOMMANDS, SubCommand, build_parser

SECTION = 8

DESCRIPTION = """\
mqfair shares one fast drive between cgroups by weight. Its kernel module has five I/O schedulers.
The command switches drives to a scheduler, sets weights, and shows and explains the shares.
"""
FILES = (
    ("/etc/mqfair.conf", "schedulers and weights that mqfair follow keeps in force"),
    ("/sys/block/DEVICE/queue/scheduler", "the scheduler of a device"),
    ("/sys/block/DEVICE/queue/iosched/", "the tunables of the scheduler"),
    ("/sys/fs/cgroup/CGROUP/io.mqfair.weight", "the weights of a cgroup"),
    ("/sys/fs/cgroup/CGROUP/io.mqfair.latency", "the latency goals of a cgroup"),
    ("/sys/fs/cgroup/CGROUP/io.weight", "the weights that mqfair follow carries over"),
    ("/sys/fs/cgroup/CGROUP/io.stat", "shares and counters of a cgroup"),
)
ENVIRONMENT = (
    ("MQFAIR_ROOT", "folder in front of all paths in /sys and /proc, to examine a copy"),
    ("MQFAIR_CACHE", "folder for guest kernels; the default is mqfair in the user's cache folder"),
    ("NO_COLOR", "if set, no colour on a terminal"),
)
EXIT_STATUS = (
    ("0", "success"),
    ("1", "the machine refused a step or is not in the requested state"),
    ("2", "the command line or an input file is wrong; nothing was changed"),
    ("130", "interrupted"),
)

_HEAD = re.compile(r"([a-z][a-z ]*):")


@dataclass
class Epilog:
    """An epilog, cut into the description and named sections."""

    description: list[str] = field(default_factory=list)
    sections: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def cut(cls, text: str) -> "Epilog":
        found = cls()
        lines = found.description
        for line in text.splitlines():
            head = _HEAD.fullmatch(line)
            if head:
                lines = found.sections.setdefault(head[1], [])
            else:
                lines.append(line)
        return found


def escaped(text: str) -> str:
    """@text without special meaning to roff. A minus stays a minus, so that it can be copied."""
    plain = text.replace("\\", "\\e").replace("-", "\\-")
    plain = "".join(one if ord(one) < 128 else f"\\[u{ord(one):04X}]" for one in plain)
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain


def bold(text: str) -> str:
    return f"\\fB{escaped(text)}\\fR"


def italic(text: str) -> str:
    """A line may break between two choices."""
    return "\\fI" + escaped(text).replace("|", "|\\:") + "\\fR"


def paragraphs(lines: Sequence[str]) -> Iterator[str]:
    """Filled paragraphs; indented lines are kept as they are."""
    verbatim = False
    for line in lines:
        indented = line.startswith(" ")
        if indented != verbatim:
            yield ".RS 2\n.nf" if indented else ".fi\n.RE"
            verbatim = indented
        if line.strip():
            yield escaped(line[2:] if indented else line)
        elif not verbatim:
            yield ".PP"
    if verbatim:
        yield ".fi\n.RE"


def trimmed(lines: Sequence[str]) -> list[str]:
    """@lines without empty ones at both ends."""
    return "\n".join(lines).strip("\n").split("\n")


def verbs_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def options_of(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The arguments that a user may give, options last."""
    actions = [
        action
        for action in parser._actions
        if action.help != argparse.SUPPRESS
        and not isinstance(action, argparse._SubParsersAction | argparse._HelpAction)
    ]
    return sorted(actions, key=lambda action: bool(action.option_strings))


def values_of(action: argparse.Action) -> list[str]:
    """The names of an action's values."""
    if action.nargs == 0:
        return []
    if isinstance(action.metavar, tuple):
        return list(action.metavar)
    if action.choices and not action.metavar:
        return ["|".join(map(str, action.choices))]
    return [action.metavar or action.dest.upper()]


def words_of(action: argparse.Action) -> str:
    """An argument as the synopsis and the list of options show it."""
    values = " ".join(map(italic, values_of(action)))
    if action.option_strings:
        return f"{bold(action.option_strings[-1])} {values}".strip()
    return {"*": f"[{values} ...]", "+": f"{values} ...", "?": f"[{values}]"}.get(
        str(action.nargs), values
    )


def synopsis(parser: argparse.ArgumentParser) -> str:
    words = [bold(parser.prog)]
    for action in sorted(options_of(parser), key=lambda action: not action.option_strings):
        word = words_of(action)
        words.append(word if action.required else f"[{word}]" if action.option_strings else word)
    # A phrase in brackets stays on one line.
    return "\n".join(word.replace(" ", "\\ ") for word in words)


def help_of(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """An argument's help, with %(default)s and the like filled in."""
    return parser._get_formatter()._expand_help(action) if action.help else ""


def arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in options_of(parser):
        yield f".TP\n{words_of(action)}\n{escaped(help_of(parser, action))}"


def pairs(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    for name, meaning in rows:
        yield f".TP\n{bold(name)}\n{escaped(meaning)}"


def name_of(command: SubCommand) -> str:
    return f"mqfair-{command.name}"


def see_also(names: Sequence[str]) -> str:
    return ",\n".join(f"{bold(name)}({SECTION})" for name in names)


def head(name: str, summary: str) -> Iterator[str]:
    yield f'.TH {name.upper()} {SECTION} "" "mqfair {__version__}" "System Administration"'
    yield ".SH NAME"
    yield f"{escaped(name)} \\- {escaped(summary)}"
    yield ".SH SYNOPSIS\n.nh\n.ad l"


def page(command: SubCommand) -> str:
    """The page of one verb."""
    parser = verbs_of(build_parser([command.name]))[command.name]
    inner = verbs_of(parser)
    epilog = Epilog.cut(parser.epilog or "")
    lines = list(head(name_of(command), command.summary))
    lines.append("\n.br\n".join(map(synopsis, inner.values() or [parser])))
    lines += [".ad b\n.hy", ".SH DESCRIPTION", *paragraphs([parser.description or ""])]
    if any(line.strip() for line in epilog.description):
        lines += [".PP", *paragraphs(trimmed(epilog.description))]
    lines.append(".SH OPTIONS")
    for verb, one in inner.items():
        lines.append(f".SS {escaped(f'mqfair {command.name} {verb}')}")
        lines += arguments(one)
    lines += arguments(parser)
    for title, body in epilog.sections.items():
        lines += [f".SH {title.upper()}", *paragraphs(trimmed(body))]
    lines += [".SH SEE ALSO", see_also(["mqfair"])]
    return "\n".join(lines) + "\n"


def front_page() -> str:
    """The page of the command itself."""
    parser = build_parser([])
    epilog = Epilog.cut(parser.epilog or "")
    lines = list(head("mqfair", "share one fast SSD between cgroups by weight"))
    lines.append(f"{bold('mqfair')}\n{italic('VERB')}\n{italic('ARGUMENT')} ...")
    lines.append(f".br\n{bold('mqfair')}\n{bold('--version')}")
    lines += [".ad b\n.hy", ".SH DESCRIPTION", *paragraphs(DESCRIPTION.splitlines())]
    lines += [".SH VERBS", *pairs([(one.name, one.summary) for one in SUBCOMMANDS])]
    lines += [".SH OPTIONS", *arguments(parser)]
    lines += [".SH FILES", *pairs(FILES)]
    lines += [".SH ENVIRONMENT", *pairs(ENVIRONMENT)]
    lines += [".SH EXIT STATUS", *pairs(EXIT_STATUS)]
    for title, body in epilog.sections.items():
        lines += [f".SH {title.upper()}", *paragraphs(trimmed(body))]
    lines += [".SH SEE ALSO", see_also([name_of(command) for command in SUBCOMMANDS])]
    return "\n".join(lines) + "\n"


def pages() -> dict[str, str]:
    """All pages by file name."""
    found = {f"mqfair.{SECTION}": front_page()}
    return found | {f"{name_of(one)}.{SECTION}": page(one) for one in SUBCOMMANDS}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="mqfair.man", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where to write the pages")
    folder = parser.parse_args(argv).folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
