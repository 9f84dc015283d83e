"""The last pages of a kind that have no verdict, by what their URLs have in common with others."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.urls.memory import Page


class LastPages:
    """The last pages, ``most`` of them: those that are under way, say."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._keys: dict[str, tuple[Page, Sequence[int]]] = {}
        self._pages: dict[int, Page] = {}

    def put(self, page: Page, keys: Sequence[int]) -> None:
        """Note a page by the keys of what is left of its URL without one part; of a key the last page
        counts.
        """
        self.drop(page.url)
        self._keys[page.url] = page, keys
        self._pages.update(dict.fromkeys(keys, page))
        if len(self._keys) > self._most:
            self.drop(next(iter(self._keys)))

    def drop(self, url: str) -> None:
        """Forget a page, if it is there."""
        page, keys = self._keys.pop(url, (None, ()))
        for key in keys:
            if self._pages.get(key) is page:
                del self._pages[key]

    def of(self, key: int) -> Page | None:
        """The last page of a key."""
        return self._pages.get(key)
