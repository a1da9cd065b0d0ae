# SPDX-License-Identifier: GPL-2.0
"""Writes the completions of bash, zsh and fish, from the same parsers as --help.

    python3 -m mqfair.completion FOLDER

A value that has choices completes to them. Others complete by the name of the value: a disk, a
cgroup or a file. The module needs the standard library alone, so `make install` can call it.
"""

import argparse
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mqfair.__main__ import SUBCOMMANDS, build_parser
from mqfair.manual.man import options_of, values_of, verbs_of

# The kind of a value by its name in --help; all others complete to nothing.
KINDS = {
    "DEVICE": "device",
    "CGROUP": "cgroup",
    **dict.fromkeys(("FILE", "FILE.ko", "HTML", "JOB", "A", "B", "DIR", "FOLDER"), "file"),
}
ANY = "any"


@dataclass(frozen=True)
class Value:
    """A value of an option, or an argument: its name, and its kind or its choices."""

    name: str
    kind: str = ANY
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Option:
    """One option; without values it is a switch."""

    names: tuple[str, ...]
    text: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Verb:
    """A verb such as `enable`, or `lab exec`. With @endless, the last argument may be repeated."""

    words: tuple[str, ...]
    summary: str
    options: tuple[Option, ...]
    arguments: tuple[Value, ...]
    endless: bool


def value(action: argparse.Action, name: str) -> Value:
    if action.choices:
        return Value(action.dest, ANY, tuple(map(str, action.choices)))
    return Value(name, KINDS.get(name, ANY))


def help_of(action: argparse.Action) -> str:
    """The help of @action up to its first comma or bracket, in one line."""
    text = " ".join((action.help or "").split())
    return re.split(r"[;:,(]", text)[0].strip().replace("%%", "%")


def verb(words: Sequence[str], summary: str, parser: argparse.ArgumentParser) -> Verb:
    actions = options_of(parser)
    options = [one for one in actions if one.option_strings]
    arguments = [one for one in actions if not one.option_strings]
    return Verb(
        tuple(words),
        summary,
        tuple(
            Option(
                tuple(one.option_strings),
                help_of(one),
                tuple(value(one, name) for name in values_of(one)),
            )
            for one in options
        ),
        tuple(value(one, values_of(one)[0]) for one in arguments),
        any(one.nargs in ("*", "+") for one in arguments),
    )


def verbs() -> Iterator[Verb]:
    for command in SUBCOMMANDS:
        parser = verbs_of(build_parser([command.name]))[command.name]
        inner = verbs_of(parser)
        for name, one in inner.items():
            yield verb((command.name, name), f"{command.summary}: {name}", one)
        if not inner:
            yield verb((command.name,), command.summary, parser)


# --- bash ------------------------------------------------------------------------------------

BASH = """\
# Completion of mqfair for bash; written by mqfair/manual/completion.py.

_mqfair_values() # KIND-OR-CHOICES WORD
{
	local path
	case $1 in
	any) ;;
	file)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$2")
		;;
	device)
		for path in /sys/block/"$2"*; do
			case ${path##*/} in loop* | ram* | zram* | "*") ;; *) COMPREPLY+=("${path##*/}") ;; esac
		done
		;;
	cgroup)
		compopt -o nospace
		for path in /sys/fs/cgroup/"$2"*/; do
			[[ -d $path ]] && path=${path#/sys/fs/cgroup/} && COMPREPLY+=("${path%/}")
		done
		;;
	*) mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2") ;;
	esac
}

# The kinds of the values of OPTION, one word for each; empty for a switch.
_mqfair_option() # VERB OPTION
{
	case "$1 $2" in
@OPTIONS@
	esac
}

_mqfair()
{
	local word=${COMP_WORDS[COMP_CWORD]} verb="" at=1 nth=0 inner options last kinds=() arguments=()
	COMPREPLY=()
	while ((at < COMP_CWORD)); do
		case ${COMP_WORDS[at]} in
		-*)
			mapfile -t kinds < <(_mqfair_option "$verb" "${COMP_WORDS[at]}")
			if ((${#kinds[@]} && at + ${#kinds[@]} >= COMP_CWORD)); then
				_mqfair_values "${kinds[COMP_CWORD - at - 1]}" "$word"
				return
			fi
			((at += ${#kinds[@]}))
			;;
		*)
			case $verb in
			"") verb=${COMP_WORDS[at]} ;;
			@WITH_INNER@) verb+=" ${COMP_WORDS[at]}" ;;
			*) ((nth++)) ;;
			esac
			;;
		esac
		((at++))
	done
	inner="" options="" last=""
	case $verb in
	"") inner="@VERBS@" options="--help --version" ;;
@ARGUMENTS@
	esac
	if [[ $word == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
	elif [[ $inner ]]; then
		_mqfair_values "$inner" "$word"
	elif ((nth < ${#arguments[@]})); then
		_mqfair_values "${arguments[nth]}" "$word"
	elif [[ $last ]]; then
		_mqfair_values "$last" "$word"
	fi
}

complete -F _mqfair mqfair
"""


