"""Progress line, closing summary and the counts kept with a crawl, all made from its stats."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from neardup.detection.rule import Evidence
from neardup.detection.verdict import Kind
from neardup.text.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Mapping

STAT_OF_KIND = {
    Kind.NEW: "neardup/new",
    Kind.DUPLICATE: "neardup/duplicates",
    Kind.UNCHANGED: "neardup/unchanged",
    Kind.CHANGED: "neardup/changed",
    Kind.TOO_SHORT: "neardup/too_short",
    Kind.GONE: "neardup/gone",
    Kind.NOT_HTML: "neardup/not_html",
    Kind.UNJUDGED: "neardup/unjudged",
}

STAT_OF_EVIDENCE = {evidence: f"neardup/evidence/{evidence.value}" for evidence in Evidence}
"""Of the duplicates, those with this evidence."""

STAT_OF_LIMIT = {field.name: f"neardup/unjudged/{field.name}" for field in fields(Limits)}
"""Of the unjudged, those over this limit."""

_STEPS = ("text", "features", "simhash", "sketch", "search", "store")


def _count(stats: Mapping[str, Any], name: str) -> int:
    return int(stats.get(f"neardup/{name}", 0))


def counts_of_crawl(stats: Mapping[str, Any]) -> dict[str, int]:
    """What the ``crawls`` table keeps of a finished crawl."""
    names = ("pages", "new", "duplicates", "links_withheld", "recall_checked", "recall_found")
    return {
        **{name: _count(stats, name) for name in names},
        "requests_saved": _count(stats, "requests_saved_at_least"),
    }


def _rate(stats: Mapping[str, Any]) -> str:
    pages = _count(stats, "pages")
    return f"{100 * _count(stats, 'duplicates') / pages:.1f} %" if pages else "-"


def progress(stats: Mapping[str, Any], waiting: int) -> str:
    """One line for the log while the crawl runs; ``waiting`` rows are not stored yet."""
    return (
        f"neardup: {_count(stats, 'pages'):,} pages, {_count(stats, 'duplicates'):,} duplicates"
        f" ({_rate(stats)}),"
        f" {_count(stats, 'links_deferred'):,} links deferred,"
        f" {_count(stats, 'rows_written'):,} rows stored, {waiting:,} waiting"
    )


def _duplicates(stats: Mapping[str, Any]) -> str:
    exact = _count(stats, "exact_duplicates")
    told = f"{_count(stats, 'duplicates'):,} ({_rate(stats)}), {exact:,} of them exact"
    by_evidence = ", ".join(
        f"{_count(stats, f'evidence/{evidence.value}'):,} by {evidence.value}"
        for evidence in Evidence
        if _count(stats, f"evidence/{evidence.value}")
    )
    if by_evidence:
        told += f"; {by_evidence}"
    if _count(stats, "judged_again"):
        told += f"; {_count(stats, 'judged_again'):,} corrected later"
    return told


def _links(stats: Mapping[str, Any]) -> str:
    told = f"{_count(stats, 'links_deferred'):,} deferred, {_count(stats, 'links_withheld'):,} not followed"
    if _count(stats, "links_withheld") and not _count(stats, "lost_candidates"):
        told += " (other pages have them all)"
    if _count(stats, "links_undeferred"):
        told += f", {_count(stats, 'links_undeferred'):,} made at once after all"
    if _count(stats, "exhausted"):
        told += f", after {_count(stats, 'exhausted'):,} clusters or hosts had led to nothing new"
    return told


def _predictions(stats: Mapping[str, Any]) -> str:
    """One line more, if there was something to predict."""
    if not _count(stats, "predicted"):
        return ""
    told = [
        f"{_count(stats, f'predicted/{what}'):,} {what}"
        for what in ("deferred", "dropped", "explored", "right", "wrong")
        if _count(stats, f"predicted/{what}")
    ]
    predicted = f"{_count(stats, 'predicted'):,} requests predicted to bring copies"
    return "\n  predicted   " + ", ".join([predicted, *told])


def _soft_404s(stats: Mapping[str, Any]) -> str:
    """One line more, if there was reason to ask for pages that do not exist."""
    probes = _count(stats, "soft_404/probes")
    if not probes:
        return ""
    return f"\n  soft 404    {_count(stats, 'soft_404'):,} pages, told by {probes:,} probes"


def of_crawl(stats: Mapping[str, Any], database: str) -> str:
    """The closing summary, several lines."""
    others = ", ".join(
        f"{_count(stats, name):,} {name.replace('_', ' ')}"
        for name in ("unchanged", "changed", "too_short", "gone", "not_html", "unjudged")
        if _count(stats, name)
    )
    dropped = _count(stats, "items_dropped")
    unheard = _count(stats, "pages_skipped")
    seconds = {step: float(stats.get(f"neardup/seconds/{step}", 0.0)) for step in _STEPS}
    pages = max(1, _count(stats, "pages"))
    saved = f"at least {_count(stats, 'requests_saved_at_least'):,} requests"
    if dropped:
        saved += f", {dropped:,} items dropped"
    if unheard:
        saved += f", {unheard:,} callbacks not called"
    warnings = ""
    if _count(stats, "lost_candidates"):
        warnings += (
            f"\n  LOST?       {_count(stats, 'lost_candidates'):,} links that were not followed stood on no"
            " other page;"
            " the warning above names some"
        )
    if _count(stats, "last_crawl_pages"):
        warnings += (
            f"\n  SMALLER     the last crawl of this spider had {_count(stats, 'last_crawl_pages'):,} pages"
            " on these hosts;"
            " the warning above names some that are missing"
        )
    recall = ""
    if _count(stats, "recall_checked"):
        recall = (
            f"\n  recall      {stats['neardup/recall']:.3f} ({stats['neardup/recall_low']:.3f} to"
            f" {stats['neardup/recall_high']:.3f}): {_count(stats, 'recall_found'):,} of"
            f" {_count(stats, 'recall_checked'):,} sampled near-duplicates found"
        )
    found = f"{_count(stats, 'unique'):,} unique pages by {_count(stats, 'requests'):,} requests"
    time = ", ".join(f"{step} {spent:.2f} s" for step, spent in seconds.items())
    # The writer has a thread of its own: what it spends is not added to a page.
    judging = sum(spent for step, spent in seconds.items() if step != "store")
    return "\n".join(
        (
            "neardup: summary",
            f"  pages       {_count(stats, 'pages'):,}",
            f"  new         {_count(stats, 'new'):,}" + (f" ({others})" if others else ""),
            f"  duplicates  {_duplicates(stats)}{recall}",
            f"  links       {_links(stats)}{_predictions(stats)}{_soft_404s(stats)}",
            f"  found       {found}",
            f"  saved       {saved}{warnings}",
            f"  time        {time} ({1000 * judging / pages:.2f} ms a page without store)",
            f"  database    {database}: {_count(stats, 'rows_written'):,} rows written",
        )
    )
