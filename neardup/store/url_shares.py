"""Pages and duplicates by what the URLs have in common: folders and parameters."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from sqlalchemy import select

from neardup.address import host_of
from neardup.store.reports import Share, most_pages_first
from neardup.store.schema import duplicate_values, simhash_values
from neardup.store.types import stored_host
from neardup.urls.parts import parameter_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

    from neardup.store.reports import Filters

_ROWS_AT_ONCE = 10_000

_Counts = dict[tuple[str, tuple[str, ...]], list[int]]
"""Pages and duplicates by the beginning and the names of the parameters of their URLs."""


@dataclass(frozen=True, slots=True)
class OfParameter:
    """The pages of a host whose URLs have a parameter; the name "" is for those whose URLs have none."""

    host: str
    share: Share


class ByUrl(NamedTuple):
    """Folders, most pages first, and parameters, most duplicates first.

    A page counts for each parameter that its URL has. Hosts without parameters are left out of these.
    """

    folders: list[Share]
    parameters: list[OfParameter]


def by_url(connection: Connection, filters: Filters) -> ByUrl:
    """Read the URLs of all pages once, and count pages and duplicates by their parts."""
    query = (
        select(simhash_values.c.actual_url, duplicate_values.c.id)
        .join_from(
            simhash_values,
            duplicate_values,
            duplicate_values.c.duplicate_hash_id == simhash_values.c.id,
            isouter=True,
        )
        .where(filters.condition())
    )
    # Beginnings of URLs and names of parameters are far fewer than URLs: only these are kept.
    counted: _Counts = defaultdict(lambda: [0, 0])
    for url, relation in connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query):
        counts = counted[_beginning(url), parameter_names(url)]
        counts[0] += 1
        counts[1] += relation is not None
    return ByUrl(_by_folder(counted), _by_parameter(counted))


def _by_folder(counted: _Counts) -> list[Share]:
    """By the first folder in which the URLs of a host differ.

    The folders that all pages of a host share say nothing: of a mirror in ``file:///data/mirror/`` the parts
    are what counts.
    """
    folders: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0])
    for (beginning, _), counts in counted.items():
        _add(folders[_folder(beginning)], counts)
    shared: dict[str, tuple[str, ...]] = {}
    for site, *path in folders:
        known = shared.get(site)
        shared[site] = tuple(path) if known is None else _common(known, path)
    groups: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for (site, *path), counts in folders.items():
        prefix = path[: len(shared[site]) + 1]
        _add(groups["/".join([site, *prefix, ""])], counts)
    return most_pages_first(Share(name, *counts) for name, counts in groups.items())


def _by_parameter(counted: _Counts) -> list[OfParameter]:
    groups: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for (beginning, names), counts in counted.items():
        host = stored_host(host_of(beginning))
        for name in names or ("",):
            _add(groups[host, name], counts)
    with_any = {host for host, name in groups if name}
    found = [
        OfParameter(host, Share(name, *counts)) for (host, name), counts in groups.items() if host in with_any
    ]
    return sorted(found, key=lambda of: (-of.share.duplicates, -of.share.pages, of.host, of.share.name))


def _add(to: list[int], counts: Iterable[int]) -> None:
    to[:] = (sum(pair) for pair in zip(to, counts, strict=True))


def _beginning(url: str) -> str:
    """A URL up to its last folder, or all of it if that is not told by the last stroke of its path."""
    path = url.partition("#")[0].partition("?")[0]
    beginning = path[: path.rfind("/") + 1]
    return url if beginning.endswith("//") or not beginning else beginning


def _folder(url: str) -> tuple[str, ...]:
    """Site and folders of a URL."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return (url,)
    folders = parts.path.split("/")[1:-1]
    return (f"{parts.scheme}://{parts.netloc}", *folders)


def _common(known: tuple[str, ...], path: list[str]) -> tuple[str, ...]:
    length = 0
    for one, other in zip(known, path, strict=False):
        if one != other:
            break
        length += 1
    return known[:length]
