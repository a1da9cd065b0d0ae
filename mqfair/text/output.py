# SPDX-License-Identifier: GPL-2.0
"""Plain-text tables, units and JSON, with the standard library alone."""

import argparse
import contextlib
import difflib
import errno
import json
import os
import shlex
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from mqfair.machine.signals import interrupted_once
from mqfair.text.errors import UsageError

COLUMN_GAP = "  "
BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
# The most characters of a user's line in a message.
_MOST = 80
# The errors of a write. Python does not say in which file.
WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
# A new file or folder has its place below a folder of this name until it is whole.
_PARTIAL = ".mqfair-"
COLOURS = {"red": 31, "green": 32, "yellow": 33, "cyan": 36, "bold": 1, "dim": 2}


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def add_dry_run_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dry-run", action="store_true", help="print the writes instead of doing them"
    )


def print_json(value: object) -> None:
    print(json.dumps(value, indent=2))


def read_text(name: str, remedy: str) -> str:
    """The text of the file @name, in UTF-8. Windows puts a byte order mark before it, which is left
    out. Raises UsageError with the reason and @remedy."""
    try:
        return Path(name).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "no text"
        raise UsageError(f"{name}: {reason}: {remedy}") from error


def require_writable(option: str, name: str | None, inputs: Iterable[str] = ()) -> None:
    """Raises UsageError before a long run if its results could not be written afterwards, or would
    replace one of the files @inputs that it reads."""
    if name in (None, "-"):
        return
    path = Path(str(name))
    if any(same_file(str(name), one) for one in inputs):
        raise UsageError(f"{option} {name}: it is a file that is read: name another file")
    try:
        if not path.exists():
            # A link to a file that is not there yet.
            path = Path(os.path.realpath(path))
            path.open("xb").close()
            path.unlink()
        elif path.is_dir() or not os.access(path, os.W_OK):
            code = errno.EISDIR if path.is_dir() else errno.EACCES
            raise OSError(code, os.strerror(code))
    except OSError as error:
        raise UsageError(
            f"{option} {name}: {error.strerror}: name a file that can be written, in a folder that"
            " exists"
        ) from error


def require_outputs(outputs: Mapping[str, str | None], inputs: Iterable[str] = ()) -> None:
    """require_writable() for each option of @outputs, and UsageError if two name one file."""
    read = list(inputs)
    named: dict[str, str] = {}
    for option, name in outputs.items():
        if name is None:
            continue
        require_writable(option, name, read)
        for other, before in named.items():
            # Each of them may go to /dev/null.
            if same_file(name, before) and not Path(name).is_char_device():
                raise UsageError(f"{option} {name}: {other} writes it, too: name another file")
        named[option] = name


def same_file(a: str | Path, b: str | Path) -> bool:
    """Do both names lead to one file, or to one place for a new file?"""
    try:
        return Path(a).samefile(b)
    except OSError:
        return os.path.realpath(a) == os.path.realpath(b)


@contextlib.contextmanager
def open_output(name: str) -> Iterator[TextIO]:
    """The file @name for writing; standard output for -."""
    if name == "-":
        yield sys.stdout
        return
    with writing(name), Path(name).open("w", encoding="utf-8", errors="backslashreplace") as file:
        yield file


