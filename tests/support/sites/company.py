"""One site with all that plugins of Scrapy have to do with: real pages, print views, listings, items in two
requests, a login, feeds.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from tests.support.places import PAGES
from tests.support.sites.served import NOT_FOUND, Answer, Ask, MadeSite, page
from tests.support.sites.text import names, passage, prose

if TYPE_CHECKING:
    from collections.abc import Callable

_PAGES = PAGES
_PASSWORD = "correct horse"
_PER_LISTING = 5
_LINK = re.compile(r'<a\b[^>]*?\bhref="([^"]*)"')


class Company(MadeSite):
    """Real pages in up to four versions, a shop, and a members' area.

    Each real page has a print view, and that alone leads to its appendix. Listings and products are
    near-alike among themselves. Of the members' pages half are near-alike. ``folders``: those of
    ``tests/pages`` that are served. ``public``: what is found without logging in.
    """

    def __init__(
        self,
        folders: tuple[str, ...] = ("clang-13", "clang-14", "clang-15", "clang-16", "apache"),
        products: int = 18,
        members: int = 10,
    ) -> None:
        super().__init__()
        self._documents = {
            f"/docs/{file.relative_to(_PAGES).as_posix()}": file
            for folder in folders
            for file in sorted((_PAGES / folder).rglob("*.html"))
        }
        self._number = {path: number for number, path in enumerate(self._documents)}
        self._names = list(islice(names("company"), products))
        self._same_text = passage("company product", 550)
        self._frame = passage("company listing", 600)
        self._members = members
        self._listings = -(-products // _PER_LISTING)
        numbers = range(products)
        self.public = frozenset(
            [
                "/",
                *self._documents,
                *(f"/print{path}" for path in self._documents),
                *(f"/appendix/{number}" for number in self._number.values()),
                *(f"/list?page={number}" for number in range(1, self._listings + 1)),
                *(f"/product/{number}" for number in numbers),
                *(f"/api/{number}" for number in numbers),
            ]
        )
        self.inside = frozenset(["/members/", *(f"/members/{number}" for number in range(members))])
        """What is found by who has logged in, besides."""
        self.keys = self.public

    def answer(self, ask: Ask) -> Answer:
        found = self._find(ask)
        # The key is what was asked for: copies at two addresses are two pages here, and neither may be lost.
        if found.status == 200 and ask.method == "GET" and found.key is None and ask.target in self.keys:
            return Answer(found.body, ask.target, headers=found.headers)
        return found

    def _find(self, ask: Ask) -> Answer:
        kind, _, name = ask.path.removeprefix("/").partition("/")
        makers: dict[str, Callable[[Ask, str], Answer]] = {
            "": self._home,
            "docs": self._document,
            "print": self._document,
            "appendix": self._appendix,
            "list": self._listing,
            "product": self._product,
            "api": self._price,
            "members": self._member,
            "login": self._log_in,
            "sitemap.xml": self._sitemap,
            "feed.xml": self._feed,
        }
        return makers[kind](ask, name) if kind in makers else NOT_FOUND

    def _home(self, _ask: Ask, _name: str) -> Answer:
        firsts = [path for path in self._documents if path.endswith(("/index.html", "/FAQ.html"))][:3]
        others = [path for path in self._documents if "/apache/" in path]
        links = dict.fromkeys([*firsts, *others, "/list?page=1", "/members/"], "see")
        return page("Home", prose("company home", 150), links=links)

    def _document(self, ask: Ask, _name: str) -> Answer:
        path = ask.path
        original = path.removeprefix("/print")
        if original not in self._documents:
            return NOT_FOUND
        html = self._documents[original].read_bytes().decode("utf-8", "replace")
        # They have links to the other pages of their manuals, most of which are not here.
        html = _LINK.sub(lambda link: link[0] if self._leads_on(original, link[1]) else "<a", html)
        links = {"/": "Home", f"/print{original}": "Print"}
        if path != original:
            links = {"/": "Home", f"/appendix/{self._number[original]}": "Appendix"}
        else:
            links |= dict.fromkeys(self._next_to(original), "Other version")
        anchors = " ".join(f'<a href="{target}">{text}</a>' for target, text in links.items())
        before, body_ends, after = html.rpartition("</body>")
        return Answer(f"{before}<p>{anchors}</p>{body_ends}{after}")

    def _leads_on(self, path: str, href: str) -> bool:
        return urlsplit(urljoin(path, href)).path in self._documents

    def _next_to(self, path: str) -> list[str]:
        """The next page, and the same page of the next version."""
        everything = list(self._documents)
        number = everything.index(path)
        after = everything[number + 1 : number + 2]
        version = re.match(r"/docs/clang-(\d+)/", path)
        if version:
            newer = path.replace(version[1], str(int(version[1]) + 1), 1)
            after += [newer] if newer in self._documents else []
        return after

    def _appendix(self, ask: Ask, name: str) -> Answer:
        if not name.isdigit() or int(name) >= len(self._documents):
            return NOT_FOUND
        return page(f"Appendix {name}", prose(ask.path, 120), links={"/": "Home"})

    def _listing(self, ask: Ask, _name: str) -> Answer:
        number = int(ask.query["page"])
        if not 1 <= number <= self._listings:
            return NOT_FOUND
        first = (number - 1) * _PER_LISTING
        shown = range(first, min(first + _PER_LISTING, len(self._names)))
        cards = "".join(
            f'<li><a href="/product/{product}">{self._names[product]}</a></li>' for product in shown
        )
        links = {f"/list?page={number + 1}": "Next"} if number < self._listings else {}
        return page("All products", self._frame, f"<ul>{cards}</ul>", links=links)

    def _product(self, _ask: Ask, name: str) -> Answer:
        api = f'<div data-api="/api/{name}"></div>'
        return page(self._names[int(name)], self._same_text, api, links={"/": "Home"})

    def _price(self, _ask: Ask, name: str) -> Answer:
        body = json.dumps({"price": int(name) + 100})
        return Answer(body, headers={"Content-Type": "application/json"})

    def _log_in(self, ask: Ask, _name: str) -> Answer:
        if ask.form.get("password") != _PASSWORD:
            return self._form(ask.form.get("next", "/"))
        headers = {"Location": f"{ask.form['next']}?welcome=yes", "Set-Cookie": "session=member; Path=/"}
        return Answer("", status=302, headers=headers)

    def _form(self, wanted: str) -> Answer:
        form = (
            '<form id="login" method="post" action="/login">'
            f'<input type="hidden" name="next" value="{wanted}">'
            '<input name="password" type="password"></form>'
        )
        return Answer(
            page("Please log in", passage("login", 120), form, links={"/": "Home"}).body, key="form"
        )

    def _member(self, ask: Ask, name: str) -> Answer:
        if ask.cookies.get("session") != "member":
            return self._form(ask.path)
        links = {"/members/": "Members"}
        if not name:
            links = {f"/members/{number}": f"Report {number}" for number in range(0, self._members, 2)}
            return page("Members", prose("members", 150), key=ask.path, links=links)
        if not name.isdigit() or int(name) >= self._members:
            return NOT_FOUND
        number = int(name)
        if number % 2 == 0 and number + 1 < self._members:
            links[f"/members/{number + 1}"] = "Annex"
        text = passage("report", 500) if number % 2 == 0 else prose(ask.path, 120)
        return page(f"Report {number}", text, key=ask.path, links=links)

    def _sitemap(self, ask: Ask, _name: str) -> Answer:
        """The pages of the first two folders, as they are, and the first listing."""
        paths = [path for path in self._documents if "/clang-13/" in path or "/clang-14/" in path]
        entries = "".join(f"<url><loc>{ask.host}{path}</loc></url>" for path in [*paths, "/list?page=1", "/"])
        return _xml(f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>')

    def _feed(self, ask: Ask, _name: str) -> Answer:
        links = ["/", *(f"/product/{number}" for number in range(0, len(self._names), 2))]
        entries = "".join(f"<item><title>New</title><link>{ask.host}{link}</link></item>" for link in links)
        return _xml(f"<rss><channel>{entries}</channel></rss>")


def _xml(body: str) -> Answer:
    return Answer(
        f'<?xml version="1.0" encoding="UTF-8"?>{body}', headers={"Content-Type": "application/xml"}
    )
