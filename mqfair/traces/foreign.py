# SPDX-License-Identifier: GPL-2.0
"""Files that are no text of a trace: their names, and the commands that make such a text of them.

A file is known by its first bytes, and not by its name, which a download may have lost.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mqfair.text.output import quoted
from mqfair.traces import native

# The bytes that a kind is known by.
HEAD_BYTES = 512
_TAR_AT, _TAR = 257, b"ustar"
_OF_CPU = re.compile(r"\.blktrace\.\d+$")
_TO_TEXT = "{file} > {text}"


@dataclass(frozen=True)
class Kind:
    """@mend has {file} for the file, {parts} for all files of its trace, and {text} for the name of
    the text that it makes."""

    name: str
    mend: str
    begins: tuple[bytes, ...] = ()
    test: Callable[[bytes], bool] | None = None

    def has(self, head: bytes) -> bool:
        return head.startswith(self.begins) or (self.test is not None and self.test(head))


def _is_tar(head: bytes) -> bool:
    return head[_TAR_AT:].startswith(_TAR)


def _is_page(head: bytes) -> bool:
    return head.lstrip().lower().startswith((b"<!doctype", b"<html", b"<?xml"))


def _is_json(head: bytes) -> bool:
    return head.lstrip().startswith((b'{"', b"{\n", b"[{", b"[\n"))


_KINDS = (
    Kind("a tar archive", "tar -xf {file}, and name a file of it", test=_is_tar),
    Kind("a zip archive", "unzip {file}, and name a file of it", (b"PK\x03\x04",)),
    Kind("a 7z archive", "7z x {file}, and name a file of it", (b"7z\xbc\xaf\x27\x1c",)),
    Kind("a RAR archive", "unrar x {file}, and name a file of it", (b"Rar!\x1a\x07",)),
    Kind("compressed with xz", f"xz -dc {_TO_TEXT}", (b"\xfd7zXZ\0",)),
    Kind("compressed with lzma", f"xz -dc {_TO_TEXT}", (b"\x5d\0\0",)),
    Kind("compressed with zstd", f"zstd -dc {_TO_TEXT}", (b"\x28\xb5\x2f\xfd",)),
    Kind("compressed with bzip2", f"bzip2 -dc {_TO_TEXT}", (b"BZh",)),
    Kind("compressed with lz4", f"lz4 -dc {_TO_TEXT}", (b"\x04\x22\x4d\x18",)),
    Kind("compressed with lzip", f"lzip -dc {_TO_TEXT}", (b"LZIP",)),
    Kind("compressed with compress", f"gzip -dc {_TO_TEXT}", (b"\x1f\x9d",)),
    Kind(
        "a binary trace of blktrace",
        "blkparse -q -i {parts} > {text}",
        (b"\x07tae", b"\x06tae", b"eat\x07", b"eat\x06"),
    ),
    Kind("a recording of perf", "perf script -i {file} > {text}", (b"PERFILE2", b"PERFFILE")),
    Kind("a recording of trace-cmd", "trace-cmd report -i {file} > {text}", (b"\x17\x08Dtracing",)),
    Kind("in UTF-16", f"iconv -f UTF-16 -t UTF-8 {_TO_TEXT}", (b"\xff\xfe", b"\xfe\xff")),
    Kind("a pointer of Git LFS", "git lfs pull, in its repository", (b"version https://git-lfs",)),
    Kind("a page for a browser", "download the file itself: this page tells how", test=_is_page),
    Kind("a Parquet file", native.ADVICE, (b"PAR1",)),
    Kind("an SQLite database", native.ADVICE, (b"SQLite format 3\0",)),
    Kind("an HDF5 file", native.ADVICE, (b"\x89HDF",)),
    Kind("JSON", native.ADVICE, test=_is_json),
)


def described(path: str, head: bytes) -> str | None:
    """The kind of the file @path, which begins with @head, and the command that makes a text of it;
    None if it may be a text."""
    for kind in _KINDS:
        if kind.has(head):
            file, text = quoted(path), quoted(_text_of(path))
            # blkparse reads the files of all CPUs by such a name, and one of any name as a stream.
            parts = file if _OF_CPU.search(path) else f"- < {file}"
            return f"{kind.name}: {kind.mend.format(file=file, parts=parts, text=text)}"
    return None


def _text_of(path: str) -> str:
    """A name for the text of @path, in the present folder: without the last suffix if an inner one
    is left, as in hm.csv.xz."""
    name = Path(path).name
    stem = Path(name).stem
    return stem if "." in stem and not stem.endswith(".blktrace") else f"{name}.txt"
