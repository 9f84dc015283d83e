"""Rules of URLs in the format of duplicate-url-discarder, out and in.

https://github.com/zytedata/duplicate-url-discarder: a list of objects with ``order``, ``urlPattern``,
``processor`` and ``args``. The patterns are those of https://github.com/zytedata/url-matcher. There are
four processors:

- ``queryRemoval`` removes parameters;
- ``queryRemovalExcept`` removes all parameters but some;
- ``subpathRemoval`` removes parts of the path by their place;
- ``normalizer`` removes ``www.`` and the last slash.

That program drops requests and never looks back. So only rules that are nearly always right go out, with
patterns that match no more than what was learned.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from neardup.address import host_of, place_of, registered_domain
from neardup.errors import ConfigurationError
from neardup.urls.evidence import MIN_TRIALS
from neardup.urls.host_rules import MIN_LOWER_TOGETHER
from neardup.urls.networks import literal_address
from neardup.urls.parts import MOST_VALUE, shape
from neardup.urls.rules import LearnedRule, Rule, Slot, State
from neardup.urls.slots import BESIDE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

SURE = MIN_LOWER_TOGETHER
"""Least lower bound of the share of hits of a rule that goes out, unless it is pinned."""

_MOST_DIRECTORIES = 4  # of a context: what is below them has the context of the fourth

_LITERAL = re.compile(r"[^0~*|?#]*")
"""A context without places of numbers and ids, and without what a pattern takes for more than itself."""

_NAME = re.compile(r"[A-Za-z0-9_.-]+")
"""Names of parameters that a pattern can ask for."""

_WWW = re.compile(r"www\d*\.")

_NO_SUCH_SLOTS = frozenset({Slot.SEGMENT, Slot.HOST, Slot.SUBSTITUTION, Slot.TOGETHER, Slot.TRAP})
"""Of which the format knows nothing."""

_CONTRADICTED = "it is wrong in a part of the site"
_NO_PATTERN = "no pattern matches these URLs and no others"


class Exported(NamedTuple):
    """``rules`` as the format has them; ``left_out``: active and pinned rules that nothing there says, and
    why.
    """

    rules: list[dict[str, Any]]
    left_out: dict[Rule, str]


class Imported(NamedTuple):
    """``rules`` to pin; ``left_out``: what neardup has no rule for, and why, each with its place in the
    file.
    """

    rules: list[Rule]
    left_out: list[str]


def export(rules: Iterable[LearnedRule]) -> Exported:
    """All that the format can say of rules; ``rules``: with those that are not valid, which may contradict.

    A rule goes out at the most general context of which nothing below contradicts.
    """
    by_host: dict[str, list[LearnedRule]] = defaultdict(list)
    for learned in rules:
        by_host[learned.rule.host].append(learned)
    exported = Exported([], {})
    for host in sorted(by_host):
        of_host = _HostExport(host, by_host[host])
        exported.rules.extend(of_host.rules())
        exported.left_out.update(of_host.left_out)
    return exported


def _is_valid(learned: LearnedRule) -> bool:
    return learned.state in {State.ACTIVE, State.PINNED}


def _is_sure(learned: LearnedRule) -> bool:
    return learned.state is State.PINNED or (learned.state is State.ACTIVE and learned.lower >= SURE)


def _contradicts(learned: LearnedRule) -> bool:
    if learned.state in {State.PINNED, State.BANNED, State.REVOKED}:
        return learned.state is not State.PINNED
    return learned.trials >= MIN_TRIALS and learned.hits < SURE * learned.trials


def _is_below(context: str, general: str) -> bool:
    """Whether a pattern for the general context takes URLs of the other; patterns know no case."""
    one, other = context.lower(), general.lower()
    if not other or one == other or one.startswith((f"{other}/", f"{other}?")):
        return True
    # What is known of a parameter beside others may be of the URLs that have one value of the parameter.
    return BESIDE in one and "?" in other and one.partition("?")[0] == other.partition("?")[0]


class _HostExport:
    """The rules of one host on their way out."""

    def __init__(self, host: str, rules: list[LearnedRule]) -> None:
        self.left_out: dict[Rule, str] = {}
        self._host = host
        self._rules = sorted(rules, key=lambda learned: (learned.rule.context.count("/"), learned.rule))
        self._places = sorted({place_of(learned.example) for learned in rules if learned.example} or {host})
        self._said: dict[tuple[str, tuple[str, ...]], set[Any]] = {}
        """Arguments by processor and patterns."""
        self._shortened: list[str] = []
        """Paths of which a part is removed. Two removals by place from one path go wrong."""

    def rules(self) -> Iterator[dict[str, Any]]:
        contexts: dict[tuple[Slot, str], list[str]] = defaultdict(list)
        for learned in filter(_is_valid, self._rules):
            rule = learned.rule
            if any(_is_below(rule.context, said) for said in contexts[rule.slot, rule.value]):
                continue
            reason = self._reason_against(learned) or self._say(learned)
            if reason is None:
                contexts[rule.slot, rule.value].append(rule.context)
            else:
                self.left_out[rule] = reason
        exclude = [] if _WWW.match(self._host) else [f"www.{place}/" for place in self._places]
        for (processor, patterns), arguments in sorted(self._said.items()):
            pattern = {"include": list(patterns)} | ({"exclude": exclude} if exclude else {})
            rule_dict = {"order": 0, "processor": processor, "urlPattern": pattern}
            yield rule_dict | ({"args": sorted(arguments)} if arguments else {})

    def _reason_against(self, learned: LearnedRule) -> str | None:
        rule = learned.rule
        if rule.slot in _NO_SUCH_SLOTS:
            return "the format has no such rule"
        if not self._host or ":" in self._host:
            return "patterns cannot name such a host"
        if not _is_sure(learned):
            return f"right in {learned.lower:.0%} at least, less than {SURE:.0%}"
        if learned.state is not State.PINNED and any(map(_contradicts, self._below(rule))):
            return _CONTRADICTED
        if any(
            other.state is State.BANNED and _is_below(rule.context, other.rule.context)
            for other in self._rules
            if other.rule[1:3] == rule[1:3]
        ):
            return "it is banned in a part of the site that this is in"
        return None

    def _below(self, rule: Rule) -> Iterator[LearnedRule]:
        """What else is known of the URLs that a pattern for the rule takes."""
        for other in self._rules:
            _, slot, value, context = other.rule
            if (slot, value) == (rule.slot, rule.value):
                if other.rule != rule and _is_below(context, rule.context):
                    yield other
            elif rule.slot in {Slot.OTHERS, Slot.QUERY} and slot is Slot.PARAMETER and value != rule.value:
                yield other

    def _say(self, learned: LearnedRule) -> str | None:
        """Have a rule said in the format, or why that is not possible."""
        say = {
            Slot.PARAMETER: self._say_parameter,
            Slot.OTHERS: self._say_all_but,
            Slot.QUERY: self._say_all_but,
            Slot.EXTRA: self._say_extra,
            Slot.SPELLING: self._say_spelling,
        }
        return say[learned.rule.slot](learned)

    def _say_parameter(self, learned: LearnedRule) -> str | None:
        rule = learned.rule
        if rule.value.startswith(";"):
            return "the format knows no parameters of the path"
        return self._add("queryRemoval", self._patterns(rule.context), rule.value)

    def _say_spelling(self, learned: LearnedRule) -> str | None:
        if learned.rule.context != "slash" or _WWW.match(self._host):
            return "the normalizer removes the last slash and www., neither less nor more"
        return self._add("normalizer", self._patterns(""))

    def _say_all_but(self, learned: LearnedRule) -> str | None:
        """``queryRemovalExcept``, which removes parameters that nobody has seen, too."""
        rule = learned.rule
        names = {other.rule.value for other in self._rules if other.rule.slot is Slot.PARAMETER}
        names.discard(rule.value)
        if learned.state is not State.PINNED and all(self._is_sure_of(name) for name in names):
            return "the rules of single parameters say as much"
        if rule.context:
            return "the format does not ask which other parameters there are"
        if rule.slot is Slot.QUERY:
            return self._add("queryRemovalExcept", self._patterns(""))
        if not _NAME.fullmatch(rule.value) or rule.value.lower() in {name.lower() for name in names}:
            return "no pattern asks for the parameter"
        asked = self._patterns("", query=f"?{rule.value}=*")
        return self._add("queryRemovalExcept", asked, rule.value)

    def _is_sure_of(self, name: str) -> bool:
        return any(
            _is_sure(other) and not other.rule.context
            for other in self._rules
            if other.rule[1:3] == (Slot.PARAMETER, name)
        )

    def _say_extra(self, learned: LearnedRule) -> str | None:
        """``subpathRemoval`` at each place where the part may be missing."""
        rule = learned.rule
        part = shape(rule.value)
        removed: dict[str, int] = {}
        """Places by the path above and with the part."""
        for other in self._rules:
            context = other.rule.context
            directories = context.split("/")[1:]
            is_wrong = other.hits < SURE * other.trials
            if other.rule[1:3] != rule[1:3] or directories.count(part) != 1 or is_wrong:
                continue
            place = directories.index(part)
            if rule.context in {"", context}:
                removed[rule.context or "/".join(["", *directories[: place + 1]])] = place
        if not removed:
            return "the format removes parts of the path by their place, and no place is known"
        if part != rule.value or not all(map(_LITERAL.fullmatch, removed)):
            return _NO_PATTERN
        if any(
            _is_below(one, other) or _is_below(other, one) for one in removed for other in self._shortened
        ):
            return "another rule removes a part of the same path"
        self._shortened += removed
        for path, place in removed.items():
            self._add("subpathRemoval", tuple(f"{host}{path}/" for host in self._places), place)
        return None

    def _patterns(self, context: str, query: str = "") -> tuple[str, ...] | None:
        """Patterns of a context: all below it, and the file of that name; None if there are none.

        The context of one value of a parameter is that of a file, and what its URLs ask for.
        """
        path, mark, asked = context.partition("?")
        if not _LITERAL.fullmatch(path) or path.count("/") > _MOST_DIRECTORIES:
            return None
        if mark:
            if not _NAME.fullmatch(asked.partition("=")[0]):
                return None
            ends: tuple[str, ...] = (f"{path}|?{asked}",)
        else:
            ends = (f"{path}/{query}", f"{path}|{query}") if path else (f"/{query}",)
        return tuple(f"{place}{end}" for place in self._places for end in ends)

    def _add(self, processor: str, patterns: tuple[str, ...] | None, *arguments: str | int) -> str | None:
        if patterns is None:
            return _NO_PATTERN
        self._said.setdefault((processor, patterns), set()).update(arguments)
        return None


def read(text: str, name: str, hosts: Collection[str]) -> Imported:
    """The rules of a file, its text given; ``hosts``: those of which pages are stored.

    A pattern that names a host alone is for all hosts below it, too. The rules are for the host, for
    ``www.`` before a registered domain, and for the hosts below it of which pages are stored.
    ConfigurationError if it is no such file.
    """
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise ConfigurationError(f"{name} is no JSON: {exc}") from exc
    if not isinstance(entries, list):
        raise ConfigurationError(
            f"{name}: a list of rules of duplicate-url-discarder is expected, as neardup rules export prints"
            f" it without --format, not {type(entries).__name__}"
        )
    found = Imported([], [])
    for number, entry in enumerate(entries, start=1):
        where = f"{name}: rule {number}"
        processor, arguments, include, exclude = _read_entry(entry, where)
        contents = _contents(processor, arguments)
        if isinstance(contents, str):
            found.left_out.append(f"{where} ({processor}): {contents}")
            continue
        excluded = [_hosts_of(pattern, hosts) for pattern in exclude]
        for pattern in include:
            taken = _hosts_of(pattern, hosts)
            if taken is None or None in excluded:
                shown = "what it excludes" if taken is not None else repr(pattern)
                found.left_out.append(f"{where} ({processor}): {shown} names more or less than hosts")
                continue
            for host in sorted(taken.difference(*filter(None, excluded))):
                found.rules.extend(Rule(host, *content) for content in contents)
    return found._replace(rules=list(dict.fromkeys(found.rules)))


def _read_entry(entry: Any, where: str) -> tuple[str, list[Any], list[str], list[str]]:
    """Processor, arguments and patterns of an entry; ConfigurationError if it is no rule."""
    pattern = entry.get("urlPattern") if isinstance(entry, dict) else None
    patterns: dict[str, Any] = pattern if isinstance(pattern, dict) else {}
    include: Any = patterns.get("include")
    exclude: Any = patterns.get("exclude") or []
    if not _is_texts(include) or not _is_texts(exclude):
        raise ConfigurationError(f"{where}: urlPattern with a list include is expected, not {pattern!r:.100}")
    processor, arguments = entry.get("processor"), entry.get("args") or []
    if not isinstance(processor, str) or not isinstance(arguments, list):
        raise ConfigurationError(f"{where}: processor and args are expected, not {entry!r:.100}")
    return processor, arguments, include, exclude


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _contents(processor: str, arguments: list[Any]) -> list[tuple[Slot, str, str]] | str:
    """Slot, value and context of what a processor does, or why there is no rule for it."""
    if processor == "normalizer":
        return [(Slot.SPELLING, "", "slash")]
    if processor not in {"queryRemoval", "queryRemovalExcept"}:
        return "neardup has no such rule"
    if not all(isinstance(one, str) and 0 < len(one) <= MOST_VALUE for one in arguments):
        return f"names have 1 to {MOST_VALUE} characters"
    if processor == "queryRemoval":
        return [(Slot.PARAMETER, one, "") for one in arguments]
    if len(arguments) > 1:
        return "a rule of neardup keeps one parameter"
    return [(Slot.OTHERS, arguments[0], "")] if arguments else [(Slot.QUERY, "", "")]


def _hosts_of(pattern: str, hosts: Collection[str]) -> set[str] | None:
    """The hosts that a pattern names; None if it names parts of them, or all hosts there are."""
    bare, slash, path = re.sub(r"^https?://", "", pattern).partition("/")
    host = host_of(f"http://{bare}/")
    if not host or path or not re.fullmatch(r"[\w.-]+(:\d+)?", bare):
        return None
    below = {other for other in hosts if other.endswith(f".{host}")}
    if literal_address(host) is None and registered_domain(host) == host:
        below.add(f"www.{host}")
    return {host} | (below & {f"www.{host}"} if slash else below)
