# SPDX-License-Identifier: GPL-2.0
"""Block traces: readers, a writer for replay, figures, and generators.

    request.py      one request of a trace, and the units of its numbers
    formats.py      the table of formats, and the guess from a file's first lines
    spc.py, systor.py, msr.py, alibaba.py, tencent.py, fiu.py, disksim.py, etw.py, biosnoop.py,
    blkparse.py, ftrace.py, iolog.py, native.py     one format each
    foreign.py      the kinds of files that are no text, and the commands that make one of them
    reader.py       a file as a stream of requests in the order of time
    replay.py       the files that fio and sim-run replay
    figures.py      counts, sizes and rates
    generators.py   traces with the published characteristics of those that cannot be shipped

The package needs the standard library alone. A trace is a stream: a million lines need a few MiB.
"""
