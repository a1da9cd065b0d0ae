# SPDX-License-Identifier: GPL-2.0
"""Traces: each format is read with exact units, faults are named, and a conversion keeps all."""

import gzip
import itertools
import json
import random
import re
import shutil
import statistics
import subprocess
import tarfile
import tracemalloc

import pytest
from conftest import ROOT

from mqfair.text.errors import UsageError
from mqfair.traces import native, reader
from mqfair.traces.figures import describe
from mqfair.traces.formats import FORMATS
from mqfair.traces.generators import PROFILES, generate
from mqfair.traces.reader import Trace
from mqfair.traces.replay import Change, Replay, deal, measured, part_of, require_inside, split
from mqfair.traces.request import NS, READ, SECTOR, TRIM, WRITE, Request

SAMPLES = {
    "spc": """\
0,20941264,8192,W,0.551706
1,20939840,8192,r,0.554041,0.1,more
0, 16 , 512 ,R, 1.554041
""",
    "systor": """\
Timestamp,Response,IOType,LUN,Offset,Size
1455592800.002183000,0.001230000,R,1,3398356992,65536
1455592800.002183001,,W,1,4096,8192
1455592801.5,0.001,,2,4096,8192
1455592801.5,0.001,R,2,512,1024
""",
    "msr": """\
128166372003061629,hm,0,Read,383496192,32768,413
128166372003061630,hm,1,Write,2822144,4096,1133
128166372013061629,hm,0,write,0,512,1
""",
    "blkparse": """\
  8,0    3        1     0.000000000   697  A   W 223490 + 8 <- (8,1) 223427
  8,0    3       11     0.009507758   697  Q   W 223490 + 8 [kjournald]
  8,0    3       12     0.009507960   697  G   W 223490 + 8 [kjournald]
  8,0    3       13     0.010507758     0  Q FWS [swapper/0]
  8,0    1       14     0.011507758  1024  Q  RA 16 + 256 [kworker/1:1 H]
259,0    1       15     0.012507758  1024  Q   D 0 + 2048 [fstrim]
  8,0    1       16     0.012600000  1024  m   N cfq1024 served
CPU0 (8,0):
 Reads Queued:           1,      128KiB\t Writes Queued:           1,        4KiB
""",
    "blkparse-issue": """\
259,0    1        1     0.000000000  2211  D   R 1953400 + 8 [postgres]
259,0    1        2     0.000110412     0  C   R 1953400 + 8 [0]
259,0    3        1     0.000231870  2212  D  WS 8812032 + 32 (    3000) [postgres]
CPU1 (259,0):
 Reads Queued:           0,        0KiB\t Writes Queued:           0,        0KiB
""",
    "ftrace": """\
# tracer: nop
#
           <...>-1071    [003] d..1.  1532.128031: block_rq_issue: 259,0 WS 4096 () 8 + 8 [fio]
              fio-1072    [001] .....  1532.128360: block_bio_queue: 259,0 R 10973568 + 8 [fio]
 my prog  1072 [001]  1532.128362:     block:block_bio_queue: 259,0 WS 16 + 8 [my prog]
 fio-1072  [001]  1532.128370: block_bio_queue:      8,0 FWS 0 + 0 [fio]
""",
    "ftrace-issue": """\
 fio-1071 [003] d..1. 1532.128031: block_rq_issue: 259,0 WS 4096 () 20973568 + 8 [fio]
 fio-1071 [003] d..1. 1532.128312: block_rq_issue: 259,0 R 8192 () 16 + 16 none,0,0 [fio]
 fio-1072 [001] ..... 1532.128360: block_bio_queue: 259,0 R 10973568 + 8 [fio]
""",
    "biosnoop": """\
Tracing block device I/O... Hit Ctrl-C to end.
TIME(s)     COMM           PID     DISK    T  SECTOR     BYTES  QUE(ms) LAT(ms)
0.000000    postgres       14501   nvme0n1 R  8          8192      0.00    0.11
0.000213    Web Content    14501   nvme0n1 W  16         16384     0.01    0.05
0.004511    jbd2/nvme0n1p  901     sda     WS 32         4096      0.00    0.42
""",
    "alibaba": """\
419,W,8792731648,16384,1577808000000046
725,R,59110326272,360448,1577808000000196
419,R,350868463616,8192,1577808000001196
""",
    "tencent": """\
1538323200,12910952,128,0,1063
1538323200,6338688,8,1,1627
1538323201,1904106,384,0,1063
""",
    "fiu": """\
0 4892 syslogd 904265560 8 W 6 0 531e779fb8ea8b3b
1000 2522 my prog 16 16 R 6 1
2500 2522 kjournald 32 8 W 6 0 531e 779f
""",
    "disksim": """\
0.000000 0 41238712 16 1
3.512000 0 72193008 8 0
4.5 1 8 8 11
""",
    "etw": """\
BeginHeader
               DiskRead,  TimeStamp,  Process Name ( PID),   ThreadID,             IrpPtr
EndHeader
               DiskRead,  1500, System (   4),  72, 0xfffffa80, 0x0000002000, 0x00001000, 500, 0, 0
              DiskWrite,  3000, my prog (  9),  80, 0xfffffa80, 0x0000004000, 0x00000200, 100, 1, 0
              FileIoOpEnd, 3000, x
               DiskRead,  3001, System (   4),  72, 0xfffffa80, 0x0000006000, 0x00001000,   1, 0, 0
""",
    "iolog": """\
fio version 3 iolog
16 /dev/sda add
131 /dev/sda open
138 /dev/sda read 61440 4096
155 /dev/sda write 774144 8192
156 /dev/sda sync 0 0
168 /dev/sda trim 4096 4096
183 /dev/sda close
""",
    "mqfair": """\
mqfair trace 1
# a remark
7 read 4096 16384 prod/db
1250000 write 1048576 4096 a%20b
""",
}
READ_AS = {
    "spc": [
        Request(0, WRITE, 20941264 * 512, 8192, "asu0"),
        Request(2335000, READ, 20939840 * 512, 8192, "asu1"),
        Request(1002335000, READ, 16 * 512, 512, "asu0"),
    ],
    "systor": [
        Request(0, READ, 3398356992, 65536, "lun1"),
        Request(1, WRITE, 4096, 8192, "lun1"),
        Request(1497817000, READ, 512, 1024, "lun2"),
    ],
    "msr": [
        Request(0, READ, 383496192, 32768, "hm-0"),
        Request(100, WRITE, 2822144, 4096, "hm-1"),
        Request(NS, WRITE, 0, 512, "hm-0"),
    ],
    "blkparse": [
        Request(0, WRITE, 223490 * 512, 4096, "8:0"),
        Request(2000000, READ, 8192, 131072, "8:0"),
        Request(3000000, TRIM, 0, 1 << 20, "259:0"),
    ],
    "blkparse-issue": [
        Request(0, READ, 1953400 * 512, 4096, "259:0"),
        Request(231870, WRITE, 8812032 * 512, 16384, "259:0"),
    ],
    "ftrace": [
        Request(0, READ, 10973568 * 512, 4096, "259:0"),
        Request(2000, WRITE, 16 * 512, 4096, "259:0"),
    ],
    "ftrace-issue": [
        Request(0, WRITE, 20973568 * 512, 4096, "259:0"),
        Request(281000, READ, 8192, 8192, "259:0"),
    ],
    "biosnoop": [
        Request(0, READ, 4096, 8192, "nvme0n1"),
        Request(263000, WRITE, 8192, 16384, "nvme0n1"),
        Request(4201000, WRITE, 16384, 4096, "sda"),
    ],
    "alibaba": [
        Request(0, WRITE, 8792731648, 16384, "disk419"),
        Request(150000, READ, 59110326272, 360448, "disk725"),
        Request(1150000, READ, 350868463616, 8192, "disk419"),
    ],
    "tencent": [
        Request(0, READ, 12910952 * 512, 65536, "volume1063"),
        Request(0, WRITE, 6338688 * 512, 4096, "volume1627"),
        Request(NS, READ, 1904106 * 512, 196608, "volume1063"),
    ],
    "fiu": [
        Request(0, WRITE, 904265560 * 512, 4096, "6:0"),
        Request(1000, READ, 8192, 8192, "6:1"),
        Request(2500, WRITE, 16384, 4096, "6:0"),
    ],
    "disksim": [
        Request(0, READ, 41238712 * 512, 8192, "disk0"),
        Request(3512000, WRITE, 72193008 * 512, 4096, "disk0"),
        Request(4500000, READ, 4096, 4096, "disk1"),
    ],
    "etw": [
        Request(0, READ, 8192, 4096, "disk0"),
        Request(1900000, WRITE, 16384, 512, "disk1"),
        Request(2000000, READ, 24576, 4096, "disk0"),
    ],
    "iolog": [
        Request(138000, READ, 61440, 4096, "/dev/sda"),
        Request(155000, WRITE, 774144, 8192, "/dev/sda"),
        Request(168000, TRIM, 4096, 4096, "/dev/sda"),
    ],
    "mqfair": [
        Request(7, READ, 4096, 16384, "prod/db"),
        Request(1250000, WRITE, 1048576, 4096, "a b"),
    ],
}
# (format, line of the sample that is replaced, its new text, the message after FILE:LINE).
WRONG = [
    ("spc", 2, "0,1,2", "'0,1,2': 3 fields: write ASU,LBA,SIZE,OPCODE,SECONDS"),
    ("spc", 2, "0,x,512,R,1.0", "'x': LBA, in blocks of 512 bytes, is a whole number"),
    ("spc", 3, "0,1,-512,R,1.0", "'-512': SIZE in bytes is a whole number from 0 on"),
    ("spc", 3, "0,1,512,Q,1.0", "'Q': an operation is r, w"),
    ("spc", 3, "0,1,512,R,1e3", "'1e3': TIMESTAMP is a number of seconds"),
    ("systor", 3, "1,0,R,1,0", "5 fields: write Timestamp,Response,IOType,LUN,Offset,Size"),
    ("systor", 3, "1,soon,R,1,0,512", "'soon': Response is a number of seconds"),
    ("systor", 3, "1,0,R,one,0,512", "'one': LUN is a whole number from 0 on"),
    ("msr", 2, "1.5,hm,0,Read,0,512,1", "'1.5': Timestamp, in ticks of 100 ns, is a whole number"),
    ("msr", 2, "1,hm,0,Trim,0,512,1", "'Trim': an operation is read, write"),
    ("msr", 3, "1,hm,0,Read,0,٤,1", "'٤': Size in bytes is a whole number"),
    ("blkparse", 2, "8,0 3 11 0.0095 697 Q W 2 / 4 [x]", "'2 / 4 [x]': write SECTOR + SECTORS"),
    ("blkparse", 2, "8,0 3 11 now 697 Q W 2 + 8", "write DEVICE CPU NUMBER SECONDS PID"),
    ("blkparse", 2, "8,0 3 11 0.5 697 Q W 2 + x", "'x': the number of sectors is a whole number"),
    (
        "ftrace",
        4,
        " a-1 [0] . 1.5: block_bio_queue: 8,0 R 2 + x [a]",
        "write the fields of block_bio",
    ),
    ("biosnoop", 3, "0.1 a 1 sda R 8", "write TIME(s) COMM PID DISK T SECTOR BYTES QUE(ms)"),
    ("biosnoop", 4, "0.1 a 1 sda R 8 x 0.1 0.1", "'x': BYTES is a whole number"),
    ("biosnoop", 2, "0.1 a 1 sda R 8 512 0.1", "the head is missing: write its line above"),
    ("alibaba", 2, "1,X,0,512,1", "'X': an operation is r, w"),
    ("alibaba", 2, "1,R,0,512", "4 fields: write device_id,opcode,offset,length,timestamp"),
    ("tencent", 2, "1,0,8,2,1", "'2': an operation is 0, 1"),
    ("fiu", 2, "0 1 a 8 8 W 6", "write NS PID PROCESS LBA BLOCKS OPERATION MAJOR MINOR"),
    ("disksim", 2, "0.5 0 8 8", "write MS DEVICE BLOCK BLOCKS FLAGS"),
    ("etw", 4, "DiskRead, 1, a, 2, 0x1, here, 0x200, 1, 0", "'here': ByteOffset is a hexadecimal"),
    ("etw", 4, "DiskRead, 1, a, 2, 0x1, -0x1, 0x200, 1, 0", "'-0x1': ByteOffset is a hexadecimal"),
    ("etw", 4, "DiskRead, 1, a, 2", "4 fields: write DiskRead, TimeStamp"),
    ("iolog", 1, "fio version 1 iolog", "the first line is fio version 2 iolog or fio version 3"),
    ("iolog", 4, "138 /dev/sda peek 0 512", "'peek': an action is read, write, trim, add, open"),
    ("iolog", 4, "138 /dev/sda wait 1 0", "'wait': an action is read, write, trim"),
    ("iolog", 4, "138 /dev/sda read 0", "write FILE read OFFSET BYTES"),
    ("iolog", 4, "soon /dev/sda read 0 1", "'soon': the time in µs is a whole number"),
    ("mqfair", 3, "7 read 4096 512", "write NS OPERATION OFFSET BYTES SOURCE"),
    ("mqfair", 3, "7 erase 4096 512 a", "'erase': an operation is read, write, trim"),
]


