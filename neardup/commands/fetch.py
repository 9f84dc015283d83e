"""Getting a single page, as the crawl would see it."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from scrapy.http import Headers, HtmlResponse
from scrapy.responsetypes import responsetypes
from w3lib.url import file_uri_to_path, safe_url_string

from neardup.errors import NeardupError

_TIMEOUT_SECONDS = 30
_MOST_BYTES = 100_000_000
_USER_AGENT = "neardup (near-duplicate detection; check)"


def fetch(page: str) -> HtmlResponse:
    """The HTML page at an http(s) or file URL or at a path; NeardupError says why there is none."""
    scheme = urlsplit(page).scheme.lower()
    response = _get(page) if scheme in {"http", "https"} else _read(page)
    if not isinstance(response, HtmlResponse):
        raise NeardupError(f"{page} is not an HTML page but {type(response).__name__}")
    return response


def _get(url: str) -> object:
    request = urllib.request.Request(safe_url_string(url), headers={"User-Agent": _USER_AGENT})  # noqa: S310  # http(s)
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310
            body = answer.read(_MOST_BYTES + 1)
            headers, final_url = Headers(answer.headers.items()), answer.url
    except (OSError, ValueError) as exc:
        reason = f"HTTP status {exc.code}" if isinstance(exc, urllib.error.HTTPError) else exc
        raise NeardupError(f"{url} cannot be fetched: {reason}") from exc
    if len(body) > _MOST_BYTES:
        raise NeardupError(f"{url} is larger than {_MOST_BYTES:,} bytes")
    response_type = responsetypes.from_args(headers=headers, url=final_url, body=body)
    return response_type(final_url, headers=headers, body=body)


def _read(page: str) -> object:
    path = Path(file_uri_to_path(page) if page.startswith("file:") else page).expanduser()
    try:
        body = path.read_bytes()
    except (OSError, ValueError) as exc:
        raise NeardupError(f"{page} is neither an http(s) URL nor a file that can be read: {exc}") from exc
    response_type = responsetypes.from_args(filename=str(path), body=body)
    return response_type(path.resolve().as_uri(), body=body)
