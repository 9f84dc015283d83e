"""Archives that tests and benchmarks write, by warcio, which the package has no part in."""

from __future__ import annotations

import gzip
import io
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

if TYPE_CHECKING:
    from collections.abc import Iterable

DATE = "2026-01-02T03:04:05Z"
IP = "192.0.2.7"


class _Writer(WARCWriter):  # type: ignore[misc]
    """Without a temporary file, which warcio leaves open."""

    def _create_temp_file(self) -> io.BytesIO:
        return io.BytesIO()


@dataclass(frozen=True)
class Exchange:
    """A response as it came over the wire."""

    url: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "text/html"),)
    status: str = "200 OK"

    @property
    def message(self) -> bytes:
        lines = [f"HTTP/1.1 {self.status}", *(f"{name}: {value}" for name, value in self.headers), "", ""]
        return "\r\n".join(lines).encode("latin-1") + self.body


@dataclass
class Written:
    """An archive in memory. ``ends`` are the offsets behind its records, the first one that of a warcinfo."""

    data: bytes
    ends: list[int] = field(default_factory=list)

    def span(self, number: int) -> tuple[int, int]:
        """Where a record begins and ends."""
        return (self.ends[number - 1] if number else 0), self.ends[number]


def warc(exchanges: Iterable[Exchange], *, packed: bool = True, requests: bool = False) -> Written:
    """A WARC file, a member of gzip a record if ``packed``. Record 0 is the warcinfo, record i the i-th
    response, unless there are ``requests`` before the responses.
    """
    out = io.BytesIO()
    writer = _Writer(out, gzip=packed)
    writer.write_record(writer.create_warcinfo_record("test.warc.gz", {"software": "test"}))
    ends = [out.tell()]
    for exchange in exchanges:
        if requests:
            asked = StatusAndHeaders("GET / HTTP/1.1", [("Host", "a.example")], is_http_request=True)
            writer.write_record(writer.create_warc_record(exchange.url, "request", http_headers=asked))
        record = writer.create_warc_record(
            exchange.url,
            "response",
            payload=io.BytesIO(exchange.body),
            http_headers=StatusAndHeaders(exchange.status, list(exchange.headers), protocol="HTTP/1.1"),
            warc_headers_dict={"WARC-Date": DATE, "WARC-IP-Address": IP},
        )
        writer.write_record(record)
        ends.append(out.tell())
    return Written(out.getvalue(), ends)


@dataclass(frozen=True)
class Revisit:
    """A record that says that a page was the same as another; ``headers`` are those of the WARC record."""

    url: str
    headers: tuple[tuple[str, str], ...]
    date: str = "2026-03-04T05:06:07Z"
    profile: str = "identical-payload-digest"
    status: str | None = "200 OK"


def revisiting(revisits: Iterable[Revisit]) -> bytes:
    """A WARC file of revisits, a member of gzip a record."""
    out = io.BytesIO()
    writer = _Writer(out, gzip=True)
    for one in revisits:
        headers = {
            "WARC-Date": one.date,
            "WARC-Profile": f"http://netpreserve.org/warc/1.1/revisit/{one.profile}",
            **dict(one.headers),
        }
        status = StatusAndHeaders(one.status, [("Server", "s")], protocol="HTTP/1.1") if one.status else None
        record = writer.create_warc_record(one.url, "revisit", http_headers=status, warc_headers_dict=headers)
        writer.write_record(record)
    return out.getvalue()


def arc(exchanges: Iterable[Exchange], *, packed: bool = True) -> Written:
    """An ARC file of version 1."""
    out = io.BytesIO()
    about = b"1 0 test\nURL IP-address Archive-date Content-type Archive-length\n"
    records = [("filedesc://test.arc", "text/plain", about)]
    records += [(exchange.url, "text/html", exchange.message) for exchange in exchanges]
    ends = []
    for url, kind, content in records:
        record = f"{url} {IP} 20260102030405 {kind} {len(content)}\n".encode() + content + b"\n"
        out.write(gzip.compress(record, mtime=0) if packed else record)
        ends.append(out.tell())
    return Written(out.getvalue(), ends)


def unpacked(data: bytes) -> bytes:
    """What is in all members of a gzip file."""
    pieces = []
    while data:
        unpacker = zlib.decompressobj(31)
        pieces.append(unpacker.decompress(data))
        data = unpacker.unused_data
    return b"".join(pieces)


def chunked(body: bytes, size: int = 1000) -> bytes:
    """A body in chunks, the last of them empty."""
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in [*pieces, b""])
