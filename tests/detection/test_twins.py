"""Exact copies: a page with the very text of a canonical page is its duplicate, always."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import sqlalchemy as sa

from neardup.detection import snapshot
from neardup.detection.detector import MOST_VERIFIED, DetectorOptions
from neardup.detection.detector_arrays import arrays_of, restore_arrays
from neardup.detection.scope import Scope
from neardup.detection.snapshot import SnapshotError
from neardup.detection.verdict import Kind
from neardup.fingerprint.reader import text_digest
from neardup.store import removal
from neardup.store.schema import simhash_values
from tests.support.crawl_parts import Process
from tests.support.detectors import TEXTS, detector, edited, remembered, shuffled
from tests.support.places import PAGES
from tests.support.stores import kinds, relations

if TYPE_CHECKING:
    from pathlib import Path

    from neardup.store.store import Store


APPLE, OTHER_ORDER = TEXTS["apple"], shuffled(TEXTS["apple"])


@pytest.fixture
def few_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few pages are verified that a dozen others hide a copy from the index."""
    monkeypatch.setattr("neardup.detection.detector.MOST_VERIFIED", 2)
    monkeypatch.setattr("neardup.detection.reconciliation.MOST_VERIFIED", 2)


def orders(count: int) -> list[str]:
    """Texts of the same words, each in another order: equal fingerprints, unlike sketches."""
    return [shuffled(APPLE, seed) for seed in range(count)]


class TestManyPagesOfTheSameWords:
    @pytest.mark.slow
    def test_every_copy_is_found_behind_more_pages_than_are_verified(self) -> None:
        count = MOST_VERIFIED + 300
        one = detector()
        for number, text in enumerate(orders(count)):
            assert one.examine_text(f"u{number}", text).kind is Kind.NEW

        sample = [*range(0, count, 50), *range(count - 100, count)]
        copies = [one.examine_text(f"copy{number}", shuffled(APPLE, number)) for number in sample]

        assert [copy.canonical_url for copy in copies] == [f"u{number}" for number in sample]
        assert {(copy.distance, copy.resemblance) for copy in copies} == {(0, 1.0)}

    def test_other_near_copies_are_found_as_before(self) -> None:
        one = detector()
        one.examine_text("u", APPLE)

        near = one.examine_text("v", edited(APPLE, 2))

        assert near.canonical_url == "u"
        assert near.resemblance is not None
        assert near.resemblance < 1.0

    def test_pages_of_too_few_words_are_not_matched(self) -> None:
        one = detector()

        assert [one.examine_text(url, "too short").kind for url in ("u", "v")] == [Kind.TOO_SHORT] * 2
        assert one.digests.array(2).tolist() == [0, 0]

    def test_exact_copies_are_no_queries_of_the_index(self) -> None:
        one = detector(recall_sample=1.0)
        one.examine_text("u", APPLE)
        monitor = one.watch_recall()
        assert monitor is not None
        queries = one.index.stats.queries

        copies = [one.examine_text(f"copy{number}", APPLE) for number in range(3)]
        near = one.examine_text("v", edited(APPLE, 2))
        monitor.close()

        assert {copy.kind for copy in (*copies, near)} == {Kind.DUPLICATE}
        # One for the first page that is found, and one for all.
        assert one.index.stats.queries == queries + 2
        estimate = monitor.estimate()
        assert estimate is not None
        assert (estimate.found, estimate.checked) == (1, 1)


