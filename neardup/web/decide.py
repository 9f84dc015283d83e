"""The views in which people decide: what they say is stored, carried out, and can be undone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.detection.decisions import Decision
from neardup.store import deciding, explore
from neardup.store.explore import Listed
from neardup.web.site import Answer, BadRequest, NotFound, Redirect

if TYPE_CHECKING:
    from neardup.web.site import Asked, Site


def decisions(site: Site, asked: Asked) -> Answer:
    with site.store.looking() as connection:
        rows = deciding.listed(connection, before=asked.whole_number("after"), limit=explore.ROWS + 1)
    after = str(rows[explore.ROWS - 1].decision_id) if len(rows) > explore.ROWS else None
    found = Listed(rows[: explore.ROWS], after)
    return Answer(template="decisions.html", title="Decisions", data={"decisions": found})


def about_pair(site: Site, asked: Asked) -> Redirect:
    return _decide(site, asked, f"/pair/{asked.path['a']}/{asked.path['b']}", "a", "b")


def about_page(site: Site, asked: Asked) -> Redirect:
    return _decide(site, asked, f"/page/{asked.path['key']}", "key")


def undo(site: Site, asked: Asked) -> Redirect:
    number = asked.path["number"]
    if not number.isdecimal() or len(number) > 18:
        raise NotFound("there is no such decision")
    site.store.transact(
        lambda connection: deciding.undo(connection, int(number), person=site.person, rule=site.rule)
    )
    return Redirect("/decisions")


def _decide(site: Site, asked: Asked, back: str, *names: str) -> Redirect:
    keys = [explore.page_key(asked.path[name]) for name in names]
    page, other = keys[0], keys[-1] if len(keys) > 1 else None
    if page is None or None in keys:
        raise NotFound("a key of a page has 32 hexadecimal digits")
    decision, note = str(asked.form.get("decision", "")), str(asked.form.get("note", ""))
    if decision not in list(Decision):
        raise BadRequest(f"a decision is one of {', '.join(Decision)}, not {decision!r:.80}")
    if len(note) > deciding.LONGEST_NOTE:
        raise BadRequest(f"a note has {deciding.LONGEST_NOTE:,} characters at most, not {len(note):,}")
    site.store.transact(
        lambda connection: deciding.decide(
            connection,
            Decision(decision),
            page,
            other,
            note=note.strip(),
            person=site.person,
            rule=site.rule,
            seen=asked.form.get("seen"),
        )
    )
    return Redirect(back)
