"""``neardup rules`` lists by host what crawls have learned of URLs: which parts of a URL do not matter.

``neardup rules show RULE`` tells all about one rule. ``pin``, ``ban`` and ``revoke`` decide about rules by
hand. ``export`` and ``import`` speak the format of duplicate-url-discarder.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from neardup.cli import database, discarder
from neardup.cli.output import (
    FORMATS,
    Section,
    complain,
    printable,
    show_fields,
    show_json,
    show_sections,
    show_table,
)
from neardup.cli.progress import number
from neardup.errors import ConfigurationError, NeardupError
from neardup.store import removal, url_rules
from neardup.urls.effects import Effect
from neardup.urls.parts import OPAQUE
from neardup.urls.rules import AND, LearnedRule, Rule, Slot, State

if TYPE_CHECKING:
    from collections.abc import Iterable

    from neardup.store.store import Store
    from neardup.store.url_rules import StoredRule

DIGITS = 8
"""Of the key of a rule, that are printed as its number; any number of digits that names one rule is taken."""

_MOST_NAMED = 5

_DIGITS_OF_TRIALS = 3
"""Behind the point: what was tried long ago counts for less, and is no whole number."""

_LISTED = [state for state in State if state is not State.LEARNING]
"""States whose rules are listed unless others are asked for: rules that learn are many."""

_VALID = frozenset({State.ACTIVE, State.PINNED})
"""States whose rules predict."""

_DONE = {"pin": State.PINNED, "ban": State.BANNED, "revoke": State.REVOKED}

_HELP_OF = {
    "pin": "take rules for right from now on, whatever the trials say",
    "ban": "never ask rules again",
    "revoke": "forget the trials of rules, which are learned afresh; takes a pin or a ban back, too",
}

COLUMNS = (
    "rule",
    "host",
    "says",
    "where",
    "trials",
    "right",
    "at_least",
    "state",
    "saved",
    "example",
    "copy_of",
)

_OF_CRAWL = ("crawl", *Effect._fields)

_EXPORT_FORMATS = ("duplicate-url-discarder", "table", "json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    database.add_arguments(parser)
    parser.add_argument("--host", help="only rules of this host")
    parser.add_argument(
        "--state",
        action="append",
        choices=[state.value for state in State],
        help="only rules of this state; can be given several times (default: all but learning)",
    )
    parser.add_argument("--format", choices=FORMATS, default="table", help="default: table")
    verbs = parser.add_subparsers(dest="rules_verb", metavar="VERB")
    text = "all that is known of one rule"
    show = verbs.add_parser("show", help=text, description=text)
    show.add_argument(
        "rule", metavar="RULE", help="its number, as neardup rules shows it, or the start of it"
    )
    show.add_argument("--format", choices=("table", "json"), default="table", help="default: table")
    database.add_arguments(show, default=argparse.SUPPRESS)
    for verb, text in _HELP_OF.items():
        decide = verbs.add_parser(verb, help=text, description=text)
        decide.add_argument("rules", nargs="+", metavar="RULE", help="its number, or the start of it")
        database.add_arguments(decide, default=argparse.SUPPRESS)
    text = "print active and pinned rules, for other programs"
    export = verbs.add_parser("export", help=text, description=text)
    export.add_argument("--host", default=argparse.SUPPRESS, help="only rules of this host")
    export.add_argument(
        "--format", choices=_EXPORT_FORMATS, default=_EXPORT_FORMATS[0], help=f"default: {_EXPORT_FORMATS[0]}"
    )
    database.add_arguments(export, default=argparse.SUPPRESS)
    text = "pin the rules of a file of duplicate-url-discarder"
    read = verbs.add_parser("import", help=text, description=text)
    read.add_argument("file", type=Path, metavar="FILE", help="JSON, as export writes it")
    database.add_arguments(read, default=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> None:
    with database.open_store(database.read_options(arguments)) as store:
        if arguments.rules_verb == "show":
            _show(store, arguments)
        elif arguments.rules_verb in _DONE:
            _decide(store, arguments)
        elif arguments.rules_verb == "export":
            _export(store, arguments)
        elif arguments.rules_verb == "import":
            _import(store, arguments.file)
        else:
            _list(store, arguments)


def _list(store: Store, arguments: argparse.Namespace) -> None:
    states = [State(name) for name in arguments.state or _LISTED]
    with store.reading() as connection:
        rules = list(url_rules.stored_rules(connection, host=arguments.host, states=states))
    if arguments.format == "table":
        print(f"{store.location}\n")
    show_sections([_section(rules)], arguments.format)


def _section(rules: Iterable[StoredRule]) -> Section:
    return Section(
        "rules", "Rules, those with most trials of each host first", COLUMNS, list(map(values, rules))
    )


def values(stored: StoredRule) -> tuple[object, ...]:
    learned = stored.learned
    return (
        stored.key.hex()[:DIGITS],
        learned.rule.host,
        in_words(learned.rule),
        learned.rule.context,
        round(learned.trials),
        _percent(_share(learned)),
        _percent(learned.lower if learned.trials else None),
        learned.state.value,
        stored.effect.saved,
        learned.example,
        learned.partner,
    )


def in_words(rule: Rule) -> str:
    """What a rule says of URLs, without its host and its context.

    >>> in_words(Rule("a.example", Slot.PARAMETER, "sid"))
    "parameter 'sid' does not matter"
    """
    value = unquote(rule.value)
    return {
        Slot.PARAMETER: f"parameter {value!r} does not matter",
        Slot.OTHERS: f"of the parameters only {value!r} matters",
        Slot.QUERY: "no parameter matters",
        Slot.SEGMENT: _segments_in_words(value),
        Slot.EXTRA: f"{value!r} in the path may be missing",
        Slot.HOST: f"{value} is a mirror",
        Slot.SPELLING: "case, extension, index file and last slash do not matter"
        + (f", in URLs with {value.replace(' ', ', ')}" if value else ""),
        Slot.SUBSTITUTION: f"two ways of writing one URL: {value}",
        Slot.TOGETHER: f"does not matter at once: {value or 'all that rules for the whole host name'}",
        Slot.TRAP: f"URLs like {value} lead to few pages",
    }[rule.slot]


def _segments_in_words(value: str) -> str:
    if value == OPAQUE:
        return "ids in the path do not matter"
    first, *others = value.split(AND)
    if not others:
        return f"directory {first} of the path (from 0) may be another"
    again = ", ".join(others)
    return f"directory {first} of the path (from 0) may be another, and so may its number in {again}"


def _share(learned: LearnedRule) -> float | None:
    return learned.hits / learned.trials if learned.trials else None


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100.0 * share, 1)


def _show(store: Store, arguments: argparse.Namespace) -> None:
    stored = _found(store, arguments.rule)
    learned = stored.learned
    with store.reading() as connection:
        by_crawl = url_rules.effects_by_crawl(connection, learned.rule)
    crawls = [(crawl_id, *effect) for crawl_id, effect in by_crawl.items()]
    told = {
        **dict(zip(COLUMNS, values(stored), strict=True)),
        "slot": learned.rule.slot.value,
        "value": learned.rule.value,
        "hits": round(learned.hits, _DIGITS_OF_TRIALS),
        "trials": round(learned.trials, _DIGITS_OF_TRIALS),
        "clusters": learned.clusters,
        "directories": learned.directories,
        "crawl": stored.crawl_id,
        "decisions": stored.decisions,
        "updated_at": f"{stored.updated_at:%Y-%m-%d %H:%M:%S}",
        "key": stored.key.hex(),
        **stored.effect._asdict(),
    }
    if arguments.format == "json":
        show_json(told | {"crawls": [dict(zip(_OF_CRAWL, row, strict=True)) for row in crawls]})
        return
    print(f"{printable(learned.rule.host)}: {printable(in_words(learned.rule))}")
    show_fields(told | {name: f"{told[name]:.{_DIGITS_OF_TRIALS}f}" for name in ("hits", "trials")})
    if crawls:
        print("\nRequests by crawl")
        show_table(_OF_CRAWL, crawls)


def _decide(store: Store, arguments: argparse.Namespace) -> None:
    state = _DONE[arguments.rules_verb]
    found = [_found(store, text) for text in arguments.rules]
    rules = [stored.learned.rule for stored in found]
    store.transact(lambda connection: url_rules.decide(connection, rules, state))
    for stored in found:
        rule = stored.learned.rule
        where = f" in {rule.context}" if rule.context else ""
        said = printable(f"{rule.host}: {in_words(rule)}{where}")
        print(f"{stored.key.hex()[:DIGITS]}: {state.value}, was {stored.learned.state.value} ({said})")
    _tell_of_running(store)


def _tell_of_running(store: Store) -> None:
    with store.reading() as connection:
        running = removal.running(connection)
    if running:
        ids = ", ".join(map(str, running))
        print(f"crawl {ids} seems to be running: it does not know of this; its next start does")


def _found(store: Store, text: str) -> StoredRule:
    """The one rule of a number; NeardupError if there is none, or more."""
    digits = text.lower()
    if not digits or len(digits) > url_rules.KEY_DIGITS or set(digits) - set("0123456789abcdef"):
        raise NeardupError(
            f"{text!r} is no number of a rule: at most {url_rules.KEY_DIGITS} of the digits 0-9 and a-f, as"
            " neardup rules prints them"
        )
    with store.reading() as connection:
        found = url_rules.rules_of_key(connection, digits)
    if not found:
        raise NeardupError(
            f"there is no rule {text} in {store.location}; neardup rules lists them, with --state learning"
            " those that are not sure yet"
        )
    if len(found) > 1:
        named = ", ".join(stored.key.hex()[: max(DIGITS, len(digits) + 4)] for stored in found[:_MOST_NAMED])
        raise NeardupError(f"{len(found)} rules begin with {text}: {named}. Give more digits")
    return found[0]


def _export(store: Store, arguments: argparse.Namespace) -> None:
    with store.reading() as connection:
        rules = list(url_rules.stored_rules(connection, host=arguments.host))
    valid = [stored for stored in rules if stored.learned.state in _VALID]
    if arguments.format != _EXPORT_FORMATS[0]:
        show_sections([_section(valid)], arguments.format)
        return
    exported = discarder.export([stored.learned for stored in rules])
    show_json(exported.rules)
    numbers = {stored.learned.rule: stored.key.hex()[:DIGITS] for stored in valid}
    for rule, reason in exported.left_out.items():
        print(f"not exported: {numbers[rule]} {printable(rule)}: {reason}", file=sys.stderr)


def _import(store: Store, path: Path) -> None:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigurationError(f"{path}: no rules can be read there ({exc})") from exc
    with store.reading() as connection:
        hosts = url_rules.hosts_of_pages(connection)
    found = discarder.read(text, str(path), hosts)
    rules = [rule for rule in found.rules if url_rules.is_storable(rule)]
    store.transact(lambda connection: url_rules.decide(connection, rules, State.PINNED))
    unstorable = (f"{rule}: no database takes it" for rule in found.rules if not url_rules.is_storable(rule))
    for reason in (*found.left_out, *unstorable):
        complain(f"not imported: {reason}")
    print(f"{store.location}: pinned {number(len(rules), 'rule')}")
    _tell_of_running(store)
