"""What neardup says of a page: the one value that the crawl, the store and the reports share."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from neardup.detection.rule import Evidence
from neardup.fingerprint import hamming

if TYPE_CHECKING:
    from neardup.address import Address
    from neardup.errors import PageTooLarge
    from neardup.fingerprint.simhash import Fingerprint
    from neardup.fingerprint.sketch import Compact
    from neardup.text.headline import Headline


class Kind(StrEnum):
    """The kinds of verdict."""

    NEW = "new"
    """Never seen, and like no canonical page: it becomes a canonical page."""
    DUPLICATE = "duplicate"
    """Within ``max_distance`` of a canonical page with another URL, and confirmed by its sketch."""
    UNCHANGED = "unchanged"
    """A canonical page, known by its URL, with the same fingerprint as before."""
    CHANGED = "changed"
    """Known by its URL, with another fingerprint than before, and like no other canonical page."""
    TOO_SHORT = "too_short"
    """Fewer features than the minimum: remembered, but never matched."""
    GONE = "gone"
    """Known, and answered with 404 or 410: remembered, but never matched."""
    NOT_HTML = "not_html"
    """Not an HTML page: left alone, not stored."""
    UNJUDGED = "unjudged"
    """Over the budget of a page: left alone, not stored; what is stored of it stays."""


CANONICAL = (Kind.NEW, Kind.UNCHANGED, Kind.CHANGED)
"""Verdicts of canonical pages."""

COMPARED = (*CANONICAL, Kind.DUPLICATE)
"""Verdicts of pages that were compared with others."""

LEFT_ALONE = (Kind.NOT_HTML, Kind.UNJUDGED)
"""Verdicts of pages that pass untouched and are not stored."""


class Relation(NamedTuple):
    """A duplicate and its canonical page, by their ids, and how near they are."""

    duplicate_id: int
    canonical_id: int
    distance: int
    resemblance: float
    evidence: Evidence


class Found(NamedTuple):
    """The canonical page that a page is a duplicate of; ``resemblance`` is estimated, of the whole texts."""

    row: int
    distance: int
    resemblance: float
    evidence: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was found about one page, and what to do with its links.

    - ``follow``: whether the links of the page are worth following at once.
    - ``repeated``: whether this crawl has judged a page before that stands for this page. For a doubtful
      duplicate any page of the cluster does. For a sure one, the canonical page and its sure duplicates do.
      Only then has this crawl the content already.
    - ``distance``: the Hamming distance to the canonical page.
    - ``resemblance``: the resemblance to the canonical page, estimated from the sketches of both.
    - ``evidence``: why the page is a duplicate.
    - ``headline``: that of the page.
    - ``again``: whether the page had another verdict before, until more was known of its site.
    - ``own_distance``: the distance to the page's own last version, if there was one.
    - ``same_text``: whether the page has the very text of its own last version; None if that is not known.
    - ``declared_url``: the page of the same site that the page itself calls its canonical one, if another.
    - ``soft_404``: whether the page is what the site serves for a page that it does not have.
    - ``limit``: the field of :class:`neardup.text.limits.Limits` that an unjudged page is over.
    - ``features``: the distinct words of the page.
    - ``text_digest``: the digest of the visible text; None if the text was not read.
    - ``text``: the visible text in UTF-8, if texts are kept.

    The ids are those of ``simhash_values``. A page that is not stored has no id.

    Verdicts are compared by value, and may be in sets. The fingerprint, the sketch and the headline do not
    count in that: the digest of the text speaks for them.
    """

    address: Address
    kind: Kind
    follow: bool
    reason: str
    repeated: bool = False
    page_id: int | None = None
    fingerprint: Fingerprint | None = field(default=None, repr=False, compare=False)
    sketch: Compact | None = field(default=None, repr=False, compare=False)
    features: int = 0
    canonical_id: int | None = None
    canonical_url: str | None = None
    distance: int | None = None
    resemblance: float | None = None
    evidence: Evidence | None = None
    headline: Headline | None = field(default=None, repr=False, compare=False)
    again: bool = False
    own_distance: int | None = None
    same_text: bool | None = None
    text_digest: int | None = None
    text: bytes | None = field(default=None, repr=False)
    limit: str | None = None
    declared_url: str | None = None
    soft_404: bool = False

    @property
    def url(self) -> str:
        """The URL of the page, without fragment."""
        return self.address.url

    @property
    def is_duplicate(self) -> bool:
        return self.kind is Kind.DUPLICATE

    @property
    def copy_of(self) -> tuple[int, ...]:
        """What a duplicate is a copy of: its canonical page, by id, and its very text, by digest. Empty: the
        page is no duplicate.
        """
        if self.canonical_id is None:
            return ()
        if self.evidence is not Evidence.TEXT or self.text_digest is None:
            return (self.canonical_id,)
        return self.canonical_id, self.text_digest

    @property
    def page_stood_for(self) -> int | None:
        """The id of the canonical page: of a page that is no duplicate, its own."""
        return self.canonical_id if self.is_duplicate else self.page_id

    @property
    def percentage(self) -> float | None:
        """Duplication percentage against the canonical page (see
        :func:`neardup.fingerprint.hamming.percentage`).
        """
        return None if self.distance is None else hamming.percentage(self.distance)

    @property
    def confidence(self) -> float | None:
        """How sure it is that a duplicate has the main item of its canonical page, 0 to 1; None: no
        duplicate.
        """
        return None if self.evidence is None else self.evidence.confidence

    @property
    def is_sure(self) -> bool:
        """Whether the page is a duplicate for sure: :attr:`Evidence.is_sure`."""
        return self.evidence is not None and self.evidence.is_sure

    @property
    def is_doubtful(self) -> bool:
        """Whether the page is a duplicate that is judged again when more is known of its site."""
        return self.evidence is not None and self.evidence.is_doubtful

    @property
    def relation(self) -> Relation | None:
        """The relation to the canonical page; None unless the page is a duplicate."""
        if self.page_id is None or self.canonical_id is None:
            return None
        assert self.distance is not None
        assert self.evidence is not None
        assert self.resemblance is not None
        return Relation(self.page_id, self.canonical_id, self.distance, self.resemblance, self.evidence)

    def as_dict(self) -> dict[str, object]:
        """The parts that a feed or a log can hold, as plain values."""
        return {
            "verdict": self.kind.value,
            "canonical_url": self.canonical_url,
            "distance": self.distance,
            "percentage": self.percentage,
            "resemblance": self.resemblance,
            "confidence": self.confidence,
            "evidence": None if self.evidence is None else self.evidence.value,
            "soft_404": self.soft_404,
            "follow": self.follow,
            "reason": self.reason,
        }


