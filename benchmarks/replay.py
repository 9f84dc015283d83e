"""Crawls without HTTP: sites whose pages are read once, and the order in which a crawl asks for them."""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote, urljoin, urlsplit

import numpy as np
from lxml import etree, html

from neardup.address import host_of, page_url
from neardup.detection.detector import AGAIN, Detector, DetectorOptions
from neardup.evaluation.join import similar_pairs
from neardup.urls.copies import Copies
from neardup.urls.leads import LinksOfDuplicates
from neardup.urls.learner import Learner
from tests.support.sites.cms import asked

if TYPE_CHECKING:
    from collections.abc import Iterable

    from neardup.detection.verdict import Verdict
    from neardup.fingerprint.reader import Reading
    from neardup.urls.rules import Prediction
    from tests.support.sites.served import MadeSite

RESEMBLANCE = 0.9
"""Least exact resemblance of two pages of which one is enough."""

DEFER = 0.5
"""Least predicted probability of a request that is deferred."""

_TRIES = 3
"""Deferred requests that are asked about again before one is made: they have become likelier copies."""

READER = DetectorOptions().make_reader()


class Doc(NamedTuple):
    """A page as a crawl gets it. ``star`` names the unique page that it is, None: nothing that anybody
    wants.
    """

    reading: Reading
    links: tuple[str, ...]
    star: str | None


class Site:
    """A site to crawl: pages by URL. ``cap``: the most requests of a crawl, 0: none."""

    def __init__(self, name: str, start: str, cap: int = 0) -> None:
        self.name = name
        self.start = start
        self.cap = cap
        self.docs: dict[str, Doc | None] = {}

    def fetch(self, url: str) -> Doc | None:
        """The page of a URL; None: there is none."""
        raise NotImplementedError

    def body(self, url: str) -> bytes:
        """The HTML of a page that there is."""
        raise NotImplementedError


class Folder(Site):
    """The HTML files below folders as one host; the first page links to the uppermost index pages."""

    def __init__(self, name: str, folder: Path, parts: Iterable[str] = ("",)) -> None:
        super().__init__(name, "http://docs.example/")
        files = sorted(
            file
            for part in parts
            for file in (folder / part).rglob("*.htm*")
            if file.is_file() and not file.is_symlink()
        )
        paths = {f"/{file.relative_to(folder).as_posix()}": file for file in files}
        self._files = paths
        read = {path: READER.read_html(path, file.read_bytes()) for path, file in paths.items()}
        star = stars({path: reading.shingles for path, reading in read.items()})
        for path, file in paths.items():
            url = urljoin(self.start, quote(path))
            linked = tuple(other for other in links_of(url, file.read_bytes()) if _path(other) in paths)
            self.docs[path] = Doc(read[path], linked, star[path])
        starts = tuple(urljoin(self.start, quote(path)) for path in _uppermost(paths))
        front = f"<h1>Mirror</h1>{''.join(f'<p>{url}</p>' for url in starts)}"
        self.docs["/"] = Doc(READER.read_html(self.start, front), starts, "/")
        self.folder = folder

    @classmethod
    def named(cls, text: str) -> Folder:
        """That of ``NAME=FOLDER`` or ``NAME=FOLDER,PART,PART``."""
        name, _, rest = text.partition("=")
        folder, *parts = rest.split(",")
        return cls(name, Path(folder).resolve(), parts or ("",))

    def fetch(self, url: str) -> Doc | None:
        return self.docs.get(_path(url))

    def body(self, url: str) -> bytes:
        file = self._files.get(_path(url))
        return b"" if file is None else file.read_bytes()


def _path(url: str) -> str:
    return unquote(urlsplit(url).path)


def _uppermost(paths: Iterable[str]) -> list[str]:
    """Index pages with none above them."""
    upper: list[str] = []
    for path in sorted((path for path in paths if path.endswith("/index.html")), key=len):
        if not any(path.startswith(f"{other.rpartition('/')[0]}/") for other in upper):
            upper.append(path)
    return upper


class Made(Site):
    """A made site; which of its pages are copies, it says itself."""

    def __init__(self, name: str, site: MadeSite, host: str) -> None:
        super().__init__(name, f"{host}/", site.most_requests)
        self.site = site

    def fetch(self, url: str) -> Doc | None:
        if url not in self.docs:
            answer = self.site.answer(asked(url))
            self.docs[url] = None
            if answer.status == 200:
                found = links_of(url, answer.body.encode())
                self.docs[url] = Doc(READER.read_html(url, answer.body), found, answer.key)
        return self.docs[url]

    def body(self, url: str) -> bytes:
        return self.site.answer(asked(url)).body.encode()