@pytest.fixture
def sample(tmp_path):
    def make(name, text=None):
        path = tmp_path / f"{name}.trace"
        path.write_text(SAMPLES[name] if text is None else text)
        return str(path)

    return make


def mixed(count, seed=1):
    """@count requests of two profiles."""
    half = count // 2
    pair = (itertools.islice(generate(name, seed), half) for name in ("lun1", "lun3"))
    return sorted(itertools.chain(*pair))


def as_native(path, requests):
    path.write_text("".join(f"{line}\n" for line in (native.HEAD, *map(native.line_of, requests))))
    return str(path)


# -------------------------------------------------------------------------- reading


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_is_known_by_its_content_and_its_units_are_exact(sample, name):
    trace = Trace(sample(name), name if name.endswith("-issue") else None)
    assert trace.format.name == name
    assert list(trace.requests()) == READ_AS[name]


@pytest.mark.parametrize(("name", "line", "text", "message"), WRONG)
def test_a_malformed_line_is_named_with_file_line_and_remedy(sample, name, line, text, message):
    lines = SAMPLES[name].splitlines()
    lines[line - 1] = text
    path = sample(name, "\n".join(lines) + "\n")
    with pytest.raises(UsageError) as caught:
        list(Trace(path, name).requests())
    assert str(caught.value).startswith(f"{path}:{line}: '")
    assert message in str(caught.value)


