"""Pages that stand in for others: login forms, captchas, error pages; and items that are completed by another
request.
"""

from __future__ import annotations

import json
from itertools import islice
from typing import Literal

from tests.support.sites.served import NOT_FOUND, Answer, Ask, MadeSite, page
from tests.support.sites.text import names, passage, prose

_PAGES_OF_A_LOGIN = 5
_PASSWORD = "correct horse"


class LoginWall(MadeSite):
    """Some pages are public; the others answer with the same login form until who asks has logged in, which
    holds for a few pages.

    ``opens``: whether one can log in at all.
    """

    spider = "login"

    def __init__(self, public: int = 10, walled: int = 40, *, opens: bool = True) -> None:
        super().__init__()
        self._public = public
        self._walled = walled
        self._opens = opens
        self._notice = passage("login", 120)
        self._left: dict[str, int] = {}
        """Pages that each login is still good for."""
        self.keys = frozenset(["home", *(f"public {number}" for number in range(public))])
        if opens:
            self.keys |= {f"walled {number}" for number in range(walled)}
        else:
            self.spider = "follow"

    def begin(self) -> None:
        self._left.clear()

    def answer(self, ask: Ask) -> Answer:
        if ask.path == "/":
            links = {f"/walled/{number}": f"Report {number}" for number in range(self._walled)}
            links |= {f"/public/{number}": f"News {number}" for number in range(self._public)}
            return page("Home", prose("home", 150), key="home", links=links)
        if ask.path == "/login":
            return self._log_in(ask)
        kind, _, number = ask.path.removeprefix("/").partition("/")
        if kind == "walled":
            session = ask.cookies.get("session", "")
            if (
                "welcome" not in ask.query
            ):  # where a login leads is open: another may have followed it at once
                if not self._left.get(session):
                    return self._form(ask.path)
                self._left[session] -= 1
            elif session not in self._left:
                return self._form(ask.path)
        if kind in {"walled", "public"} and number.isdigit():
            links = {"/": "Home"}
            return page(f"{kind} {number}".title(), prose(ask.path, 150), key=f"{kind} {number}", links=links)
        return NOT_FOUND

    def _log_in(self, ask: Ask) -> Answer:
        if not self._opens or ask.form.get("password") != _PASSWORD:
            return self._form(ask.form.get("next", "/"))
        session = str(len(self._left) + 1)
        self._left[session] = _PAGES_OF_A_LOGIN
        headers = {
            "Location": f"{ask.form['next']}?welcome=yes",
            "Set-Cookie": f"session={session}; Path=/",
        }
        return Answer("", status=302, headers=headers)

    def _form(self, wanted: str) -> Answer:
        form = (
            '<form id="login" method="post" action="/login">'
            f'<input type="hidden" name="next" value="{wanted}">'
            '<input name="password" type="password"></form>'
        )
        return page("Please log in", self._notice, form, links={"/": "Home"})


class Captcha(MadeSite):
    """The first answer of each page is a captcha; who asks again gets the page."""

    spider = "captcha"

    def __init__(self, pages: int = 20) -> None:
        super().__init__()
        self._pages = pages
        self._asked: set[str] = set()
        self._notice = passage("captcha", 100)
        self.keys = frozenset(["home", *(f"page {number}" for number in range(pages))])

    def begin(self) -> None:
        self._asked.clear()

    def answer(self, ask: Ask) -> Answer:
        if ask.path == "/":
            links = {f"/page/{number}": f"Page {number}" for number in range(self._pages)}
            return page("Home", prose("home", 150), key="home", links=links)
        if ask.path not in self._asked:
            self._asked.add(ask.path)
            return page("Are you human?", self._notice, '<form id="captcha"></form>')
        number = ask.path.removeprefix("/page/")
        return page(f"Page {number}", prose(ask.path, 150), key=f"page {number}", links={"/": "Home"})


class Chained(MadeSite):
    """Products that differ in their name within 550 words; their prices are at an API of the site.

    ``carry``: where the spider keeps the item until the API has answered.
    """

    spider = "chained"

    def __init__(self, products: int = 50, *, carry: Literal["cb_kwargs", "meta"] = "cb_kwargs") -> None:
        super().__init__()
        self._names = list(islice(names("chained"), products))
        self._text = passage("every product", 550)
        self.arguments = {"carry": carry}
        numbers = range(products)
        self.keys = frozenset(["home", *(f"product {n}" for n in numbers), *(f"price {n}" for n in numbers)])

    def answer(self, ask: Ask) -> Answer:
        if ask.path == "/":
            links = {f"/product/{number}": name for number, name in enumerate(self._names)}
            return page("Home", prose("home", 150), key="home", links=links)
        kind, _, number = ask.path.removeprefix("/").partition("/")
        if kind == "api":
            body = json.dumps({"price": int(number) + 100})
            return Answer(body, key=f"price {number}", headers={"Content-Type": "application/json"})
        name = self._names[int(number)]
        api = f'<div data-api="/api/{number}"></div>'
        return page(name, self._text, api, key=f"product {number}", links={"/": "Home"})


class ErrorPages(MadeSite):
    """A few pages, and links to pages that are not there: 404 with the same long text."""

    spider = "errors"

    def __init__(self, pages: int = 6, missing: int = 6) -> None:
        super().__init__()
        self._pages = pages
        self._missing = missing
        self._notice = passage("not found", 120)
        self.gone: set[str] = set()
        """Paths of pages that are there no longer, though there are links to them."""
        self.keys = frozenset(["home", *(f"page {number}" for number in range(pages))])

    def answer(self, ask: Ask) -> Answer:
        if ask.path == "/":
            links = {f"/page/{number}": f"Page {number}" for number in range(self._pages)}
            links |= {f"/missing/{number}": f"Old {number}" for number in range(self._missing)}
            return page("Home", prose("home", 150), key="home", links=links)
        if ask.path.startswith("/page/") and ask.path not in self.gone:
            number = ask.path.removeprefix("/page/")
            return page(f"Page {number}", prose(ask.path, 150), key=f"page {number}", links={"/": "Home"})
        return Answer(page("Not found", self._notice, links={"/": "Home"}).body, status=404)