@pytest.mark.usefixtures("few_verified")
class TestStanding:
    """Among pages of the same words, so that only digests tell them apart."""

    def test_a_page_keeps_the_canonical_page_that_it_had(self) -> None:
        first = detector()
        pages = [
            remembered(first.examine_text("u", APPLE)),
            remembered(first.examine_text("v", edited(APPLE))),
        ]
        other = remembered(detector().examine_text("other", edited(APPLE, 2)))._replace(page_id=3)
        one = detector()
        one.restore([*pages, other])

        assert one.examine_text("v", edited(APPLE)).canonical_url == "u"

    def test_unless_another_one_has_its_very_text(self) -> None:
        first = detector()
        pages = [
            remembered(first.examine_text("u", APPLE)),
            remembered(first.examine_text("v", edited(APPLE))),
        ]
        twin = remembered(detector().examine_text("twin", edited(APPLE)))._replace(page_id=3)
        one = detector()
        one.restore([*pages, twin])

        assert one.examine_text("v", edited(APPLE)).canonical_url == "twin"
        assert one.examine_text("w", edited(APPLE)).canonical_url == "twin"

    def test_a_canonical_page_that_changes_is_not_found_by_its_old_text(self) -> None:
        one = detector()
        for number, text in enumerate(orders(10)):
            one.examine_text(f"u{number}", text)
        one.examine_text("u7", TEXTS["pear"])

        assert one.examine_text("new", orders(8)[7]).kind is Kind.NEW
        assert one.examine_text("copy", orders(8)[7]).canonical_url == "new"
        assert one.examine_text("pear", TEXTS["pear"]).canonical_url == "u7"

    def test_a_canonical_page_whose_words_change_their_order(self) -> None:
        one = detector()
        texts = orders(11)
        for number, text in enumerate(texts[:10]):
            one.examine_text(f"u{number}", text)

        again = one.examine_text("u7", texts[10])

        assert (again.kind, again.own_distance) == (Kind.UNCHANGED, 0)
        assert one.examine_text("new", texts[7]).kind is Kind.NEW
        assert one.examine_text("copy", texts[10]).canonical_url == "u7"

    def test_a_canonical_page_that_becomes_the_copy_of_another_by_the_order_of_its_words(self) -> None:
        one = detector()
        texts = orders(10)
        for number, text in enumerate(texts):
            one.examine_text(f"u{number}", text)

        again = one.examine_text("u7", texts[8])

        assert (again.kind, again.canonical_url, again.own_distance) == (Kind.DUPLICATE, "u8", 0)
        assert one.no_longer_canonical == {8}
        assert one.examine_text("new", texts[7]).kind is Kind.NEW
        assert one.examine_text("u7", texts[8]).canonical_url == "u8"

    @pytest.mark.parametrize("goes", ["gone", "too short"])
    def test_a_canonical_page_that_goes(self, goes: str) -> None:
        one = detector()
        texts = orders(10)
        for number, text in enumerate(texts):
            one.examine_text(f"u{number}", text)
        if goes == "gone":
            one.gone("u7")
        else:
            one.examine_text("u7", goes)

        assert one.examine_text("new", texts[7]).kind is Kind.NEW
        assert one.examine_text("copy", texts[7]).canonical_url == "new"

    def test_a_page_that_is_seen_again_after_its_copy(self) -> None:
        one = detector()
        one.examine_text("u", APPLE)
        one.examine_text("copy", APPLE)

        assert one.examine_text("u", APPLE).kind is Kind.UNCHANGED
        assert one.examine_text("copy", APPLE).canonical_url == "u"

    def test_a_digest_alone_does_not_make_a_copy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("neardup.fingerprint.reader.text_digest", lambda text: 1)
        one = detector()
        texts = [*orders(10), TEXTS["pear"], TEXTS["fig"]]

        for number, text in enumerate(texts):
            assert one.examine_text(f"u{number}", text).kind is Kind.NEW
        copies = [one.examine_text(f"copy{number}", text) for number, text in enumerate(texts)]

        assert [copy.canonical_url for copy in copies] == [f"u{number}" for number in range(len(texts))]