@pytest.mark.parametrize("digits", [20, 400, 5000])
@pytest.mark.parametrize("name", FORMATS)
def test_no_number_of_a_line_is_too_long_for_the_figures(sample, run, name, digits):
    """Each number of the sample, one at a time, is many nines."""
    text = SAMPLES[name]
    refused = 0
    for match in re.finditer(r"\b(0x)?\d+\b", text):
        path = sample(
            name, f"{text[: match.start()]}{match[1] or ''}{'9' * digits}{text[match.end() :]}"
        )
        got = run("trace", path, "--format", name)
        assert got.err.count("\n") == (got.code == 2)
        assert len(got.err) < 1000
        refused += f"{'9' * 20}" in got.err and " is at most " in got.err
    assert refused >= 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("18446744073709551615", ""),
        ("00000000000000000000018446744073709551615", ""),
        ("18446744073709551616", ":2: '18446744073709551616': the offset in bytes is at most 1844"),
    ],
)
def test_numbers_have_64_bits(sample, run, text, message):
    path = sample("mqfair", f"mqfair trace 1\n0 read {text} 512 a\n")
    got = run("trace", path)
    assert (got.code, message in got.err) == (2 if message else 0, True)


@pytest.mark.parametrize("name", FORMATS)
def test_any_damage_of_a_line_is_a_usage_error_or_another_request(sample, name):
    rng = random.Random(name)
    for _ in range(200):
        text = list(SAMPLES[name])
        text[rng.randrange(len(text))] = rng.choice("\0 ,x-9\n")
        try:
            list(Trace(sample(name, "".join(text)), name).requests())
        except UsageError as error:
            assert f"{name}.trace:" in str(error)


