"""Near-duplicates left out of the answers of a search engine, over HTTP: an answer in, the same answer with
fewer results out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.routing import Route

from neardup.collection.answers import MOST_RESULTS, SearchAnswer
from neardup.collection.distinct import distinct, sketch_of_text
from neardup.detection.rule import MIN_FEATURES
from neardup.errors import DatabaseUnavailable, NeardupError, PageTooLarge
from neardup.fingerprint import sketch
from neardup.store import page_report
from neardup.web.security import Guard, TooLarge
from neardup.web.site import BadRequest

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp

    from neardup.collection.answers import Result
    from neardup.fingerprint.reader import Reader
    from neardup.fingerprint.sketch import Compact
    from neardup.store.store import Store
    from neardup.web.security import Secret

PATH = "/results"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaner:
    """Leaves near-duplicates out of answers.

    A result is compared by the sketch that ``store`` has of its URL, else by the text in its ``text_field``.
    The URL stands in the ``url_field`` of the result, or is its id. ``store`` or ``text_field`` may be None.
    """

    store: Store | None
    reader: Reader
    verify: float
    keep: int
    url_field: str
    text_field: str | None

    def clean(self, body: bytes, keep: int) -> bytes:
        """The answer with the first ``keep`` results that are no near-duplicates of each other.

        NeardupError: the body is no answer of a search engine.
        """
        answer = SearchAnswer.of_json(body)
        sketches = self._sketches(answer.results)
        kept = distinct(enumerate(sketches), keep, verify=self.verify)
        return answer.with_results(kept, unknown=sum(one is None for one in sketches))

    def _sketches(self, results: list[Result]) -> list[Compact | None]:
        urls = [result.text(self.url_field) or str(result.id) for result in results]
        stored: dict[str, bytes] = {}
        if self.store is not None:
            with self.store.looking() as connection:
                stored = page_report.sketches_of(connection, urls, min_features=MIN_FEATURES)
        return [
            sketch.from_bytes(stored[url]) if url in stored else self._of_text(result)
            for url, result in zip(urls, results, strict=True)
        ]

    def _of_text(self, result: Result) -> Compact | None:
        text = None if self.text_field is None else result.text(self.text_field)
        try:
            return None if text is None else sketch_of_text(self.reader, text)
        except PageTooLarge:
            return None


def application(cleaner: Cleaner, secret: Secret | None, *, names: frozenset[str] = frozenset()) -> ASGIApp:
    """``POST /results`` behind its guard. ``secret``: None lets everybody ask who reaches the port."""

    async def results(request: Request) -> Response:
        try:
            body = await request.body()
            keep = checked_keep(request.query_params.get("keep", str(cleaner.keep)))
            cleaned = await run_in_threadpool(cleaner.clean, body, keep)
            return Response(cleaned, media_type="application/json")
        except TooLarge:
            return _failure("The request is too large.", 413)
        except NeardupError as exc:
            return _failure(str(exc), 503 if isinstance(exc, DatabaseUnavailable) else 400)

    async def elsewhere(request: Request, exc: Exception) -> Response:
        return _failure(f"There is one thing here: POST {PATH}", 404)

    made = Starlette(
        routes=[Route(PATH, results, methods=["POST"])], exception_handlers={404: elsewhere, 405: elsewhere}
    )
    return Guard(made, secret, names=names, open_paths=())


def checked_keep(text: str) -> int:
    """How many results are kept of an answer. BadRequest: so many cannot be."""
    if not text.isdecimal() or len(text) > len(str(MOST_RESULTS)) or not 1 <= int(text) <= MOST_RESULTS:
        raise BadRequest(f"keep must be a number from 1 to {MOST_RESULTS}, not {text!r:.80}")
    return int(text)


def _failure(message: str, status: int) -> Response:
    return Response(json.dumps({"error": message}), status, media_type="application/json")
