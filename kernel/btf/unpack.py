# SPDX-License-Identifier: GPL-2.0
"""Finds the BTF in a file of the user: raw BTF, an ELF vmlinux, or a compressed vmlinuz."""

from __future__ import annotations

import bz2
import lzma
import shutil
import struct
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

from errors import GenerateError

BTF_MAGIC = b"\x9f\xeb\x01"
ELF_MAGIC = b"\x7fELF"

# Linux x86 boot protocol 2.08 and later: places in a bzImage that lead to the compressed kernel.
_BOOT_SIGNATURE_AT = 0x202
_BOOT_SIGNATURE = b"HdrS"
_SETUP_SECTORS_AT = 0x1F1
_PAYLOAD_AT = 0x248
_SECTOR = 512

# EFI zboot image (arm64 and others): "MZ", "zimg", offset and size of the payload.
_ZBOOT_MAGIC_AT = 4
_ZBOOT_MAGIC = b"zimg"


def _gunzip(data: bytes) -> bytes:
    return zlib.decompressobj(wbits=31).decompress(data)


def _unxz(data: bytes) -> bytes:
    return lzma.LZMADecompressor().decompress(data)


def _bunzip2(data: bytes) -> bytes:
    return bz2.BZ2Decompressor().decompress(data)


def _program(*argv: str) -> Callable[[bytes], bytes]:
    """Returns a decompressor that runs a program: the standard library has none for it."""

    def run(data: bytes) -> bytes:
        if shutil.which(argv[0]) is None:
            raise GenerateError(
                f"the kernel image is compressed with {argv[0]}, which is not installed: "
                f"install the package {argv[0]}"
            )
        # The kernel appends the uncompressed size, and the programs call it trailing garbage.
        # So their exit status tells nothing, and the caller checks the output.
        return subprocess.run(argv, input=data, capture_output=True, check=False).stdout

    return run


_DECOMPRESSORS: tuple[tuple[bytes, Callable[[bytes], bytes]], ...] = (
    (b"\x1f\x8b\x08", _gunzip),
    (b"\xfd7zXZ\x00", _unxz),
    (b"]\x00\x00", _unxz),
    (b"BZh", _bunzip2),
    (b"\x28\xb5\x2f\xfd", _program("zstd", "-dcq")),
    (b"\x02\x21\x4c\x18", _program("lz4", "-dcq")),
    (b"\x89LZO\x00\r\n", _program("lzop", "-dcq")),
)


def _payload(image: bytes, name: str) -> bytes:
    """Returns the compressed kernel inside a boot image, or the image itself if it is bare."""
    if image[_BOOT_SIGNATURE_AT : _BOOT_SIGNATURE_AT + 4] == _BOOT_SIGNATURE:
        offset, size = struct.unpack_from("<II", image, _PAYLOAD_AT)
        start = (image[_SETUP_SECTORS_AT] + 1) * _SECTOR + offset
    elif image[_ZBOOT_MAGIC_AT : _ZBOOT_MAGIC_AT + 4] == _ZBOOT_MAGIC:
        start, size = struct.unpack_from("<II", image, _ZBOOT_MAGIC_AT + 4)
    else:
        return image
    if start + size > len(image):
        raise GenerateError(f"{name}: the image is cut short: payload ends past the file")
    return image[start : start + size]


def decompress(image: bytes, name: str) -> bytes:
    """Returns the uncompressed kernel of a boot image."""
    payload = _payload(image, name)
    for magic, decompressor in _DECOMPRESSORS:
        if payload.startswith(magic):
            try:
                return decompressor(payload)
            except (zlib.error, lzma.LZMAError, OSError) as error:
                raise GenerateError(f"{name}: the compressed kernel is damaged: {error}") from error
    raise GenerateError(
        f"{name}: neither BTF, nor an ELF vmlinux, nor a kernel image compressed in a known "
        "format: name /sys/kernel/btf/vmlinux, the vmlinux of the headers package or a vmlinuz"
    )


def usable_source(source: Path, scratch: Path) -> Path:
    """Returns a file from which bpftool can read types: SOURCE, or the unpacked kernel."""
    try:
        image = source.read_bytes()
    except OSError as error:
        raise GenerateError(f"{source}: {error.strerror}: name a readable BTF source") from error
    if image.startswith((BTF_MAGIC, ELF_MAGIC)):
        return source
    kernel = decompress(image, str(source))
    if not kernel.startswith(ELF_MAGIC):
        raise GenerateError(
            f"{source}: the unpacked kernel is not an ELF file: name its vmlinux, or "
            "/sys/kernel/btf/vmlinux when it is the running kernel"
        )
    unpacked = scratch / "vmlinux"
    unpacked.write_bytes(kernel)
    return unpacked
