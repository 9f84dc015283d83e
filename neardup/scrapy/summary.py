"""Progress line, closing summary and the counts kept with a crawl, all made from its stats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neardup.verdict import Kind

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
}

_STEPS = ("purify", "features", "simhash", "sketch", "search", "store")


def _count(stats: Mapping[str, Any], name: str) -> int:
    return int(stats.get(f"neardup/{name}", 0))


def counts_of_crawl(stats: Mapping[str, Any]) -> dict[str, int]:
    """What the ``crawls`` table keeps of a finished crawl."""
    names = (
        "pages",
        "new",
        "duplicates",
        "links_skipped",
        "requests_saved",
        "recall_checked",
        "recall_found",
    )
    return {name: _count(stats, name) for name in names}


def _rate(stats: Mapping[str, Any]) -> str:
    pages = _count(stats, "pages")
    return f"{100 * _count(stats, 'duplicates') / pages:.1f} %" if pages else "-"


def progress(stats: Mapping[str, Any], waiting: int) -> str:
    """One line for the log while the crawl runs; ``waiting`` rows are not stored yet."""
    return (
        f"neardup: {_count(stats, 'pages'):,} pages, {_count(stats, 'duplicates'):,} duplicates ({_rate(stats)}),"
        f" {_count(stats, 'links_skipped'):,} links not followed,"
        f" {_count(stats, 'rows_written'):,} rows stored, {waiting:,} waiting"
    )


def of_crawl(stats: Mapping[str, Any], database: str) -> str:
    """The closing summary, several lines."""
    others = ", ".join(
        f"{_count(stats, name):,} {name.replace('_', ' ')}"
        for name in ("unchanged", "changed", "too_short", "gone", "not_html")
        if _count(stats, name)
    )
    dropped = _count(stats, "items_dropped")
    unheard = _count(stats, "pages_skipped")
    seconds = {step: float(stats.get(f"neardup/seconds/{step}", 0.0)) for step in _STEPS}
    pages = max(1, _count(stats, "pages"))
    duplicates = f"{_count(stats, 'duplicates'):,} ({_rate(stats)}), {_count(stats, 'exact_duplicates'):,} of them exact"
    saved = f"{_count(stats, 'links_skipped'):,} links not followed, {_count(stats, 'requests_saved'):,} requests never made"
    if dropped:
        saved += f", {dropped:,} items dropped"
    if unheard:
        saved += f", {unheard:,} callbacks not called"
    recall = ""
    if _count(stats, "recall_checked"):
        recall = (
            f"\n  recall      {stats['neardup/recall']:.3f} ({stats['neardup/recall_low']:.3f} to"
            f" {stats['neardup/recall_high']:.3f}): {_count(stats, 'recall_found'):,} of"
            f" {_count(stats, 'recall_checked'):,} sampled near-duplicates found"
        )
    time = ", ".join(f"{step} {spent:.2f} s" for step, spent in seconds.items())
    # The writer has a thread of its own: what it spends is not added to a page.
    judging = sum(spent for step, spent in seconds.items() if step != "store")
    return "\n".join(
        (
            "neardup: summary",
            f"  pages       {_count(stats, 'pages'):,}",
            f"  new         {_count(stats, 'new'):,}" + (f" ({others})" if others else ""),
            f"  duplicates  {duplicates}{recall}",
            f"  saved       {saved}",
            f"  time        {time} ({1000 * judging / pages:.2f} ms a page without store)",
            f"  database    {database}: {_count(stats, 'rows_written'):,} rows written",
        )
    )
