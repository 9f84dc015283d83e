"""Scope: which sites' pages a page is matched with, in the detector, over crawls, in ``neardup check``, and
what the report says.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from neardup.address import Address, registered_domain
from neardup.cli.main import main
from neardup.detection.detector import Detector, DetectorOptions
from neardup.detection.scope import SCOPES, Scope
from neardup.detection.verdict import Kind
from neardup.errors import ConfigurationError
from neardup.fingerprint.scheme import Scheme
from neardup.store.store import Store
from tests.support.crawling import crawl, serve
from tests.support.detectors import TEXTS, edited, remembered, shuffled
from tests.support.spiders import OTHER, WORDS, LinkSpider
from tests.support.stores import upgraded, write
from tests.support.verdicts import duplicate, page

if TYPE_CHECKING:
    from pathlib import Path

SITES = [
    # one URL, another, whether they are within a domain, within a host
    ("http://a.example.org/1", "http://a.example.org/2", True, True),
    ("http://a.example.org/", "https://A.EXAMPLE.org.:8443/x", True, True),
    ("http://a.example.org/", "http://b.example.org/", True, False),
    ("http://a.example.org/", "http://example.org/", True, False),
    ("http://a.example.co.uk/", "http://b.example.co.uk/", True, False),
    ("http://one.co.uk/", "http://two.co.uk/", False, False),
    ("http://one.github.io/", "http://two.github.io/", False, False),
    ("http://www.one.github.io/", "http://one.github.io/", True, False),
    ("http://github.io/", "http://one.github.io/", False, False),
    ("http://bücher.example.org/", "http://xn--bcher-kva.example.org/", True, True),
    ("http://10.0.0.1/", "http://11.0.0.1/", False, False),
    ("http://10.0.0.1/", "http://10.0.0.1:8000/", True, True),
    ("http://[2001:db8::1]/", "http://[2001:db8::2]/", False, False),
    ("http://localhost/", "http://localhost:8000/", True, True),
    ("http://one.internal/", "http://two.internal/", False, False),
    ("file:///a/1.html", "file:///b/2.html", True, True),
    ("file:///a/1.html", "http://a.example.org/", False, False),
    ("http://a.example.org@evil.example/", "http://a.example.org/", False, False),
    ("http://evil.example/a.example.org", "http://a.example.org/", False, False),
    ("http://[a.example.org/", "http://[b.example.org/", False, False),
    ("http://[a.example.org/", "file:///a/1.html", False, False),
]


@pytest.mark.parametrize(("one", "other", "domain", "host"), SITES)
def test_what_a_scope_takes(one: str, other: str, *, domain: bool, host: bool) -> None:
    taken = {
        name: (Scope(name).takes(Address(one), other), Scope(name).takes(Address(other), one))
        for name in SCOPES
    }

    assert taken == {"any": (True, True), "domain": (domain, domain), "host": (host, host)}


@pytest.mark.parametrize("host", ["", "localhost", "co.uk", "10.0.0.1", "::1", "a.internal", "a..b", "."])
def test_what_nobody_registered_stands_for_itself(host: str) -> None:
    assert registered_domain(host) == host


def test_an_unknown_scope_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="scope must be one of any, domain, host, not 'site'"):
        DetectorOptions(scope="site")


def detector(scope: str, **options: Any) -> Detector:
    return Detector(DetectorOptions(scope=scope, **options))


class TestDetector:
    @pytest.mark.parametrize(
        ("scope", "canonical"),
        [("any", "http://evil.example.net/"), ("domain", "http://a.example.org/"), ("host", None)],
    )
    def test_only_pages_within_the_scope_are_matched(self, scope: str, canonical: str | None) -> None:
        one = detector(scope)
        one.examine_text("http://evil.example.net/", TEXTS["apple"])
        one.examine_text("http://a.example.org/", TEXTS["apple"])

        verdict = one.examine_text("http://b.example.org/", TEXTS["apple"])

        assert verdict.canonical_url == canonical
        assert verdict.kind is (Kind.DUPLICATE if canonical else Kind.NEW)
        assert len(one.index) == {"any": 1, "domain": 2, "host": 3}[scope]

    @pytest.mark.parametrize("index", ["psm", "scan", "manku", "multi-index"])
    def test_a_page_behind_nearer_ones_out_of_scope_is_found(self, index: str) -> None:
        one = detector("host", index=index, recall=1.0)
        for number in range(120):  # more than a leaf of the index holds
            one.examine_text(f"http://evil{number}.example/", TEXTS["apple"])
        assert len(one.index) == 120
        one.examine_text("http://a.example/1", edited(TEXTS["apple"]))

        verdict = one.examine_text("http://a.example/2", TEXTS["apple"])

        assert (verdict.kind, verdict.canonical_url) == (Kind.DUPLICATE, "http://a.example/1")
        assert verdict.distance

    def test_of_those_in_scope_the_most_resembling_is_taken(self) -> None:
        pages = {
            "http://evil.example/": TEXTS["apple"],
            "http://a.example/order": shuffled(TEXTS["apple"]),
            "http://a.example/far": edited(TEXTS["apple"], 4),
            "http://a.example/near": edited(TEXTS["apple"]),
        }
        # Each of them judged alone, so that all are canonical.
        alone = [
            detector("host", verify=1.0, max_distance=0).examine_text(url, text)
            for url, text in pages.items()
        ]
        one = detector("host", recall=1.0, max_distance=16)
        one.restore([remembered(page)._replace(page_id=number) for number, page in enumerate(alone, 1)])

        assert (
            one.examine_text("http://a.example/copy", TEXTS["apple"]).canonical_url == "http://a.example/near"
        )

    def test_a_relation_stored_under_another_scope_is_judged_afresh(self) -> None:
        first = detector("any")
        verdicts = [
            first.examine_text("http://evil.example/", TEXTS["apple"]),
            first.examine_text("http://a.example/1", TEXTS["apple"]),
            first.examine_text("http://a.example/2", TEXTS["apple"]),
        ]
        assert [verdict.kind for verdict in verdicts] == [Kind.NEW, Kind.DUPLICATE, Kind.DUPLICATE]

        second = detector("host")
        second.restore([remembered(verdict) for verdict in verdicts])
        again = [second.examine_text(verdict.url, TEXTS["apple"]) for verdict in verdicts]

        assert [verdict.kind for verdict in again] == [Kind.UNCHANGED, Kind.UNCHANGED, Kind.DUPLICATE]
        assert again[2].canonical_url == "http://a.example/1"


class TestCrawl:
    def test_two_hosts_over_two_crawls_and_what_is_said_of_them(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.delenv("SCRAPY_SETTINGS_MODULE", raising=False)
        url = f"sqlite:///{tmp_path}/n.db"
        settings = {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_DATABASE_URL": url}

        def told(*arguments: str) -> Any:
            main([*arguments, "--database", url, "--format", "json"])
            return json.loads(capsys.readouterr().out)

        with serve() as site:
            other_host = site.url.replace("127.0.0.1", "localhost")
            site.add("/", OTHER, "/copied")
            site.add("/copied", WORDS, f"{other_host}/own")
            site.add("/own", WORDS)

            anywhere = crawl(LinkSpider, settings, start=site.url)
            assert anywhere.neardup("duplicates") == 1
            report = told("report")
            assert (report["overview"][0]["cross_host"], report["overview"][0]["cross_domain"]) == (1, 1)
            assert report["cross_host"] == [
                {"duplicates": 1, "host": "localhost", "canonical_host": "127.0.0.1"}
            ]
            (checked,) = told("check", f"{other_host}/own")
            assert checked["verdict"].startswith("duplicate of another page")

            # What the snapshot says of the page is that of the other scope, too.
            within = crawl(LinkSpider, settings | {"NEARDUP_SCOPE": "host"}, start=site.url)
            assert (within.neardup("duplicates"), within.neardup("unchanged")) == (0, 3)
            assert told("report")["overview"][0]["cross_host"] == 0

            (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = scope_settings\n")
            (tmp_path / "scope_settings.py").write_text("NEARDUP_SCOPE = 'host'\n")
            monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "scope_settings")
            monkeypatch.syspath_prepend(tmp_path)
            for path, host, verdict in (
                (
                    "/own",
                    other_host,
                    "not a duplicate of another page (stored itself, as unchanged); 1 like it on",
                ),
                ("/", other_host, "not a duplicate; 1 like it on other sites (scope: host)"),
            ):
                (checked,) = told("check", f"{host}{path}")
                assert checked["verdict"].startswith(verdict)
            site.add("/another", WORDS)
            (checked,) = told("check", f"{other_host}/another")
            assert checked["verdict"] == "duplicate; 1 like it on other sites (scope: host)"
            assert [like["url"] for like in checked["resembles"]] == [f"{other_host}/own"]


def test_the_longest_lists_of_a_report_are_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/n.db"
    with Store.open(upgraded(url), scheme=str(Scheme())) as store:
        write(
            store,
            page(1, "http://one.example.org/"),
            duplicate(2, "http://two.example.org/", 1),
            duplicate(3, "http://example.net/", 1),
            duplicate(4, "http://example.net/4", 1),
            duplicate(5, "file:///5.html", 1),
            crawl=store.begin_crawl(spider="s", settings={}),
        )

    assert main(["report", "--database", url, "--limit", "1"]) == 0

    blocks = capsys.readouterr().out.split("\n\n")
    assert [
        " ".join(line.split()) for line in next(b for b in blocks if "cross hosts" in b).splitlines()
    ] == [
        "Relations that cross hosts (the 1 with most duplicates, of 3)",
        "duplicates host canonical_host",
        "2 example.net one.example.org",
    ]
    assert [" ".join(line.split()) for line in next(b for b in blocks if "registered" in b).splitlines()] == [
        "Relations that cross registered domains (the 1 with most duplicates, of 2)",
        "duplicates domain canonical_domain",
        "2 example.net example.org",
    ]
    overview = next(b for b in blocks if "All pages" in b).splitlines()
    assert dict(zip(*map(str.split, overview[1:3]), strict=True)).items() >= {
        "duplicates": "4", "cross_host": "4", "cross_domain": "3"
    }.items()  # fmt: skip