def links_of(url: str, body: bytes) -> tuple[str, ...]:
    """Where the links of a page lead to on its site, each once, in their order."""
    try:
        root = html.fromstring(body)
    except (etree.ParserError, ValueError):
        return ()
    site = _site(url)
    found = dict[str, None]()
    for anchor in root.iter("a"):
        try:
            target = page_url(urljoin(url, anchor.get("href", "").strip()))
            if _site(target) == site:
                found[target] = None
        except ValueError:
            continue
    return tuple(found)


def _site(url: str) -> str:
    return ".".join((urlsplit(url).hostname or "").split(".")[-2:])


def stars(shingles: dict[str, np.ndarray[tuple[int], np.dtype[np.uint64]]]) -> dict[str, str]:
    """For each page the first of an exact resemblance of at least .9 that is no copy itself, or itself."""
    paths = list(shingles)
    pairs = similar_pairs([np.unique(of) for of in shingles.values()], RESEMBLANCE)
    near: dict[int, list[int]] = {}
    for first, second in zip(pairs.first.tolist(), pairs.second.tolist(), strict=True):
        near.setdefault(max(first, second), []).append(min(first, second))
    own = list(range(len(paths)))
    for place in own:
        own[place] = min((other for other in near.get(place, ()) if own[other] == other), default=place)
    return {path: paths[own[place]] for place, path in enumerate(paths)}


class Waiting:
    """Requests that are deferred, the likeliest to bring something new first."""

    def __init__(self) -> None:
        self.probability: dict[str, float] = {}
        self._heap: list[tuple[float, int, str]] = []
        self._order: dict[str, int] = {}
        self._by_partner: dict[str, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self.probability)

    @property
    def first(self) -> str | None:
        """The request that :meth:`pop` gives."""
        while self._heap:
            probability, _, url = self._heap[0]
            if self.probability.get(url) == probability:
                return url
            heapq.heappop(self._heap)
        return None

    def put(self, url: str, probability: float, partner: str | None) -> None:
        if self.probability.get(url) != probability:
            self.probability[url] = probability
            order = self._order.setdefault(url, len(self._order))
            heapq.heappush(self._heap, (probability, order, url))
        if partner is not None:
            self._by_partner.setdefault(partner, {})[url] = None

    def drop(self, url: str) -> None:
        self.probability.pop(url, None)

    def pop(self) -> str | None:
        url = self.first
        if url is not None:
            self.drop(url)
        return url

    def copies_of(self, partner: str) -> list[str]:
        """Those that may be copies of a page."""
        return [url for url in self._by_partner.get(partner, ()) if url in self.probability]


@dataclass
class Policy:
    """What a crawl does about duplicates.

    - ``follows``: the links of duplicates are followed, at once or later.
    - ``links_last``: they are deferred.
    - ``learns``: requests are deferred by what was learned of URLs.
    - ``knows``: requests are deferred by the truth.
    """

    name: str
    follows: bool = True
    links_last: bool = False
    learns: bool = False
    knows: bool = False


class Decision(NamedTuple):
    """A request as it first left the queue: what was predicted, and whether its page was known by then."""

    probability: float
    lower: float
    known: bool


@dataclass
class Outcome:
    """What a crawl did: the stars that it found by each request, and the decisions on the way."""

    found: list[int] = field(default_factory=list)
    stars: set[str] = field(default_factory=set)
    decisions: list[Decision] = field(default_factory=list)
    deferred_wrongly: int = 0
    learner: Learner = field(default_factory=Learner)
    learner_seconds: float = 0.0
    asked: int = 0
    observed: list[tuple[str, int]] = field(default_factory=list)

    def until(self, share: float, unique: int) -> int | None:
        """Requests until a share of the unique pages was found; None: never."""
        return next((number for number, found in enumerate(self.found, 1) if found >= share * unique), None)