def unjudged(page: Address, exc: PageTooLarge) -> Verdict:
    """The verdict of a page that is over a limit."""
    return Verdict(address=page, kind=Kind.UNJUDGED, follow=True, reason=str(exc), limit=exc.limit)


def reason(
    kind: Kind,
    found: Found | None = None,
    *,
    own_distance: int | None = None,
    same_text: bool | None = None,
    words: int = 0,
) -> str:
    """Why a verdict is as it is, for people; the numbers are those of :class:`Verdict`."""
    if found is not None:
        return (
            f"{found.distance} of {hamming.FINGERPRINT_BITS} bits differ from its canonical page, resemblance"
            f" {found.resemblance:.2f}, evidence: {_EVIDENCE[found.evidence]}"
        )
    if kind is Kind.CHANGED and own_distance is not None:
        return f"known, but {own_distance} of {hamming.FINGERPRINT_BITS} bits differ from its last version"
    if kind is Kind.UNCHANGED and same_text is False:
        return "known, and not a bit differs from its last version, though its text does"
    if kind is Kind.TOO_SHORT:
        return f"too short to be matched: {words} distinct words"
    return _REASONS[kind]


_EVIDENCE = {
    Evidence.DECISION: "a decision",
    Evidence.TEXT: "the same text",
    Evidence.HEADLINE: "the same headline",
    Evidence.RARE: "what is rare on the site",
    Evidence.WHOLE: "the whole text",
    Evidence.DISTANCE: "the distance alone",
}

_REASONS = {
    Kind.NEW: "like no canonical page known",
    Kind.UNCHANGED: "known, and the same as before",
    Kind.CHANGED: "known, but without words until now",
    Kind.GONE: "known, but there no longer",
}
