"""What is saved and lost by dropping requests because of their URLs: neardup beside other tools.

Run as ``python -m benchmarks.bench_discard [--folder NAME=FOLDER[,PART…]]… [--only WORDS]``. It needs the
extra ``bench``. The sites are those of ``benchmarks.bench_budget``, replayed without HTTP, breadth first. A
request that a tool takes for one of a copy is not made. The tools are:

- ``neardup``: ``NEARDUP_PREDICT = "drop"``. Likely copies wait, sure ones are dropped. Dropped requests are
  made at the end if it no longer takes them for copies.
- ``MaybeDont``: it learns while crawling, too, with the defaults of its middleware. It draws samples of sets,
  which Python from 3.11 on does not; here it draws them of sorted lists.
- ``duplicate-url-discarder``: all rules that its authors publish.
- ``uro``: its defaults.

Saved are requests that were not made, of those that a crawl without a tool makes for copies within the cap of
the site. Lost are unique pages that this crawl finds and the other does not; of an endless site, those that
were not found within the cap.
"""

from __future__ import annotations

import argparse
import importlib
import random
import sys
from bisect import bisect_right
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

import duplicate_url_discarder_rules
from duplicate_url_discarder.url_canonicalizer import UrlCanonicalizer
from lxml import etree, html

from benchmarks.bench_budget import sites, unique_pages
from benchmarks.provenance import header
from benchmarks.replay import DEFER, Policy, Replay, Site
from neardup.scrapy.predictions import BANDS
from neardup.urls.dropping import is_explored, is_still_sure, may_drop
from neardup.urls.leads import ROUNDS, Leads, round_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.replay import Doc
    from neardup.detection.verdict import Verdict
    from neardup.urls.learner import Learner


class Tool(Protocol):
    """Decides about requests, and may learn from the pages that are fetched."""

    def drops(self, url: str) -> bool: ...

    def learn(self, url: str, body: bytes) -> None: ...

    def dropped_in_error(self) -> list[str]: ...


class Nothing:
    def drops(self, url: str) -> bool:
        return False

    def learn(self, url: str, body: bytes) -> None:
        """Nothing is learned."""

    def dropped_in_error(self) -> list[str]:
        return []


class Neardup(Nothing):
    def __init__(self) -> None:
        self.learner: Learner | None = None
        self.leads = Leads()
        self.dropped: dict[str, None] = {}

    def drops(self, url: str) -> bool:
        assert self.learner is not None
        found = self.learner.predict(url)
        if found is None or not may_drop(found, self.leads) or is_explored(url):
            return False
        self.dropped[url] = None
        return True

    def dropped_in_error(self) -> list[str]:
        assert self.learner is not None
        again = []
        for url in list(self.dropped):
            found = self.learner.predict(url)
            if found is None or not is_still_sure(found, self.leads):
                again.append(url)
                del self.dropped[url]
        return again

    def read(self, url: str, new_links: list[str], *, is_sure: bool) -> None:
        """Learn whether a copy that was predicted has links of its own, and is a sure one."""
        assert self.learner is not None
        found = self.learner.predict(url)
        if found is not None and found.probability >= DEFER:
            of_links = (self.learner.predict(link) for link in new_links)
            leads_on = any(link is None or link.probability < DEFER for link in of_links)
            self.leads.fetched(found.rule, leads_on=leads_on, is_sure=is_sure)


class MaybeDont(Nothing):
    """As its ``AvoidDupContentMiddleware``, with its defaults."""

    initial, threshold, exploration = 300, 0.98, 0.05

    def __init__(self) -> None:
        self.chance = random.Random(1)
        self.waiting: list[tuple[str, str]] = []
        self.predictor: Any = None

    def drops(self, url: str) -> bool:
        if self.predictor is None or self.predictor.get_dupe_prob(url) <= self.threshold:
            return False
        return self.chance.random() >= self.exploration

    def learn(self, url: str, body: bytes) -> None:
        try:
            text = " ".join(map(str, html.fromstring(body).itertext()))
        except etree.ParserError:  # nothing but comments
            text = ""
        if self.predictor is not None:
            self.predictor.update_model(url, text)
            return
        self.waiting.append((url, text))
        if len(self.waiting) >= self.initial:
            module: Any = importlib.import_module("maybedont.predict")
            module.random = SimpleNamespace(sample=self._sample)
            self.predictor = module.DupePredictor(texts_sample=[text for _, text in self.waiting])
            for one, its_text in self.waiting:
                self.predictor.update_model(one, its_text)

    def _sample(self, urls: set[str], number: int) -> list[str]:
        return self.chance.sample(sorted(urls), number)