class Replay:
    """One crawl of a site: a queue, breadth first or last in first out, and what is deferred."""

    def __init__(self, site: Site, policy: Policy, *, breadth_first: bool, at_once: int = 1) -> None:
        self.site = site
        self.policy = policy
        self.breadth_first = breadth_first
        self.at_once = at_once
        self.detector = Detector(DetectorOptions(), reader=READER)
        self.outcome = Outcome()
        self._queue = deque([site.start])
        self._seen = {site.start}
        self._waiting = Waiting()
        self._of_duplicates = set[str]()
        """Links of duplicates that are deferred, whatever was learned of their URLs."""
        self._copies = Copies()
        self._links = LinksOfDuplicates()
        self._decided: set[str] = set()
        self._looked_at = 0
        self._fetched_then = 0

    def run(self) -> Outcome:
        flying: deque[str] = deque()
        asked = 0
        while True:
            while len(flying) < self.at_once and not (self.site.cap and asked >= self.site.cap):
                url = self._next()
                if url is None:
                    break
                flying.append(url)
                self.outcome.learner.asked(url)
                asked += 1
            if not flying:
                return self.outcome
            self._arrived(flying.popleft())

    def _next(self) -> str | None:
        """The next request to make; those that are deferred come last, the least known first."""
        learner = self.outcome.learner
        if learner.generation != self._looked_at and len(self.outcome.found) >= self._fetched_then + 16:
            self._looked_at, self._fetched_then = learner.generation, len(self.outcome.found)
            self._look_again(list(self._waiting.probability))
        while self._queue:
            url = self._queue.popleft() if self.breadth_first else self._queue.pop()
            if not self._defers(url):
                return url
        for _ in range(_TRIES):
            first = self._waiting.pop()
            if first is None or not self._waiting or not self.policy.learns:
                return first
            if not self._defers(first) or self._waiting.first == first:
                self._waiting.drop(first)
                return first
        return self._waiting.pop()

    def _defers(self, url: str) -> bool:
        probability, partner = self._probability(url)
        if probability < DEFER and url in self._of_duplicates:
            probability = max(DEFER, self._links.share(host_of(url)) if self.policy.learns else 0.0)
        if probability >= DEFER:
            self._waiting.put(url, probability, partner)
            return True
        return False

    def _look_again(self, urls: Iterable[str]) -> None:
        for url in urls:
            if not self._defers(url):
                self._waiting.drop(url)
                self._queue.append(url)

    def _probability(self, url: str) -> tuple[float, str | None]:
        """That a request leads to nothing new, and to a copy of which page."""
        if self.policy.knows:
            doc = self.site.fetch(url)
            return float(doc is None or doc.star is None or doc.star in self.outcome.stars), None
        if not self.policy.learns:
            return 0.0, None
        started = perf_counter()
        found = self.outcome.learner.predict(url, may_wait=True)
        self.outcome.learner_seconds += perf_counter() - started
        self.outcome.asked += 1
        self._decide(url, found)
        return (found.probability, found.partner) if found else (0.0, None)

    def _decide(self, url: str, found: Prediction | None) -> None:
        if url in self._decided:
            return
        self._decided.add(url)
        if found is None:
            return
        doc = self.site.fetch(url)
        known = doc is None or doc.star is None or doc.star in self.outcome.stars
        self.outcome.decisions.append(Decision(found.probability, found.lower, known))
        self.outcome.deferred_wrongly += found.probability >= DEFER and not known

    def _arrived(self, url: str) -> None:
        doc, outcome = self.site.fetch(url), self.outcome
        outcome.learner.answered(url)
        if doc is not None:
            if doc.star is not None:
                outcome.stars.add(doc.star)
            verdict = self.detector.judge(url, doc.reading, always_follow=url == self.site.start)
            cluster = self._observe(verdict)
            if url in self._of_duplicates and cluster is not None:
                self._links.judged(host_of(url), is_copy=cluster != verdict.page_id)
            for changed in self.detector.judge_again(AGAIN):
                self._observe(changed)
            self._follow(doc, verdict)
        outcome.found.append(len(outcome.stars))

    def _observe(self, verdict: Verdict) -> int | None:
        """Learn from a verdict; the cluster of its page."""
        cluster = self._copies.cluster_of(verdict)
        if cluster is None:
            return None
        outcome = self.outcome
        outcome.observed.append((verdict.url, cluster))
        if self.policy.learns:
            started = perf_counter()
            unlike = outcome.learner.observe(verdict.url, cluster)
            outcome.learner_seconds += perf_counter() - started
            again = dict.fromkeys(url for partner in unlike for url in self._waiting.copies_of(partner))
            self._look_again(again)
        return cluster

    def _follow(self, doc: Doc, verdict: Verdict) -> None:
        if not verdict.follow and not self.policy.follows:
            return
        later = not verdict.follow and self.policy.links_last
        for url in doc.links:
            if url in self._seen:
                continue
            self._seen.add(url)
            self._queue.append(url)
            if later:
                self._of_duplicates.add(url)
