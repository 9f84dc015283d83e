"""The views that only look: each takes a request and gives an answer, for people and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.detection.verdict import CANONICAL
from neardup.errors import NeardupError
from neardup.store import deciding, explore
from neardup.store.explore import ClusterFilters, Order
from neardup.store.frequencies import frequencies_of
from neardup.store.summary import url_rules
from neardup.web import svg
from neardup.web.pages import charts, first_mirrors, to
from neardup.web.site import Answer, Asked, BadRequest, NotFound, Redirect, Site
from neardup.web.texts import Compared, Marked, compare, kept_text, marked, todays_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from neardup.store.explore import ClusterRow, Listed, PageRow
    from neardup.web.texts import PageText

    View = Callable[[Site, Asked], Answer | Redirect]

_PATIENCE = 0.05
"""Seconds that a view waits for what is counted: small stores are counted by then."""

_COUNT_AGAIN = {"Refresh": "1"}


def overview(site: Site, asked: Asked) -> Answer:
    counted, counting = site.figures.current()
    with site.store.looking() as connection:
        latest = explore.crawl_list(connection).rows
    return Answer(
        template="overview.html",
        title="Overview",
        data={
            "summary": None if counted is None else counted.summary,
            "mirrors": None if counted is None else first_mirrors(counted.mirrors),
            "counting": counting,
            "newest": latest[0] if latest else None,
            "running": [crawl for crawl in latest if crawl.finished_at is None],
        },
        headers=_COUNT_AGAIN if counted is None else {},
        values={"charts": None if counted is None else charts(counted.summary)},
    )


def clusters(site: Site, asked: Asked) -> Answer:
    kind = asked.text("kind")
    if kind is not None and kind not in CANONICAL:
        raise BadRequest(f"kind must be one of {', '.join(CANONICAL)}, not {kind!r:.80}")
    order = asked.text("order") or Order.LARGEST.value
    if order not in list(Order):
        raise BadRequest(f"order must be one of {', '.join(Order)}, not {order!r:.80}")
    filters = ClusterFilters(
        host=asked.text("host"),
        kind=kind,
        crawl=asked.whole_number("crawl"),
        least=asked.whole_number("least"),
        most=asked.whole_number("most"),
        order=Order(order),
    )
    found, as_of = _clusters(site, filters, asked.text("after"))
    with site.store.looking() as connection:
        ranked = bool(explore.first_rank(connection))
    return Answer(
        template="clusters.html",
        title="Clusters",
        data={"filters": filters, "clusters": found, "as_of": as_of},
        headers=_COUNT_AGAIN if found is None else {},
        values={
            "kinds": [kind.value for kind in CANONICAL],
            "orders": [one.value for one in Order if ranked or one is not Order.PAGERANK],
            "ranked": ranked,
        },
    )


def _clusters(
    site: Site, filters: ClusterFilters, after: str | None
) -> tuple[Listed[ClusterRow] | None, datetime | None]:
    """Clusters, and as of when they are so, unless they are so now. None: they are not counted yet."""
    with site.store.looking() as connection:
        if filters.has_index or (not filters.need_table and explore.groups_quickly(connection)):
            return explore.clusters(connection, filters, after), None
    read = site.figures.clusters(_PATIENCE)
    if read is None:
        return None, None
    with site.store.looking() as connection:
        found = explore.clusters_of(connection, read.table, filters, after)
    return found, None if read.is_current else read.at


def cluster(site: Site, asked: Asked) -> Answer:
    with site.store.looking() as connection:
        found = explore.cluster(connection, _key(asked, "key"), asked.text("after"))
    if found is None:
        raise NotFound("no page of this key is stored")
    return Answer(template="cluster.html", title="Cluster", data=found)


def page(site: Site, asked: Asked) -> Answer:
    with site.store.looking() as connection:
        key = _key(asked, "key")
        found = explore.page(connection, key, asked.text("after"))
        decided, seen = deciding.about(connection, key), deciding.state_of(connection, key)
    if found is None:
        raise NotFound("no page of this key is stored")
    return Answer(
        template="page.html",
        title="Page",
        data={"page": found, "decisions": decided},
        values={"seen": seen},
    )


def pair(site: Site, asked: Asked) -> Answer:
    """Two pages side by side; with their texts, if crawls have kept both."""
    found = _pair(site, asked)
    a, b = (kept_text(site, page) for page in (found.a, found.b))
    return _pair_answer(site, asked, found, None if a is None or b is None else compare(site, a, b))


def pair_texts(site: Site, asked: Asked) -> Answer:
    """The same with today's texts, which are fetched."""
    found = _pair(site, asked)
    compared: Compared | str
    try:
        compared = compare(site, todays_text(site, found.a), todays_text(site, found.b))
    except NeardupError as exc:
        compared = str(exc)
    return _pair_answer(site, asked, found, compared)