def bash_kind(one: Value) -> str:
    return " ".join(one.choices) or one.kind


def bash(found: Sequence[Verb]) -> str:
    options = []
    arguments = []
    for one in found:
        name = " ".join(one.words)
        for option in one.options:
            if option.values:
                pattern = " | ".join(f'"{name} {spelt}"' for spelt in option.names)
                kinds = " ".join(shlex.quote(bash_kind(each)) for each in option.values)
                options.append(f"\t{pattern}) printf '%s\\n' {kinds} ;;")
        words = " ".join(sorted(["--help", *(option.names[-1] for option in one.options)]))
        kinds = " ".join(shlex.quote(bash_kind(each)) for each in one.arguments)
        last = shlex.quote(bash_kind(one.arguments[-1])) if one.endless else '""'
        arguments.append(f'\t"{name}") options="{words}" arguments=({kinds}) last={last} ;;')
    parents = dict.fromkeys(one.words[0] for one in found if len(one.words) > 1)
    for parent in parents:
        inner = " ".join(one.words[1] for one in found if one.words[0] == parent)
        arguments.append(f'\t{parent}) inner="{inner}" options="--help" ;;')
    names = dict.fromkeys(one.words[0] for one in found)
    return (
        BASH.replace("@OPTIONS@", "\n".join(options))
        .replace("@ARGUMENTS@", "\n".join(arguments))
        .replace("@VERBS@", " ".join(names))
        .replace("@WITH_INNER@", " | ".join(parents))
    )


# --- zsh -------------------------------------------------------------------------------------

ZSH = """\
#compdef mqfair
# Completion of mqfair for zsh; written by mqfair/manual/completion.py.

_mqfair_device() {
	local -a disks
	disks=(/sys/block/*(N:t))
	disks=(${disks:#(loop|ram|zram)*})
	_describe disk disks
}

_mqfair_cgroup() {
	_path_files -W /sys/fs/cgroup -/
}

_mqfair() {
	local -a verbs
	verbs=(
@VERBS@
	)
	if ((CURRENT == 2)); then
		_describe verb verbs
		_arguments '--help[show the help]' '--version[print the versions]'
		return
	fi
	local verb=$words[2]
	shift words
	((CURRENT--))
@INNER@
	case $verb in
@ARGUMENTS@
	esac
}

_mqfair "$@"
"""
ZSH_INNER = """\
	if [[ $verb == @PARENT@ ]]; then
		if ((CURRENT == 2)); then
			compadd @NAMES@
			return
		fi
		verb+=" $words[2]"
		shift words
		((CURRENT--))
	fi"""
ZSH_KINDS = {"device": "_mqfair_device", "cgroup": "_mqfair_cgroup", "file": "_files", ANY: " "}


def zsh_text(text: str) -> str:
    return re.sub(r"([\[\]:\\])", r"\\\1", text)


def zsh_value(one: Value) -> str:
    action = f"({' '.join(one.choices)})" if one.choices else ZSH_KINDS[one.kind]
    return f"{zsh_text(one.name)}:{action}"