@pytest.mark.usefixtures("few_verified")
class TestScopes:
    HOSTS = ("a.example.com", "b.example.com", "example.org")

    @pytest.mark.parametrize(
        ("scope", "canonical"),
        [("any", [0, 0, 0]), ("domain", [0, 0, 2]), ("host", [0, 1, 2])],
    )
    def test_the_copy_within_the_scope_is_found(self, scope: str, canonical: list[int]) -> None:
        one = detector(scope=scope)
        texts = orders(8)
        for host in self.HOSTS:
            for number, text in enumerate(texts):
                one.examine_text(f"http://{host}/{number}", text)

        found = [one.examine_text(f"http://{host}/copy", texts[7]).canonical_url for host in self.HOSTS]

        assert found == [f"http://{self.HOSTS[place]}/7" for place in canonical]

    def test_a_site_that_shares_the_digest_of_another_does_not_count(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Scope, "digest", lambda self, url, digest: digest)
        one = detector(scope="host")
        one.examine_text("http://a.example.com/", APPLE)
        one.examine_text("http://b.example.com/", APPLE)

        assert one.examine_text("http://b.example.com/2", APPLE).canonical_url == "http://b.example.com/"
        assert one.examine_text("http://c.example.com/", APPLE).kind is Kind.NEW


@pytest.mark.usefixtures("few_verified")
class TestRestart:
    @pytest.mark.parametrize("scope", ["any", "host"])
    def test_from_what_was_remembered(self, scope: str) -> None:
        first = detector(scope=scope)
        texts = orders(12)
        pages = [remembered(first.examine_text(f"http://a/{n}", text)) for n, text in enumerate(texts)]

        second = detector(scope=scope)
        second.restore(pages[::-1])

        assert [
            second.examine_text(f"http://a/copy{n}", text).canonical_url for n, text in enumerate(texts)
        ] == [page.url for page in pages]

    @pytest.mark.parametrize("scope", ["any", "host"])
    def test_from_a_snapshot(self, tmp_path: Path, scope: str) -> None:
        first = detector(scope=scope)
        texts = orders(12)
        for number, text in enumerate(texts):
            first.examine_text(f"http://a/{number}", text)
        first.examine_text("http://a/3", TEXTS["pear"])
        snapshot.save(tmp_path / "s", kind="test", meta={}, arrays=arrays_of(first))

        second = detector(scope=scope)
        assert restore_arrays(second, snapshot.load(tmp_path / "s", kind="test").arrays) == 12

        copies = [
            second.examine_text(f"http://a/copy{n}", text).canonical_url for n, text in enumerate(texts)
        ]
        assert copies[3] is None
        del copies[3], texts[3]
        assert copies == [f"http://a/{number}" for number in range(12) if number != 3]

    @pytest.mark.parametrize("digests", [None, np.zeros(2, dtype=np.uint64), np.zeros(3, dtype=np.int64)])
    def test_a_snapshot_without_the_digests_of_its_pages_is_refused(self, digests: Any) -> None:
        first = detector()
        for number, text in enumerate(orders(3)):
            first.examine_text(f"u{number}", text)
        arrays = {
            name: array if isinstance(array, np.ndarray) else np.concatenate(array)
            for name, array in arrays_of(first).items()
        }
        arrays |= {"digests": digests}
        second = detector()

        with pytest.raises(SnapshotError, match="digests"):
            restore_arrays(second, {name: array for name, array in arrays.items() if array is not None})
        assert len(second.pages) == 0

    def test_two_canonical_pages_of_one_text_stand_in_for_each_other(self) -> None:
        # As two crawls leave them that were killed.
        texts = orders(10)
        pages = [
            remembered(detector().examine_text(f"{name}{i}", text))._replace(page_id=10 * n + i)
            for n, name in enumerate("uvw", 1)
            for i, text in enumerate(texts)
        ]
        one = detector()
        one.restore(pages)
        found = set()
        for _ in range(3):
            canonical = one.examine_text("copy", texts[7]).canonical_url
            assert canonical is not None
            found.add(canonical)
            one.gone(canonical)

        assert found == {"u7", "v7", "w7"}
        assert one.examine_text("copy", texts[7]).kind is not Kind.DUPLICATE