@contextlib.contextmanager
def writing(name: str | Path) -> Iterator[None]:
    """The error of a write in the block names @name, since Python does not say in which file."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in WRITE_ERRORS:
            error.filename = str(name)
        raise


class NotWrittenError(OSError):
    """The new content of a file or a folder could not be written. It is as it was before."""


@contextlib.contextmanager
def whole_output(name: str) -> Iterator[TextIO]:
    """As open_output(), for a file that is whole_file()."""
    if name == "-":
        yield sys.stdout
        return
    with whole_file(name) as path, open_output(str(path)) as file:
        yield file


@contextlib.contextmanager
def whole_file(name: str) -> Iterator[Path]:
    """The block makes a file of the path that it gets. The file @name changes at the end of the
    block, and not after an error or an interruption. A pipe, a device and an open file are written
    directly. Raises NotWrittenError."""
    if not _is_replaceable(name):
        with writing(name):
            yield Path(name)
        return
    # A link stays, and the file that it names is replaced.
    path = Path(os.path.realpath(name))
    with _put_in_place(path, name) as partial:
        yield partial
        if path.exists():
            _give_rights(partial, path.stat())


@contextlib.contextmanager
def whole_folder(option: str, name: str) -> Iterator[Path]:
    """A new folder for the block to fill. It gets the name @name at the end of the block, and is
    removed after an error or an interruption. Raises UsageError if it cannot be made."""
    path = Path(os.path.realpath(name))
    # The outermost folder that is made.
    top = path
    try:
        while not top.parent.exists():
            top = top.parent
        top.mkdir()
        top.rmdir()
    except OSError as error:
        raise UsageError(f"{option} {name}: {error.strerror}: name a new folder") from error
    with _put_in_place(top, name) as partial:
        inner = partial / path.relative_to(top)
        inner.mkdir(parents=True)
        yield inner


@contextlib.contextmanager
def _put_in_place(path: Path, name: str) -> Iterator[Path]:
    """The block makes a file or a folder of the name that it gets, on the same file system. A
    rename then puts it in the place of @path, which the user calls @name. An error that names a
    file elsewhere, such as one that the block reads, stays as it is."""
    try:
        with (
            interrupted_once(),
            tempfile.TemporaryDirectory(prefix=_PARTIAL, dir=path.parent) as folder,
        ):
            partial = Path(folder) / path.name
            yield partial
            partial.rename(path)
    except OSError as error:
        own = str(path.parent / _PARTIAL)
        if error.filename is not None and not str(error.filename).startswith(own):
            raise
        raise NotWrittenError(error.errno, error.strerror, name) from error


def _is_replaceable(name: str) -> bool:
    """Whether a rename may put a file in the place of @name."""
    if not os.access(Path(os.path.realpath(name)).parent, os.W_OK):
        return False
    path = Path(name)
    if not path.exists():
        return True
    while path.is_symlink():
        # /dev/stdout and /dev/fd/3 name a file that is open.
        if path.parent.resolve().is_relative_to("/proc"):
            return False
        path = path.parent / path.readlink()
    return path.is_file()


def _give_rights(path: Path, before: os.stat_result) -> None:
    """Gives the file @path the permissions of the file @before, and its owner as far as the user
    may."""
    with contextlib.suppress(PermissionError):
        os.chown(path, before.st_uid, before.st_gid)
    path.chmod(stat.S_IMODE(before.st_mode))


def overwrite(text: str) -> None:
    """Puts @text in the place of the last line of a terminal, which standard error is."""
    print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def paint(text: str, colour: str) -> str:
    """@text in @colour on a terminal; unchanged elsewhere, and where NO_COLOR is set."""
    if sys.stdout is None or not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m"


def printable(text: str) -> str:
    """@text in as many columns, without characters that a terminal would obey."""
    return "".join(one if one.isprintable() else "?" for one in text)


def visible(text: str) -> str:
    """@text with the bytes of such characters in hexadecimal, as $'...' of bash takes them."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else _escaped(one) for one in text)


def quoted(text: str) -> str:
    """@text as one word of a shell's command line."""
    shown = visible(text)
    if shown == text:
        return shlex.quote(text)
    return "$'" + visible(text.replace("\\", "\\\\").replace("'", "\\'")) + "'"


def _escaped(one: str) -> str:
    # A byte that is no UTF-8 stands in a name as one of these surrogates; others come from JSON.
    errors = "surrogateescape" if "\udc80" <= one <= "\udcff" else "surrogatepass"
    return "".join(f"\\x{byte:02x}" for byte in one.encode("utf-8", errors))


def shortened(text: str) -> str:
    """@text, or its begin, for a message of one line."""
    return text if len(text) <= _MOST else text[: _MOST - 1] + "…"


def nearest(word: str, known: Iterable[str]) -> str:
    """`did you mean X?` for a misspelt @word; empty if none of @known is near."""
    alike = difflib.get_close_matches(word.lower(), list(known), n=1)
    return f"did you mean {alike[0]}?" if alike else ""


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Aligned lines. The first @left columns are aligned to the left, the others to the right."""
    widths = [max(len(line[i]) for line in (header, *rows)) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return COLUMN_GAP.join(padded).rstrip()

    return [paint(line(header), "bold"), *(line(row) for row in rows)]


def human_bytes(count: int) -> str:
    power = min((max(count, 1).bit_length() - 1) // 10, len(BYTE_UNITS) - 1)
    return f"{count} B" if power == 0 else f"{count / 1024**power:.1f} {BYTE_UNITS[power]}"


def human_microseconds(count: int) -> str:
    if count < 1000:
        return f"{count} us"
    if count < 1_000_000:
        return f"{count / 1000:.1f} ms"
    return f"{count / 1_000_000:.1f} s"


def percent(ppm: int) -> str:
    return f"{ppm / 10_000:.1f} %"