def test_waits_of_version_2_are_milliseconds_from_the_start(sample):
    text = "fio version 2 iolog\n/d add\n/d open\n/d read 0 512\n/d wait 300 0\n/d write 512 512\n"
    assert [one.at_ns for one in Trace(sample("iolog", text)).requests()] == [0, 300_000_000]


def test_gzip_is_read_and_damage_of_it_is_told(sample, tmp_path):
    path = tmp_path / "packed"
    packed = gzip.compress(SAMPLES["msr"].encode())
    path.write_bytes(packed)
    assert list(Trace(str(path)).requests()) == READ_AS["msr"]
    path.write_bytes(packed[:-9])
    with pytest.raises(UsageError, match=r"packed: damaged after line \d+: .*: copy it again"):
        list(Trace(str(path), "msr").requests())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty: name a trace file"),
        (b"\x81\xfe\x00", "x:1: no text in UTF-8: name a trace file, or convert it: iconv"),
        (b"hello\n", "x:1: 'hello': none of the formats spc, systor"),
    ],
)
def test_a_file_that_is_no_trace(tmp_path, content, message):
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        Trace(str(path))
    assert message in str(caught.value)


def test_blkparse_is_read_as_version_1_2_0_prints_it_with_its_options(sample):
    """With and without -q, -t, -s and -v: notes, totals and the last line follow the events."""
    event = "259,0    0        3     0.000001000  4020  Q   R 399368 + 8 [fio]"
    others = (
        "259,0    0        4     0.000003000  4020 UT   N [fio] 1",
        "259,0    0        7     0.000004000  4020  I   R 399368 + 8 (    3000) [fio]",
        "259,0    0        9     0.000006000  4020  C   R 399368 + 8 (18446633686767874557) [0]",
        "259,0    0       45     0.006036000  4020  Q FWS [fio]",
        "259,0    0       47     0.006038000  4020  X   W 1000 / 1008 [fio]",
        "259,1    0       48     0.006039000  4020  A   R 1000 + 8 <- (259,0) 900",
        "259,0    0       55     0.006046000  4020  Q   R 512 [fio]",
        "259,0    0       55     0.006046000  4020  Q   R 512 (12 00 00 00 24 00 ..) [fio]",
        "259,0    0       57     0.006048000  4020  C   R (12 00 00 00 24 00 ..) [0]",
        "259,0    0       58     0.006048000     0  m   N cfq4020 served",
        "Web Content (77)",
        " Reads Queued:           1,        4KiB\t Writes Queued:           0,        0KiB",
        "CPU0 (d):",
        "Throughput (R/W): 1333KiB/s / 2666KiB/s",
        "Skips: 0 forward (0 -   0.0%)",
        "Input file d.blktrace.0 added",
    )
    want = [Request(0, READ, 399368 * 512, 4096, "259:0")]
    for other in others:
        for lines in ((event, other), (other, event)):
            trace = Trace(sample("blkparse", "\n".join(lines) + "\n"))
            assert list(trace.requests()) == want, other


