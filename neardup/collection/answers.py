"""Answers of search engines: where their results stand, and what a result has."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from neardup.errors import NeardupError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_RESULTS = 10_000
"""Of an answer: as many as Elasticsearch gives at once, unless it is told otherwise."""

_FORMS = (("hits", "hits"), ("response", "docs"))
"""Where the results stand: with Elasticsearch and OpenSearch, with Solr."""

_MARK = "neardup"


class Result(NamedTuple):
    """A result as it came, with its fields by name."""

    given: dict[str, Any]
    fields: Mapping[str, Any]

    def text(self, name: str) -> str | None:
        """A field as text, one of many values joined; None if there is none."""
        value = self.fields.get(name)
        values = value if isinstance(value, list) else [value]
        return " ".join(one for one in values if isinstance(one, str)) or None

    @property
    def id(self) -> Any:
        """As the engine names the result; None if the engine does not."""
        return self.given.get("_id", self.given.get("id"))


class SearchAnswer:
    """An answer of Elasticsearch, OpenSearch or Solr, as JSON has it. NeardupError: it is none."""

    def __init__(self, whole: Any) -> None:
        self._whole = whole
        self._part, self._name = _place(self._whole)
        given = self._part[self._name]
        if len(given) > MOST_RESULTS:
            raise NeardupError(f"the answer has {len(given):,} results; {MOST_RESULTS:,} can be compared")
        if wrong := [place for place, one in enumerate(given) if not isinstance(one, dict)]:
            raise NeardupError(f"result {wrong[0]} of the answer is no object")
        self.results = [Result(one, _fields(one)) for one in given]

    @classmethod
    def of_json(cls, body: bytes) -> SearchAnswer:
        """The answer in these bytes; NeardupError: they are none."""
        try:
            return cls(json.loads(body))
        except (ValueError, RecursionError) as exc:
            raise NeardupError(f"the answer is no JSON: {exc}") from exc

    def with_results(self, kept: Sequence[tuple[int, list[int]]], *, unknown: int) -> bytes:
        """The answer with some of its results, as JSON: their places, and the places of those they hide.

        ``unknown`` is the number of results that nothing is known to compare by.
        """
        self._part[self._name] = [
            {**self.results[place].given, _MARK: {"hides": [self._named(one) for one in hides]}}
            for place, hides in kept
        ]
        self._whole[_MARK] = {
            "results": len(self.results),
            "kept": len(kept),
            "hidden": sum(len(hides) for _, hides in kept),
            "unknown": unknown,
        }
        return json.dumps(self._whole).encode()

    def _named(self, place: int) -> Any:
        """The id of a result, or else its place in the answer."""
        name = self.results[place].id
        return place if name is None else name


def _place(whole: Any) -> tuple[dict[str, Any], str]:
    """The object that has the list of results, and the name of the list there."""
    for outer, inner in _FORMS:
        part = whole.get(outer) if isinstance(whole, dict) else None
        if isinstance(part, dict) and isinstance(part.get(inner), list):
            return part, inner
    raise NeardupError(
        "the answer has no list of results: neither hits.hits (Elasticsearch, OpenSearch) nor response.docs"
        " (Solr)"
    )


def _fields(result: dict[str, Any]) -> Mapping[str, Any]:
    """What the engine stores of a document: of Elasticsearch ``_source`` and ``fields``, of Solr all."""
    source, fields = result.get("_source"), result.get("fields")
    if not isinstance(source, dict):
        return fields if isinstance(fields, dict) else result
    return {**fields, **source} if isinstance(fields, dict) else source