class TestStores:
    """On the real databases."""

    @pytest.mark.usefixtures("few_verified")
    def test_the_next_crawl_finds_the_copies(self, store: Store) -> None:
        texts = orders(10)
        first = Process(store)
        for number, text in enumerate(texts):
            first.judge(f"u{number}", text)
        first.end()
        with store.reading() as connection:
            stored = connection.execute(sa.select(simhash_values.c.actual_url, simhash_values.c.text_digest))
            assert dict(stored.all()) == {f"u{n}": text_digest(text) for n, text in enumerate(texts)}

        second = Process(store)
        for number, text in enumerate(texts):
            assert second.judge(f"copy{number}", text).canonical_url == f"u{number}"
        second.gone("u4")
        second.end()

        assert relations(store) == {f"copy{n}": f"u{n}" for n in range(10) if n != 4}
        assert Process(store).judge("again", texts[4]).canonical_url == "copy4"

    @pytest.mark.usefixtures("few_verified")
    @pytest.mark.parametrize("interval", [60.0, 0.0])
    def test_copies_that_two_crawls_call_new_become_one_cluster(self, store: Store, interval: float) -> None:
        texts = orders(10)
        a, b = Process(store, interval=interval), Process(store, interval=interval)
        for number, text in enumerate(texts):
            a.judge(f"a{number}", text)
            b.judge(f"b{number}", text)
        a.end()
        b.end()
        Process(store).end()  # which compares what crawls leave that do not follow others

        assert relations(store) == {f"b{n}": f"a{n}" for n in range(10)}
        assert Process(store).judge("copy", texts[7]).canonical_url == "a7"

    @pytest.mark.usefixtures("few_verified")
    def test_a_page_whose_words_change_their_order_in_another_crawl(self, store: Store) -> None:
        texts = orders(12)
        first = Process(store)
        for number, text in enumerate(texts[:10]):
            first.judge(f"u{number}", text)
        first.end()
        a, b = Process(store), Process(store)
        assert a.judge("u7", texts[10]).kind is Kind.UNCHANGED
        assert b.judge("b", texts[10]).kind is Kind.NEW
        a.writer.flush()
        b.follow()

        assert b.judge("c", texts[7]).kind is Kind.NEW
        assert b.judge("d", texts[10]).canonical_url == "u7"
        b.end()
        a.end()
        assert relations(store) == {"b": "u7", "d": "u7"}

    @pytest.mark.usefixtures("few_verified")
    def test_a_removed_canonical_page_hands_its_text_on(self, store: Store) -> None:
        texts = orders(10)
        first, second = Process(store), Process(store)
        for number, text in enumerate(texts):
            first.judge(f"u{number}", text)
        first.end()
        second.follow()
        for number, text in enumerate(texts):
            second.judge(f"copy{number}", text)
        second.end()

        list(removal.remove_crawl(store, first.crawl_id, first.detector.rule))

        assert kinds(store) == {f"copy{n}": "new" for n in range(10)}
        assert Process(store).judge("again", texts[7]).canonical_url == "copy7"


class TestDigest:
    def test_of_the_purified_text(self) -> None:
        reader = DetectorOptions().make_reader()
        page = (PAGES / "apache").rglob("*.html").__next__()
        html = page.read_bytes()

        once, again = reader.read_html("u", html), reader.read_html("v", html + b"<!-- served at noon -->")

        assert once.text_digest == again.text_digest
        assert (
            once.text_digest != reader.read_html("u", html.replace(b"</body>", b" more</body>")).text_digest
        )

    def test_never_changes(self) -> None:
        # The first half of MurmurHash3 x64 128 by its reference: what stores hold must be found again.
        assert text_digest("hello") == 0xCBD8A7B341BD9B02
        assert text_digest("") == 1  # 0 stands for none

    def test_a_lone_surrogate(self) -> None:
        assert text_digest("\ud800") not in (0, text_digest("?"), text_digest(""))