@pytest.mark.parametrize("name", ["blkparse-issue", "ftrace-issue"])
def test_a_trace_of_issues_alone_names_the_format_that_reads_them(sample, run, name):
    lines = [one for one in SAMPLES[name].splitlines(True) if "bio_queue" not in one]
    path = sample(name, "".join(lines))
    got = run("trace", path)
    assert (got.code, got.out) == (2, "")
    assert f"no arrivals: read these with mqfair trace --format {name}, and for a job" in got.err
    out = f"{path}.new"
    assert run("trace", path, "--format", name, "--out", out).code == 0
    assert len(list(Trace(out).requests())) == 2


PACKERS = {
    "xz": (["xz", "-zc"], "compressed with xz: xz -dc"),
    "zst": (["zstd", "-qc"], "compressed with zstd: zstd -dc"),
    "bz2": (["bzip2", "-zc"], "compressed with bzip2: bzip2 -dc"),
    "utf16": (["iconv", "-f", "UTF-8", "-t", "UTF-16"], "in UTF-16: iconv -f UTF-16 -t UTF-8"),
}


@pytest.mark.parametrize("suffix", PACKERS)
def test_the_command_for_a_packed_trace_makes_one_that_is_read(tmp_path, run, suffix):
    argv, said = PACKERS[suffix]
    if shutil.which(argv[0]) is None:
        pytest.skip(f"{argv[0]} is missing")
    path = tmp_path / f"a trace.csv.{suffix}"
    text = SAMPLES["msr"].encode()
    path.write_bytes(subprocess.run(argv, input=text, capture_output=True, check=True).stdout)
    got = run("trace", str(path))
    assert got.code == 2
    assert f"{path}: {said} '{path}' > 'a trace.csv'" in got.err
    command = got.err.strip().rpartition(": ")[2]
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True)
    assert list(Trace(str(tmp_path / "a trace.csv")).requests()) == READ_AS["msr"]


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_a_tar_archive_is_named_also_in_gzip(tmp_path, mode):
    member = tmp_path / "hm_0.csv"
    member.write_text(SAMPLES["msr"])
    path = tmp_path / "traces"
    with tarfile.open(path, mode) as archive:
        archive.add(member, member.name)
    what = "compressed with xz: xz -dc" if mode == "w:xz" else "a tar archive: tar -xf"
    with pytest.raises(UsageError) as caught:
        Trace(str(path))
    assert f"{path}: {what} {path}" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04....", "a zip archive: unzip x, and name a file of it"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive: 7z x x"),
        (b"\x07tae\0\0", "a binary trace of blktrace: blkparse -q -i - < x > x.txt"),
        (b"PERFILE2", "a recording of perf: perf script -i x > x.txt"),
        (b"\x17\x08Dtracing", "a recording of trace-cmd: trace-cmd report -i x > x.txt"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS: git lfs pull"),
        (b"\n<!DOCTYPE html>\n", "a page for a browser: download the file itself"),
        (b"PAR1\x15", "a Parquet file: write it as a line `mqfair trace 1`"),
        (b'{"op": "read"}\n', "JSON: write it as a line `mqfair trace 1`"),
        (b"TIME(ms) DISK COMM PID LAT(ms)\n0 a b 1 2\n", "write it as a line `mqfair trace 1`"),
    ],
)
def test_another_kind_of_file_gets_its_name_and_the_way_to_a_trace(
    tmp_path, monkeypatch, content, message
):
    monkeypatch.chdir(tmp_path)
    for packed in (content, gzip.compress(content)):
        (tmp_path / "x").write_bytes(packed)
        for name in (None, "msr"):
            if name and "TIME" in content.decode(errors="replace"):
                continue
            with pytest.raises(UsageError) as caught:
                list(Trace("x", name).requests())
            assert str(caught.value).startswith("x:")
            assert message in str(caught.value)