class Discarder(Nothing):
    def __init__(self) -> None:
        self.canonical = UrlCanonicalizer(duplicate_url_discarder_rules.RULE_PATHS or [])
        self.seen: set[str] = set()

    def drops(self, url: str) -> bool:
        key = self.canonical.process_url(url)
        known = key in self.seen
        self.seen.add(key)
        return known


class Uro(Nothing):
    """Its decisions are in the state of its module: what it keeps is added there."""

    def __init__(self) -> None:
        arguments, sys.argv = sys.argv, ["uro"]  # it reads them when it is imported
        try:
            sys.modules.pop("uro.uro", None)
            self.uro = importlib.import_module("uro.uro")
        finally:
            sys.argv = arguments

    def drops(self, url: str) -> bool:
        before = self._kept()
        self.uro.process_url(urlsplit(url))
        return self._kept() == before

    def _kept(self) -> int:
        return sum(1 + len(queries) for paths in self.uro.urlmap.values() for queries in paths.values())


TOOLS: dict[str, Callable[[], Tool]] = {
    "none": Nothing,
    "neardup": Neardup,
    "MaybeDont": MaybeDont,
    "duplicate-url-discarder": Discarder,
    "uro": Uro,
}


class Dropping(Replay):
    """A crawl that does not make the requests that a tool drops, but for the first one."""

    def __init__(self, site: Site, tool: Tool) -> None:
        super().__init__(site, Policy("tool", learns=isinstance(tool, Neardup)), breadth_first=True)
        self.tool = tool
        if isinstance(tool, Neardup):
            tool.learner = self.outcome.learner
        self._is_sure = False

    def _defers(self, url: str) -> bool:
        return isinstance(self.tool, Neardup) and super()._defers(url)

    def _probability(self, url: str) -> tuple[float, str | None]:
        """Ordered by bands and, in each, by rounds, as a crawl does that drops requests."""
        probability, partner = super()._probability(url)
        if probability >= DEFER:
            probability = DEFER + bisect_right(BANDS, probability) + round_of(url) / len(ROUNDS)
        return probability, partner

    def _next(self) -> str | None:
        while True:
            url = super()._next()
            if url is None:
                self._queue.extend(self.tool.dropped_in_error())
                if not self._queue:
                    return None
            elif url == self.site.start or not self.tool.drops(url):
                return url

    def _arrived(self, url: str) -> None:
        if isinstance(self.tool, MaybeDont) and self.site.fetch(url) is not None:
            self.tool.learn(url, self.site.body(url))
        doc = self.site.fetch(url)
        new_links = [link for link in doc.links if link not in self._seen] if doc is not None else []
        is_copy = doc is not None and doc.star in self.outcome.stars
        self._is_sure = False
        super()._arrived(url)
        if isinstance(self.tool, Neardup) and is_copy:
            self.tool.read(url, new_links, is_sure=self._is_sure)

    def _follow(self, doc: Doc, verdict: Verdict) -> None:
        self._is_sure = verdict.is_sure
        super()._follow(doc, verdict)


def compare(site: Site) -> bool:
    """Crawl a site with all tools and print its rows; whether neardup lost at most .5 % of what is unique."""
    held, copies = True, 0
    unique: set[str] = set()
    for name, make in TOOLS.items():
        outcome = Dropping(site, make()).run()
        if name == "none":
            unique = unique_pages(site, outcome)
            copies = len(outcome.found) - len(outcome.stars)
        lost = len(unique - outcome.stars)
        saved = 1 - (len(outcome.found) - len(outcome.stars)) / copies if copies else 0.0
        until = outcome.until(0.99, len(unique))
        print(
            f"| {site.name} | {name} | {len(outcome.found):,} | {f'{until:,}' if until else 'never'} |"
            f" {saved:.2f} | {lost:,} of {len(unique):,} |",
            flush=True,
        )
        if name == "neardup":
            held = lost <= 0.005 * len(unique)
    return held


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", action="append", default=[], help="NAME=FOLDER or NAME=FOLDER,PART,PART")
    parser.add_argument("--only", default="", help="sites whose names contain this")
    arguments = parser.parse_args()
    print("# Requests dropped because of their URLs, beside other tools\n")
    command = "python -m benchmarks.bench_discard --folder NAME=FOLDER,PART…"
    print("\n".join(header(command, n="one crawl a site and tool, breadth first", recall="0.98 asked")))
    print("\n| site | tool | requests | until 99 % | duplicates saved | unique pages lost |")
    print("|---|---|---|---|---|---|")
    chosen = [site for site in sites(arguments.folder) if arguments.only in site.name]
    failed = [site.name for site in chosen if not compare(site)]
    if failed:
        print(f"\nneardup lost more than .5 % of: {', '.join(failed)}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