def _pair(site: Site, asked: Asked) -> explore.Pair:
    with site.store.looking() as connection:
        found = explore.pair(connection, _key(asked, "a"), _key(asked, "b"))
    if found is None:
        raise NotFound("one of the two pages is not stored")
    return found


def _pair_answer(site: Site, asked: Asked, found: explore.Pair, compared: Compared | str | None) -> Answer:
    failure = compared if isinstance(compared, str) else None
    keys = _key(asked, "a"), _key(asked, "b")
    with site.store.looking() as connection:
        decided, seen = deciding.about(connection, *keys), deciding.state_of(connection, *keys)
    return Answer(
        template="pair.html",
        title="Pair",
        data={
            "pair": found,
            "decisions": decided,
            "texts": None if failure else compared,
            "failure": failure,
        },
        values={
            "bits": svg.bits(found.bits),
            "inline": "inline" in {asked.form.get("layout"), asked.query.get("layout")},
            "seen": seen,
            "here": f"/pair/{found.a.key}/{found.b.key}",
        },
    )


def host(site: Site, asked: Asked) -> Answer:
    """A host; with the template marked in a page of it, if crawls have kept the text."""
    return _host_answer(site, asked, kept_text, _COUNT_AGAIN)


def host_template(site: Site, asked: Asked) -> Answer:
    """The same with the page as it is today, which is fetched. To load again would lose it."""
    return _host_answer(site, asked, todays_text, {})


def _host_answer(
    site: Site,
    asked: Asked,
    text_of: Callable[[Site, PageRow], PageText | None],
    until_counted: Mapping[str, str],
) -> Answer:
    name = asked.text("name") or ""  # files have none
    counted, counting = site.figures.current()
    with site.store.looking() as connection:
        if not explore.has_host(connection, name):
            raise NotFound("no page of this host is stored")
        known = frequencies_of(connection, [name]).of(name)
        page = explore.canonical_of_host(connection, name)
        rules = url_rules(connection, host=name)[: explore.ROWS]
    shown: Marked | None = None
    failure: str | None = None
    if known is not None and page is not None:
        try:
            text = text_of(site, page)
            shown = None if text is None else marked(site, known, page, text)
        except NeardupError as exc:
            failure = str(exc)
    mirrors = [] if counted is None else [one for one in counted.mirrors if name and one.is_of(name)]
    return Answer(
        template="host.html",
        title="Host",
        data={
            "name": name,
            "figures": None if counted is None else counted.hosts.get(name),
            "counting": counting,
            "template_of": None if known is None else known.pages,
            "marked": shown,
            "failure": failure,
            "rules": rules,
            "mirrors": mirrors[: explore.ROWS],
        },
        values={"can_be_marked": known is not None and page is not None},
        headers=until_counted if counted is None else {},
    )


def crawls(site: Site, asked: Asked) -> Answer:
    with site.store.looking() as connection:
        found = explore.crawl_list(connection, asked.text("after"))
    return Answer(template="crawls.html", title="Crawls", data={"crawls": found})


def search(site: Site, asked: Asked) -> Answer | Redirect:
    """Pages by their URLs. What is a host, and nothing else, leads to the host."""
    text = asked.text("q")
    if text is None:
        return Redirect("/")
    with site.store.looking() as connection:
        if "/" not in text and explore.has_host(connection, text.lower()):
            return Redirect(to("/host", name=text.lower()))
        found = explore.search(connection, text, asked.text("after"))
    return Answer(template="search.html", title="Search", data={"text": text, "found": found})


def _key(asked: Asked, name: str) -> bytes:
    key = explore.page_key(asked.path[name])
    if key is None:
        raise NotFound("a key of a page has 32 hexadecimal digits")
    return key