def test_the_binary_of_one_cpu_of_blktrace_is_parsed_with_those_of_the_others(tmp_path):
    path = tmp_path / "nvme0n1.blktrace.3"
    path.write_bytes(b"\x07tae")
    with pytest.raises(UsageError, match=rf"blkparse -q -i {path} > {path.name}.txt"):
        Trace(str(path))


def test_the_advised_lines_are_a_trace(sample):
    lines = re.findall(r"`([^`]+)`", native.ADVICE)
    path = sample("mqfair", "\n".join(lines) + "\n")
    assert list(Trace(path).requests()) == [Request(1250000, READ, 4096, 16384, "disk")]


def test_a_mark_of_the_byte_order_is_no_part_of_the_text(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"\xef\xbb\xbf" + SAMPLES["msr"].encode())
    assert list(Trace(str(path)).requests()) == READ_AS["msr"]


def test_requests_are_sorted_within_a_window_and_refused_beyond_it(sample, monkeypatch):
    lines = ["0,1,512,R,0.5", "0,2,512,R,0.2", "0,3,512,R,0.2", "0,4,512,R,0.9"]
    path = sample("spc", "\n".join(lines) + "\n")
    found = list(Trace(path).requests())
    assert [one.offset // 512 for one in found] == [2, 3, 1, 4]
    assert [one.at_ns for one in found] == [0, 0, 300_000_000, 700_000_000]
    monkeypatch.setattr(reader, "WINDOW", 1)
    with pytest.raises(UsageError, match=r":3: its time is .* ns before .*: sort the file"):
        list(Trace(sample("spc", "0,1,512,R,0.5\n0,2,512,R,0.6\n0,3,512,R,0.2\n")).requests())


def test_a_long_trace_needs_little_memory(tmp_path):
    path = tmp_path / "long.csv"
    with path.open("w") as file:
        for number in range(60_000):
            file.write(f"{number * 1000},hm,0,Read,{number * 4096},4096,1\n")
    tracemalloc.start()
    try:
        assert describe(Trace(str(path)).requests()).whole.requests == 60_000
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


# ----------------------------------------------------------------------- conversion


@pytest.mark.parametrize(("to", "unit_ns"), [("mqfair", 1), ("iolog", 1000), ("iolog2", 10**6)])
def test_a_conversion_keeps_requests_bytes_and_times(tmp_path, capsys, to, unit_ns):
    from mqfair.__main__ import main

    before = mixed(2000)
    source = as_native(tmp_path / "in", before)
    out = tmp_path / "out"
    assert main(["trace", source, "--out", str(out), "--to", to]) == 0
    after = list(Trace(str(out)).requests())
    assert [one[1:4] for one in after] == [one[1:4] for one in before]
    # fio's version 3 begins at 1 µs.
    begin = 1 if to == "iolog" else 0
    assert [one.at_ns // unit_ns - begin for one in after] == [
        one.at_ns // unit_ns for one in before
    ]
    assert "2000 requests of" in capsys.readouterr().out


def test_dealt_files_have_each_request_once(tmp_path):
    before = mixed(999)
    source = as_native(tmp_path / "in", before)
    names = deal(Replay(source, 4), "mqfair", tmp_path)
    parts = [list(Trace(str(tmp_path / name)).requests()) for name in names]
    assert [len(part) for part in parts] == [250, 250, 249, 249]
    assert sorted(itertools.chain(*parts)) == before
    assert deal(Replay(source, 4), "mqfair", tmp_path) == names


def test_time_scale_and_no_stall(tmp_path):
    source = as_native(tmp_path / "in", [Request(1000, READ, 0, 512, "a")])
    assert [one.at_ns for one in Replay(source, scale=200).requests()] == [500]
    assert [one.at_ns for one in Replay(source, scale=50).requests()] == [2000]
    assert [one.at_ns for one in Replay(source, no_stall=True).requests()] == [0]


def test_changes_of_places():
    moved = Change(size=1 << 20, align=4096).made(
        [Request(5, READ, (1 << 30) + 100, 512, "a"), Request(6, READ, 4000, 200, "a")]
    )
    first, second = moved
    assert (first.at_ns, second.at_ns) == (0, 1)
    assert first.offset % 4096 == 0 and first.bytes == 4096
    assert first.offset + first.bytes <= 1 << 20
    assert (second.offset, second.bytes) == (0, 8192)


@pytest.mark.parametrize("align", [1, 512, 4096])
def test_moved_requests_stay_inside(align):
    size = 1 << 20
    for one in Change(size=size, align=align).made(mixed(500)):
        assert one.offset + one.bytes <= size
        assert one.offset % align == one.bytes % align == 0
        assert one.offset % SECTOR == 0


def test_split_makes_one_file_for_each_source_and_keeps_times(tmp_path):
    before = [*mixed(100), Request(10**12, READ, 0, 512, "a/b c"), Request(10**12, READ, 0, 1, "/")]
    parts = split(before, tmp_path)
    assert parts == {"lun1": 50, "lun3": 50, "a-b-c": 1, "root": 1}
    found = itertools.chain(*(Trace(str(tmp_path / part_of(one))).requests() for one in parts))
    assert sorted(found) == sorted(before)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request(0, TRIM, 0, 512, "a"), ":2: a trim is not replayed: leave it out"),
        (Request(0, READ, 100, 512, "a"), ":2: 512 bytes at 100: a drive has sectors of 512"),
        (Request(0, READ, 0, 100, "a"), ":2: 100 bytes at 0: a drive has sectors of 512 bytes"),
        (Request(0, READ, 1 << 20, 512, "a"), ":2: it ends at byte 1049088, and the drive at"),
        (Request(0, READ, 0, 2 << 30, "a"), ":2: 2147483648 bytes: a replayed request has at"),
    ],
)
def test_a_request_that_cannot_be_replayed_is_named(tmp_path, request_, message):
    source = as_native(tmp_path / "in", [request_])
    with pytest.raises(UsageError) as caught:
        require_inside(Replay(source), 1 << 20)
    assert str(caught.value).startswith(f"{source}{message}")


