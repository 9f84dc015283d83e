"""An HTTP response as an archive stores it: status line, header lines, and a body that may be in chunks."""

from __future__ import annotations

import re

from neardup.collection.inputs.found import Origin, Page, Skipped, Why

_STATUS = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+(\d{3})(?!\d)[^\r\n]*(?:\r?\n|\Z)")
_END_OF_HEADERS = re.compile(rb"\r?\n\r?\n")
_IS_CHUNKED = re.compile(rb"^transfer-encoding:[^\r\n]*\bchunked\b", re.IGNORECASE | re.MULTILINE)
_CHUNK = re.compile(rb"(?:\A|\r?\n)[ \t]*([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r?\n")


def page_of(origin: Origin, message: bytes) -> Page | Skipped:
    """The response as a page, its chunks put together."""
    status = _STATUS.match(message)
    if status is None:
        return Skipped(origin.place, Why.NO_RESPONSE)
    # From the end of the status line itself on, because a response may have no headers.
    end = _END_OF_HEADERS.search(message, status.end(1))
    headers = message[status.end() : end.start()] if end else message[status.end() :]
    body: bytes | None = message[end.end() :] if end else b""
    if body and _IS_CHUNKED.search(headers):
        body = _joined(body)
    if body is None:
        return Skipped(origin.place, Why.UNDECODABLE, "its chunks are wrong")
    return Page(origin, int(status[1]), headers, body)


def status_of(message: bytes) -> int | None:
    """The status of a response; None if the message is none."""
    status = _STATUS.match(message)
    return int(status[1]) if status else None


def _joined(body: bytes) -> bytes | None:
    """The chunks of a body; None if they are wrong. Many archives store a body without its chunks, and leave
    the header as it was.
    """
    pieces: list[bytes] = []
    at = 0
    while True:
        chunk = _CHUNK.match(body, at)
        if chunk is None:
            return None if at else body
        size = int(chunk[1], 16)
        if not size:
            return b"".join(pieces)
        at = chunk.end() + size
        if at > len(body):
            return None
        pieces.append(body[chunk.end() : at])