def zsh(found: Sequence[Verb]) -> str:
    cases = []
    for one in found:
        specs = ["--help[show the help]"]
        for option in one.options:
            values = "".join(f":{zsh_value(each)}" for each in option.values)
            specs += [f"*{name}[{zsh_text(option.text)}]{values}" for name in option.names]
        for number, each in enumerate(one.arguments, 1):
            many = one.endless and number == len(one.arguments)
            specs.append(f"{'*' if many else number}:{zsh_value(each)}")
        words = " \\\n\t\t\t".join(map(shlex.quote, specs))
        cases.append(f'\t"{" ".join(one.words)}")\n\t\t_arguments {words}\n\t\t;;')
    summaries = {one.name: one.summary for one in SUBCOMMANDS}
    listed = [f"\t\t{shlex.quote(f'{name}:{text}')}" for name, text in summaries.items()]
    inner = []
    for parent in dict.fromkeys(one.words[0] for one in found if len(one.words) > 1):
        names = " ".join(one.words[1] for one in found if one.words[0] == parent)
        inner.append(ZSH_INNER.replace("@PARENT@", parent).replace("@NAMES@", names))
    return (
        ZSH.replace("@VERBS@", "\n".join(listed))
        .replace("@INNER@", "\n".join(inner))
        .replace("@ARGUMENTS@", "\n".join(cases))
    )


# --- fish ------------------------------------------------------------------------------------

FISH = """\
# Completion of mqfair for fish; written by mqfair/manual/completion.py.

function __mqfair_devices
    for path in /sys/block/*
        string match -rv '^(loop|ram|zram)' (basename $path)
    end
end

function __mqfair_cgroups
    for path in /sys/fs/cgroup/(commandline -ct)*/
        string replace /sys/fs/cgroup/ '' $path
    end
end

complete -c mqfair -f
complete -c mqfair -n __fish_use_subcommand -l version -d 'print the versions'
complete -c mqfair -l help -d 'show the help'
"""
FISH_KINDS = {
    "device": "-x -a '(__mqfair_devices)'",
    "cgroup": "-x -a '(__mqfair_cgroups)'",
    "file": "-r -F",
    ANY: "-x",
}


def fish_quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish_value(one: Value) -> str:
    if one.choices:
        return f"-x -a {fish_quote(' '.join(one.choices))}"
    return FISH_KINDS[one.kind]


def fish_option(option: Option) -> str:
    words = [
        f"{'-l' if name.startswith('--') else '-s'} {name.lstrip('-')}" for name in option.names
    ]
    words.append(f"-d {fish_quote(option.text)}")
    return " ".join([*words, *map(fish_value, option.values[:1])])


def fish(found: Sequence[Verb]) -> str:
    lines = [FISH]
    for command in SUBCOMMANDS:
        text = fish_quote(command.summary)
        lines.append(f"complete -c mqfair -n __fish_use_subcommand -a {command.name} -d {text}")
    for one in found:
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in one.words)
        if len(one.words) > 1:
            first = f"'__fish_seen_subcommand_from {one.words[0]}'"
            lines.append(f"complete -c mqfair -n {first} -a {one.words[1]}")
        for option in one.options:
            lines.append(f"complete -c mqfair -n '{seen}' {fish_option(option)}")
        for each in dict.fromkeys(
            each for each in one.arguments if each.choices or each.kind != ANY
        ):
            lines.append(f"complete -c mqfair -n '{seen}' {fish_value(each)}")
    return "\n".join(lines) + "\n"


def files() -> dict[str, str]:
    """The completions by the file names that the shells look for."""
    found = list(verbs())
    return {"mqfair": bash(found), "_mqfair": zsh(found), "mqfair.fish": fish(found)}


def main(argv: Sequence[str] | None = None) -> int:
    summary = (__doc__ or "").split("\n")[0]
    parser = argparse.ArgumentParser(prog="mqfair.completion", description=summary)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where to write the files")
    folder = parser.parse_args(argv).folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files().items():
        (folder / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