@pytest.mark.parametrize("name", ["plain", "a b", "it's", "$HOME", "a\nb"])
@pytest.mark.parametrize(
    "request_",
    [
        Request(0, TRIM, 0, 512, "a"),
        Request(0, READ, 0, 100, "a"),
        Request(0, READ, 1 << 20, 512, "a"),
    ],
)
def test_the_printed_mend_is_one_that_a_shell_runs(tmp_path, run, monkeypatch, name, request_):
    """The trace is in a folder of such a name."""
    (tmp_path / name).mkdir()
    source = as_native(tmp_path / name / "in", [request_, Request(0, READ, 0, 512, "a")])
    with pytest.raises(UsageError) as caught:
        require_inside(Replay(source), 1 << 20)
    (command,) = re.findall(r"`mqfair (.*)`", str(caught.value))
    monkeypatch.chdir(tmp_path)
    assert run(*words_of(command)).code == 0
    require_inside(Replay("NEW"), 1 << 20)
    measured.cache_clear()


@pytest.mark.parametrize("name", ["plain", "a b", "$HOME", "a\nb"])
def test_the_printed_command_names_the_job_file(tmp_path, run, name):
    folder = tmp_path / name
    source = as_native(tmp_path / "in", mixed(100))
    said = run("trace", source, "--split", str(folder)).out
    (command,) = re.findall(r"run it: mqfair (.*)", said)
    assert words_of(command) == ["sim", str(folder / "replay.fio")]


