"""The live page as an ASGI application: which view answers which path, for people and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from neardup.errors import DatabaseUnavailable, NeardupError
from neardup.store.deciding import Overtaken
from neardup.web import checking, decide, thresholds, views
from neardup.web.pages import STATIC, load_templates, render
from neardup.web.security import FORM_TOKEN, LOGIN, Guard, TooLarge
from neardup.web.site import Answer, Asked, BadRequest, NotFound, Redirect

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from neardup.web.site import Site

    class View(Protocol):
        def __call__(self, site: Site, asked: Asked) -> Answer | Redirect: ...


_LOOKING: Mapping[str, View] = {
    "/": views.overview,
    "/clusters": views.clusters,
    "/cluster/{key}": views.cluster,
    "/page/{key}": views.page,
    "/pair/{a}/{b}": views.pair,
    "/host": views.host,
    "/crawls": views.crawls,
    "/decisions": decide.decisions,
    "/check": checking.form,
    "/thresholds": thresholds.form,
    "/search": views.search,
}
"""Views that a link leads to."""

_DOING: Mapping[str, View] = {
    "/pair/{a}/{b}": views.pair_texts,
    "/host": views.host_template,
    "/pair/{a}/{b}/decide": decide.about_pair,
    "/page/{key}/decide": decide.about_page,
    "/decisions/{number}/undo": decide.undo,
    "/check": checking.check,
    "/thresholds": thresholds.try_out,
}
"""Views that a form leads to."""

_LOOK_AT_ONCE = 20
_DO_AT_ONCE = 8
"""Requests whose views run at once; more wait. A view that fetches from a slow server waits for minutes,
whether its browser waits or has gone, and must not keep others from looking.
"""

_MOST_FIELDS = 50
_STATIC_PATH = "/static"

_STATUS = {NotFound: 404, BadRequest: 400, Overtaken: 409, DatabaseUnavailable: 503}


def application(site: Site, *, names: frozenset[str] = frozenset()) -> ASGIApp:
    """The page of a store, behind its guard. ``names``: host names by which it may be asked."""
    load_templates()
    looking, doing = CapacityLimiter(_LOOK_AT_ONCE), CapacityLimiter(_DO_AT_ONCE)
    routes: list[Route | Mount] = [
        Route(path, _endpoint(site, view, "GET", looking), methods=["GET"]) for path, view in _LOOKING.items()
    ]
    routes += [
        Route(path, _endpoint(site, view, "POST", doing), methods=["POST"]) for path, view in _DOING.items()
    ]
    routes += [
        Route(LOGIN, _login_page(site), methods=["GET"]),
        Route(LOGIN, _login(site), methods=["POST"]),
        Mount(_STATIC_PATH, StaticFiles(directory=STATIC)),
    ]
    made = Starlette(routes=routes, exception_handlers={404: _no_such_view(site)})
    return Guard(made, site.secret, names=names, open_paths=(f"{_STATIC_PATH}/",))


def _endpoint(site: Site, view: View, method: str, limiter: CapacityLimiter) -> Any:
    async def answer(request: Request) -> Response:
        try:
            form: dict[str, Any] = {} if method == "GET" else await _form(site, request)
            asked = Asked(request.path_params, request.query_params, form)
            answered = await run_sync(view, site, asked, limiter=limiter)
        except TooLarge:
            answered = _failure("The request is too large.", 413)
        except NeardupError as exc:
            status = next((status for kind, status in _STATUS.items() if isinstance(exc, kind)), 400)
            answered = _failure(str(exc), status)
        if isinstance(answered, Redirect):
            return RedirectResponse(answered.path, 303)
        return await run_in_threadpool(_response, site, request, answered)

    return answer


async def _form(site: Site, request: Request) -> dict[str, Any]:
    """The fields of a form, and the bytes of files; BadRequest if the form is not ours."""
    async with request.form(max_files=1, max_fields=_MOST_FIELDS, max_part_size=20_000_000) as sent:
        form = {
            name: await value.read() if isinstance(value, UploadFile) else value
            for name, value in sent.items()
        }
    if not site.secret.is_form_token(str(form.get(FORM_TOKEN, ""))):
        raise BadRequest("the form is none of this page, or older than this server: load the page again")
    return form


def _response(site: Site, request: Request, answer: Answer) -> Response:
    if _wants_json(request):
        text = json.dumps(plain(answer.data), ensure_ascii=False)
        return Response(text, answer.status, dict(answer.headers), "application/json")
    return HTMLResponse(_html(site, answer, request.url.path), answer.status, dict(answer.headers))


def _html(site: Site, answer: Answer, path: str) -> str:
    data = answer.data if isinstance(answer.data, dict) else {"data": answer.data}
    return render(
        answer.template,
        title=answer.title,
        live=True,
        path=path,
        location=site.store.location,
        form_token=site.secret.form_token(),
        **data,
        **answer.values,
    )


def plain(value: Any) -> Any:
    """What JSON can hold: dataclasses as objects, times as ISO texts."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value.isoformat() if isinstance(value, datetime) else value


def _wants_json(request: Request) -> bool:
    accepted = request.headers.get("accept", "")
    return "application/json" in accepted and "text/html" not in accepted


def _failure(message: str, status: int) -> Answer:
    return Answer(template="failure.html", title="Not possible", data={"error": message}, status=status)


def _no_such_view(site: Site) -> Any:
    async def answer(request: Request, exc: Exception) -> Response:
        return _response(site, request, _failure("There is no such page here.", 404))

    return answer


def _login_page(site: Site) -> Any:
    async def answer(request: Request) -> Response:
        return HTMLResponse(_login_html(site, wrong=False), 200)

    return answer


def _login(site: Site) -> Any:
    async def answer(request: Request) -> Response:
        try:
            async with request.form(max_files=0, max_fields=5) as form:
                given = str(form.get("secret", ""))
        except TooLarge:
            given = ""
        if not site.secret.shown(given):
            return HTMLResponse(_login_html(site, wrong=True), 403)
        response = RedirectResponse("/", 303)
        response.headers["Set-Cookie"] = site.secret.cookie(request.scope["neardup.cookie"])
        return response

    return answer


def _login_html(site: Site, *, wrong: bool) -> str:
    return render("login.html", title="Who is there?", wrong=wrong, is_password=site.secret.is_password)
