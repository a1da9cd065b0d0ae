# SPDX-License-Identifier: GPL-2.0
"""The formats of the metrics, against the parsers of another implementation, and over HTTP."""

import gzip

import pytest

from mqfair.watch import openmetrics
from mqfair.watch.openmetrics import Family

ODD = 'a"b\\c\nd é'


@pytest.fixture
def families():
    info = Family("one", "The command.", "info", ("version",))
    info.add(["0.3.0"], 1)
    counter = Family("one_bytes", "Bytes.", "counter", ("disk", "cgroup"))
    counter.add(["sda", ODD], 12345678901)
    counter.add(["sdb", "/"], 0)
    gauge = Family("one_loaded", 'A "quoted" \\ text.')
    gauge.add([], 0.00064)
    return [info, counter, gauge]


@pytest.mark.parametrize("form", ["openmetrics", "plain"])
def test_another_program_reads_what_was_meant(families, form):
    pytest.importorskip("prometheus_client")
    if form == "plain":
        from prometheus_client.parser import text_string_to_metric_families as parse
    else:
        from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
    found = list(parse(getattr(openmetrics, form)(families)))
    samples = {(s.name, *sorted(s.labels.items())): s.value for f in found for s in f.samples}
    assert samples == {
        ("one_info", ("version", "0.3.0")): 1.0,
        ("one_bytes_total", ("cgroup", ODD), ("disk", "sda")): 12345678901.0,
        ("one_bytes_total", ("cgroup", "/"), ("disk", "sdb")): 0.0,
        ("one_loaded",): 0.00064,
    }
    assert [f.documentation for f in found][1:] == ["Bytes.", 'A "quoted" \\ text.']
    assert [f.type for f in found][1:] == ["counter", "gauge"]


def asked(families, **environ):
    """The status, the headers and the body of one answer."""
    started = []
    app = openmetrics.application(lambda: families)
    body = b"".join(app(environ, lambda status, headers: started.append((status, dict(headers)))))
    ((status, headers),) = started
    return status, headers, body


def test_the_format_is_the_one_that_is_asked_for(families):
    status, headers, body = asked(families)
    assert (status, headers["Content-Type"]) == ("200 OK", openmetrics.PLAIN_TYPE)
    assert body.decode() == openmetrics.plain(families)
    accepted = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"
    _, headers, body = asked(families, HTTP_ACCEPT=accepted)
    assert headers["Content-Type"] == openmetrics.OPENMETRICS_TYPE
    assert body.decode() == openmetrics.openmetrics(families)


@pytest.mark.parametrize(("accepted", "packed"), [("deflate, gzip;q=1", True), ("identity", False)])
def test_an_answer_is_packed_for_those_that_take_it(families, accepted, packed):
    _, headers, body = asked(families, HTTP_ACCEPT_ENCODING=accepted)
    assert (headers.get("Content-Encoding") == "gzip") is packed
    assert int(headers["Content-Length"]) == len(body)
    text = gzip.decompress(body) if packed else body
    assert text.decode() == openmetrics.plain(families)


def test_other_methods(families):
    _, full, body = asked(families)
    status, headers, none = asked(families, REQUEST_METHOD="HEAD")
    assert (status, none) == ("200 OK", b"")
    assert headers == full and int(full["Content-Length"]) == len(body)
    status, headers, none = asked(families, REQUEST_METHOD="POST")
    assert (status, headers["Allow"], none) == ("405 Method Not Allowed", "GET, HEAD", b"")