def words_of(command):
    """The words of @command, as bash takes them."""
    argv = ["bash", "-c", f"printf '%s\\0' {command}"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split("\0")[:-1]


# ----------------------------------------------------------------------- generators


# The figures as their sources state them: mean KiB of reads and of writes, reads in percent,
# requests in order in percent, and the rate: ms between requests, MB/s, or requests in a week.
PUBLISHED = {
    "financial": (4.38, 4.38, 9.0, 2.0, (133.50, "ms")),
    "websearch": (14.86, 14.86, 99.0, 14.0, (9.97, "ms")),
    "lun0": (31.1, 31.1, 100 * 3.44 / 4.44, 0.0, (462.45, "MB/s")),
    "lun1": (24.8, 24.8, 100 * 3.19 / 4.19, 0.0, (540.66, "MB/s")),
    "lun2": (50.4, 50.4, 100 * 2.78 / 3.78, 0.0, (364.98, "MB/s")),
    "lun3": (63.7, 63.7, 100 * 1.60 / 2.60, 0.0, (476.54, "MB/s")),
    "hm_0": (7.4, 8.3, 35.5, 0.0, (3_993_316, "a week")),
}
MANY = 60_000


@pytest.mark.parametrize("name", PROFILES)
def test_a_generated_trace_has_the_figures_of_its_source(name):
    """Within three standard errors of the generator's own distribution, or 3 %."""
    read_kib, write_kib, reads, in_order, (rate, unit) = PUBLISHED[name]
    requests = list(itertools.islice(generate(name, 5), MANY))
    whole = describe(requests).whole
    for op, kib in (("read", read_kib), ("write", write_kib)):
        sizes = [one.bytes for one in requests if one.op == op]
        error = 3 * statistics.stdev(sizes) / len(sizes) ** 0.5
        assert abs(statistics.fmean(sizes) - kib * 1024) < max(error, 0.03 * kib * 1024)
    assert 100 * whole.reads / MANY == pytest.approx(reads, abs=0.6)
    assert 100 * whole.sequential / MANY == pytest.approx(in_order, abs=0.5)
    found = {
        "ms": 1e3 / whole.iops,
        "MB/s": whole.bytes_per_s / 1e6,
        "a week": whole.iops * 7 * 24 * 3600,
    }
    assert found[unit] == pytest.approx(rate, rel=0.03)
    assert not whole.unaligned and whole.end <= 1 << 30


def test_the_document_has_the_figures_of_the_profiles():
    lines = (ROOT / "doc/traces.md").read_text().splitlines()
    rows = [[one.strip() for one in line.strip("|").split("|")] for line in lines if "| `" in line]
    found = {row[0].strip("`"): row[1:5] for row in rows if row[0].strip("`") in PROFILES}
    assert set(found) == set(PROFILES)
    for name, (reads, size, rate, in_order) in found.items():
        one = PROFILES[name]
        mean = one.reads * one.read_bytes + (1 - one.reads) * one.write_bytes
        assert float(reads.removesuffix(" %")) == pytest.approx(100 * one.reads, abs=0.06)
        assert float(size.removesuffix(" KiB")) == pytest.approx(mean / 1024, abs=0.06)
        assert float(rate.replace(",", "")) == pytest.approx(one.iops, rel=0.006)
        assert float(in_order.removesuffix(" %") or 0) == pytest.approx(100 * one.sequential)


def test_the_seed_decides():
    first, same, other = (list(itertools.islice(generate("lun0", n), 50)) for n in (1, 1, 2))
    assert first == same != other


# ---------------------------------------------------------------------- the command


def test_the_command_shows_figures_by_source(sample, run):
    got = run("trace", sample("blkparse"))
    assert (got.code, got.err) == (0, "")
    assert "blkparse, 0.003 s, 1.1 MiB" in got.out
    assert "1 trims: a replay needs --without trim" in got.out
    assert [line.split()[0] for line in got.out.splitlines() if ":0 " in line] == ["8:0", "259:0"]


def test_figures_as_json(sample, run):
    found = json.loads(run("trace", sample("msr"), "--json").out)
    assert found["schema"] == "mqfair.trace/1"
    assert (found["format"], found["requests"], found["reads"]) == ("msr", 3, 1)
    assert found["bytes"] == 32768 + 4096 + 512
    assert found["seconds"] == 1.0
    assert found["iops"] == 2.0
    assert list(found["sources"]) == ["hm-0", "hm-1"]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "name a trace file, or --generate with a profile"),
        (["{}", "--generate", "lun0"], "name a trace file, or --generate with a profile"),
        (["{}", "--requests", "0"], "--requests 0: use a whole number from 1 on"),
        (["{}", "--requests", "9" * 5000], "…: use a whole number from 1 on, of at most 18 digits"),
        (
            ["{}", "--size", "9" * 5000],
            "…: use at least 1048576 bytes, such as 4k or 1g, of at most",
        ),
        (["{}", "--align", "9" * 5000], "…: use at least 1 bytes, such as 4k or 1g, of at most"),
        (["{}", "--align", "3"], "--align 3: use a power of two up to 1m"),
        (["{}", "--size", "1k"], "--size 1k: use at least 1048576 bytes"),
        (["{}", "--out", "a", "--split", "b"], "--out a: not beside --split: use one of them"),
        (["{}", "--out", "{}"], "it is a file that is read: name another file"),
        (["{}", "--source", "x", "--out", "y"], "no request is left: check --source"),
        (["{}", "--format", "cassette"], "unknown --format 'cassette': use spc, systor"),
        (["--generate", "lun0", "--format", "spc"], "--format spc: is for a file: leave it out"),
        (["--generate", "lun0", "--source", "x"], "--source x: is for a file: leave it out"),
        (
            ["--generate", "lun0", "--without", "write", "--without", "read"],
            "--without: a generated trace has reads and writes: keep one of them",
        ),
    ],
)
def test_wrong_command_lines(sample, run, argv, message):
    path = sample("msr")
    got = run("trace", *(word.replace("{}", path) for word in argv))
    assert got.code == 2
    assert message in got.err


def test_a_malformed_trace_leaves_no_file(sample, run, tmp_path):
    path = sample("msr", "1,hm,0,Read,0,x,1\n")
    out = tmp_path / "new"
    got = run("trace", path, "--format", "msr", "--out", str(out))
    assert (got.code, out.exists()) == (2, False)
    assert got.err.startswith(f"mqfair: {path}:1: 'x': Size in bytes is a whole number")
