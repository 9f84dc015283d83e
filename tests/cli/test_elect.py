"""Elections of canonical pages by rules that the user gives."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from neardup.cli.main import main
from neardup.store import check
from neardup.store.schema import decisions, page_ranks
from tests.support.stores import kinds, pages_of, relations_of, write
from tests.support.verdicts import duplicate, fingerprint, page

if TYPE_CHECKING:
    from neardup.store.store import Store

VALUE = 0x123456789ABCDEF0
FIRST = "http://a.example/first"
SECURE = "https://a.example/with/a/long/path"
SHORT = "http://b.example/"
APART = "http://c.example/1", "http://c.example/"


@pytest.fixture
def filled(store: Store) -> Store:
    """A cluster of three pages that are alike, and one of two of which a third is like the first alone."""
    crawl_id = store.begin_crawl(spider="s", settings={})
    start = crawl_id * 1_000_000_000
    near: dict[str, Any] = {"fingerprint": fingerprint(VALUE)}
    far = [fingerprint(7), fingerprint(7 ^ 0xFF), fingerprint(7 ^ 0xFF00)]
    write(
        store,
        page(start + 1, FIRST, **near),
        duplicate(start + 2, SECURE, start + 1, **near),
        duplicate(start + 3, SHORT, start + 1, **near),
        page(start + 4, "http://c.example/first", fingerprint=far[0]),
        duplicate(start + 5, APART[0], start + 4, 8, fingerprint=far[1]),
        duplicate(start + 6, APART[1], start + 4, 8, fingerprint=far[2]),
        crawl=crawl_id,
    )
    store.finish_crawl(crawl_id, reason="finished", counts={})
    with store.begin_write() as connection:
        connection.execute(
            sa.insert(page_ranks),
            [
                {"page_id": start + number, "pagerank": rank}
                for number, rank in ((1, 0.2), (2, 0.2), (3, 0.6))
            ],
        )
    return store


def elected(capsys: pytest.CaptureFixture[str], store: Store, *arguments: str, code: int = 0) -> Any:
    url = store.engine.url.render_as_string(hide_password=False)
    done = main(["collection", "elect", *arguments, "--format", "json", "--database", url])
    printed = capsys.readouterr()
    assert done == code
    return printed.err if code else json.loads(printed.out)["elected"]


def canonical(store: Store) -> set[str]:
    return {url for url, kind in kinds(store).items() if kind != "duplicate"}


@pytest.mark.parametrize(
    ("rules", "chosen", "by"),
    [
        ("pagerank", SHORT, "pagerank"),
        ("https,pagerank", SECURE, "https"),
        ("shortest", SHORT, "shortest"),
        ("first_seen,shortest", FIRST, None),
    ],
)
def test_the_first_rule_decides(
    filled: Store, capsys: pytest.CaptureFixture[str], rules: str, chosen: str, by: str | None
) -> None:
    seen_at = sa.text("UPDATE simhash_values SET first_seen = '2001-01-01' WHERE actual_url = :url")
    with filled.begin_write() as connection:
        connection.execute(seen_at, {"url": FIRST})
    before = relations_of(filled)

    told = elected(capsys, filled, "--by", rules, "--dry-run")
    assert relations_of(filled) == before
    assert elected(capsys, filled, "--by", rules) == told

    assert chosen in canonical(filled)
    assert [(row["canonical"], row["before"], row["by"]) for row in told] == (
        [] if by is None else [(chosen, FIRST, by)]
    )
    with filled.reading() as connection:
        assert check.check(connection, {1: 8}, limit=5).broken == []
    assert elected(capsys, filled, "--by", rules) == []


def test_a_cluster_keeps_its_pages(filled: Store, capsys: pytest.CaptureFixture[str]) -> None:
    before = len(relations_of(filled))
    url = filled.engine.url.render_as_string(hide_password=False)

    assert main(["collection", "elect", "--by", "shortest", "--database", url]) == 0

    assert "of 2 clusters, 1 have another canonical page; 1 keep theirs" in capsys.readouterr().out
    assert len(relations_of(filled)) == before
    assert "http://c.example/first" in canonical(filled)
    assert not set(APART) & canonical(filled)


def test_what_is_refused(filled: Store, capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in ("", "age", "pagerank,pagerank", "pagerank, https"):
        with pytest.raises(SystemExit):
            elected(capsys, filled, f"--by={wrong}")
        assert "no list of different rules" in capsys.readouterr().err
    with filled.begin_write() as connection:
        connection.execute(sa.delete(page_ranks))
    assert "run neardup collection pagerank first" in elected(capsys, filled, "--by=pagerank", code=1)
    filled.begin_crawl(spider="s", settings={})
    assert "seems to be running" in elected(capsys, filled, "--by=shortest", code=1)
    assert len(elected(capsys, filled, "--by=shortest", "--yes")) == 1


def test_what_people_have_decided_stays(filled: Store, capsys: pytest.CaptureFixture[str]) -> None:
    keys = {row["actual_url"]: row["url_key"] for row in pages_of(filled)}
    row = {
        "page_key": keys[SHORT],
        "page_url": SHORT,
        "other_key": keys[FIRST],
        "other_url": FIRST,
        "decision": "same",
        "note": "",
        "decided_by": "somebody",
        "decided_at": datetime.now(UTC),
    }
    with filled.begin_write() as connection:
        connection.execute(sa.insert(decisions), row)

    assert elected(capsys, filled, "--by=shortest") == []
    assert FIRST in canonical(filled)
