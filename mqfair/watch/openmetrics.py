# SPDX-License-Identifier: GPL-2.0
"""Metrics as text: OpenMetrics 1.0, and the older format of Prometheus, which node_exporter reads.

They differ in the name of a counter, which has the ending _total: OpenMetrics has it on the sample
alone, and the older format on the family too.
"""

import gzip
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from wsgiref.types import StartResponse, WSGIEnvironment

OPENMETRICS = "application/openmetrics-text"
OPENMETRICS_TYPE = f"{OPENMETRICS}; version=1.0.0; charset=utf-8"
PLAIN_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ENDINGS = {"counter": "_total", "info": "_info", "gauge": ""}


@dataclass(frozen=True)
class Sample:
    name: str
    labels: dict[str, str]
    value: float


@dataclass
class Family:
    """One metric. @type is gauge, counter or info."""

    name: str
    text: str
    type: str = "gauge"
    labels: Sequence[str] = ()
    samples: list[Sample] = field(default_factory=list)

    def add(self, values: Sequence[str], value: float) -> None:
        labels = dict(zip(self.labels, values, strict=True))
        self.samples.append(Sample(self.name + _ENDINGS[self.type], labels, float(value)))


def openmetrics(families: Iterable[Family]) -> str:
    return "".join([*_lines(families), "# EOF\n"])


def plain(families: Iterable[Family]) -> str:
    return "".join(_lines(families, plain=True))


def _lines(families: Iterable[Family], plain: bool = False) -> Iterator[str]:
    for family in families:
        name, kind = family.name, family.type
        if plain:
            name += _ENDINGS[kind]
            kind = "gauge" if kind == "info" else kind
        text = _escaped(family.text) if plain else _quoted(family.text)
        yield f"# HELP {name} {text}\n# TYPE {name} {kind}\n"
        for sample in family.samples:
            pairs = (f'{key}="{_quoted(one)}"' for key, one in sorted(sample.labels.items()))
            labels = ",".join(pairs)
            yield f"{sample.name}{'{' + labels + '}' if labels else ''} {sample.value!r}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', r"\"")


def application(
    collect: Callable[[], Iterable[Family]],
) -> Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]:
    """A WSGI application that answers every path with the figures of that moment."""

    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        method = environ.get("REQUEST_METHOD", "GET")
        if method not in ("GET", "HEAD"):
            start("405 Method Not Allowed", [("Allow", "GET, HEAD"), ("Content-Length", "0")])
            return [b""]
        newer = OPENMETRICS in environ.get("HTTP_ACCEPT", "")
        families = collect()
        body = (openmetrics(families) if newer else plain(families)).encode()
        headers = [("Content-Type", OPENMETRICS_TYPE if newer else PLAIN_TYPE)]
        if _takes_gzip(environ.get("HTTP_ACCEPT_ENCODING", "")):
            body = gzip.compress(body)
            headers.append(("Content-Encoding", "gzip"))
        headers.append(("Content-Length", str(len(body))))
        start("200 OK", headers)
        return [b"" if method == "HEAD" else body]

    return answer


def _takes_gzip(accepted: str) -> bool:
    return any(word.partition(";")[0].strip().lower() == "gzip" for word in accepted.split(","))
