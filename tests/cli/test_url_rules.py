"""``neardup rules`` over what a learner was taught and crawls have stored."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duplicate_url_discarder_rules
import pytest
import sqlalchemy as sa
import tldextract.tldextract
from duplicate_url_discarder.url_canonicalizer import UrlCanonicalizer

from neardup.cli import discarder
from neardup.cli.main import main
from neardup.cli.url_rules import in_words
from neardup.fingerprint.scheme import Scheme
from neardup.store.schema import url_rules
from neardup.store.store import Store
from neardup.store.url_rules import UrlRules
from neardup.urls.learner import Learner
from neardup.urls.rules import LearnedRule, Rule, Slot, State
from tests.support.databases import SERVERS_SLOWLY
from tests.support.ready_databases import ready_database
from tests.support.stores import SHOPS, rules_of, taught, upgraded, write
from tests.support.verdicts import page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.crawling import Site

    Run = Callable[..., tuple[str, str]]

HOST = "a.example"
SID = Rule(HOST, Slot.PARAMETER, "sid")


@pytest.fixture(params=SERVERS_SLOWLY)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A store with what a crawl has learned of two hosts, on each kind of server in turn."""
    with ready_database(request.param, tmp_path) as url:
        with Store.open(url, scheme=str(Scheme())) as store:
            write(store, page(1, f"http://{HOST}/"), rules=taught(None, HOST, "b.example"))
        yield url


@pytest.fixture
def one(tmp_path: Path) -> str:
    """The same with one host, on SQLite."""
    url = f"sqlite:///{tmp_path}/one.db"
    with Store.open(url, scheme=str(Scheme())) as store:
        crawl_id = store.begin_crawl(spider="s", settings={})
        write(store, page(1, f"http://{HOST}/"), crawl=crawl_id, rules=taught(None, HOST))
        store.finish_crawl(crawl_id, reason="finished", counts={})
    return url


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[str, str]]:
    def run_rules(url: str, *arguments: str, code: int = 0) -> tuple[str, str]:
        assert main(["rules", "--database", url, *arguments]) == code
        printed = capsys.readouterr()
        return printed.out, printed.err

    return run_rules


def stored(url: str) -> dict[Rule, Any]:
    with Store.open(url, scheme=str(Scheme())) as store:
        return rules_of(store)


def number_of(url: str, rule: Rule) -> str:
    key: str = stored(url)[rule].key.hex()[:8]
    return key


class TestList:
    def test_by_host_in_words(self, database: str, run: Run) -> None:
        told = json.loads(run(database, "--format", "json")[0])["rules"]

        assert [row["host"] for row in told] == sorted(row["host"] for row in told)
        assert {row["host"] for row in told} == {HOST, "b.example"}
        (sid,) = (
            row
            for row in told
            if (row["host"], row["where"], "'sid' does" in row["says"]) == (HOST, "", True)
        )
        learned = stored(database)[SID].learned
        assert sid == {
            "rule": number_of(database, SID),
            "host": HOST,
            "says": "parameter 'sid' does not matter",
            "where": "",
            "trials": round(learned.trials),
            "right": 100.0,
            "at_least": round(100 * learned.lower, 1),
            "state": "active",
            "saved": 0,
            "example": learned.example,
            "copy_of": learned.partner,
        }

    def test_those_that_learn_are_told_when_asked_for(self, database: str, run: Run) -> None:
        all_states = [argument for state in State for argument in ("--state", state.value)]
        listed = json.loads(run(database, "--format", "json")[0])["rules"]
        learning = json.loads(run(database, "--state", "learning", "--format", "json")[0])["rules"]
        everything = json.loads(run(database, *all_states, "--format", "json")[0])["rules"]
        of_host = json.loads(run(database, *all_states, "--host", HOST, "--format", "json")[0])["rules"]

        assert {row["state"] for row in listed} == {"active"}
        assert {row["state"] for row in learning} == {"learning"}
        assert len(everything) == len(listed) + len(learning) == len(stored(database))
        assert [row for row in everything if row["host"] == HOST] == of_host

    def test_table_and_csv(self, one: str, run: Run) -> None:
        lines = run(one)[0].splitlines()
        rows = list(csv.DictReader(io.StringIO(run(one, "--format", "csv")[0])))

        assert lines[0] == one.removeprefix("sqlite:///")
        assert lines[3].split()[:4] == ["rule", "host", "says", "where"]
        assert len(rows) == len(lines) - 4
        assert {row["host"] for row in rows} == {HOST}

    def test_nothing_learned(self, tmp_path: Path, run: Run) -> None:
        assert run(upgraded(f"sqlite:///{tmp_path}/n.db"))[0].endswith("  (none)\n")

    @pytest.mark.parametrize("slot", Slot)
    def test_every_slot_has_words(self, slot: Slot) -> None:
        said = {in_words(Rule(HOST, slot, value)) for value in ("0", "~")}

        assert all(len(words) > 10 for words in said)

    def test_rules_that_differ_have_other_words(self) -> None:
        spellings = {in_words(Rule(HOST, Slot.SPELLING, value)) for value in ("", "slash", "case index")}

        places = {in_words(Rule(HOST, Slot.SEGMENT, value)) for value in ("~", "1", "1+4", "1+3+4")}

        assert len(spellings) == 3
        assert len(places) == 4
        assert any(words.endswith("do not matter, in URLs with case, index") for words in spellings)

    def test_names_of_parameters_are_decoded(self) -> None:
        assert (
            in_words(Rule(HOST, Slot.PARAMETER, "where%5Bid%5D")) == "parameter 'where[id]' does not matter"
        )


class TestShow:
    def test_all_of_a_rule(self, database: str, run: Run) -> None:
        number = number_of(database, SID)
        told = json.loads(run(database, "show", number, "--format", "json")[0])
        text = run(database, "show", number.upper()[:6])[0]

        assert (told["slot"], told["value"], told["where"], told["crawl"], told["decisions"]) == (
            "parameter", "sid", "", 1, 0,
        )  # fmt: skip
        assert told["key"].startswith(number)
        assert told["hits"] == told["trials"] > 30
        assert text.startswith(f"{HOST}: parameter 'sid' does not matter\n")
        assert told["key"] in text

    def test_hits_that_have_faded(self, one: str, run: Run) -> None:
        with Store.open(one, scheme=None) as store, store.begin_write() as connection:
            connection.execute(sa.update(url_rules).values(hits=0.9664, trials=12.3456))
        number = number_of(one, SID)
        told = json.loads(run(one, "show", number, "--format", "json")[0])

        assert (told["hits"], told["trials"]) == (0.966, 12.346)
        assert {"0.966", "12.346"} < set(run(one, "show", number)[0].split())

    @pytest.mark.parametrize(
        ("number", "message"),
        [
            ("sid", "'sid' is no number of a rule"),
            ("", "'' is no number of a rule"),
            ("0" * 33, "is no number of a rule: at most 32"),
            ("0" * 31, f"there is no rule {'0' * 31} in "),
        ],
    )
    def test_no_such_rule(self, one: str, run: Run, number: str, message: str) -> None:
        assert message in run(one, "show", number, code=1)[1]

    def test_a_number_of_several_rules(self, one: str, run: Run) -> None:
        keys = sorted(known.key.hex() for known in stored(one).values())
        digit = keys[0][0]
        several = [key for key in keys if key.startswith(digit)]
        assert len(several) > 1

        error = run(one, "show", digit, code=1)[1]

        assert f"{len(several)} rules begin with {digit}: {keys[0][:8]}, " in error
        assert "Give more digits" in error


class TestDecide:
    @pytest.mark.parametrize(("verb", "state"), [("pin", "pinned"), ("ban", "banned"), ("revoke", "revoked")])
    def test_by_number(self, database: str, run: Run, verb: str, state: str) -> None:
        number = number_of(database, SID)

        printed, _ = run(database, verb, number)

        assert f"{number}: {state}, was active ({HOST}: parameter 'sid' does not matter)\n" in printed
        assert "crawl 1 seems to be running" in printed  # it has not ended
        found = stored(database)[SID]
        assert (found.learned.state.value, found.decisions) == (state, 1)
        with Store.open(database, scheme=str(Scheme())) as store:
            rules = UrlRules()
            store.load_rules(rules)
        learner = rules.learner
        learner.observe(f"http://{HOST}/boots/list.html?id=77&sid=1", cluster=77)
        prediction = learner.predict(f"http://{HOST}/boots/list.html?id=77&sid=2")
        certain = prediction is not None and (prediction.rule, prediction.probability) == (SID, 1.0)
        assert certain == (verb == "pin")

    def test_several_at_once_or_none(self, one: str, run: Run) -> None:
        numbers = [number_of(one, rule) for rule in list(stored(one))[:2]]

        run(one, "ban", *numbers, "zzz", code=1)
        assert {known.learned.state for known in stored(one).values()} <= {State.ACTIVE, State.LEARNING}
        printed, _ = run(one, "ban", *numbers)

        assert len(printed.splitlines()) == 2  # no crawl is running
        assert sum(known.learned.state is State.BANNED for known in stored(one).values()) == 2


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """url-matcher asks tldextract, which would fetch the list of public suffixes."""
    snapshot = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
    monkeypatch.setattr(tldextract.tldextract, "TLD_EXTRACTOR", snapshot)


def reads(rules: list[dict[str, Any]], tmp_path: Path) -> Callable[[str], str]:
    """What duplicate-url-discarder itself makes of URLs by these rules."""
    path = tmp_path / "rules.json"
    path.write_text(json.dumps(rules))
    process: Callable[[str], str] = UrlCanonicalizer([path]).process_url
    return process


def evidence(
    rule: Rule, share: float = 1.0, state: State = State.ACTIVE, trials: float = 60.0
) -> LearnedRule:
    example = f"http://{rule.host}/example"
    return LearnedRule(rule, trials, share * trials, 8, 4, state, example, example)


@pytest.mark.usefixtures("offline")
class TestExport:
    def test_what_a_learner_was_taught(self, database: str, run: Run, tmp_path: Path) -> None:
        printed, error = run(database, "export", "--host", HOST)

        process = reads(json.loads(printed), tmp_path)
        assert process(f"http://{HOST}/boots/list.html?id=3&sid=x") == f"http://{HOST}/boots/list.html?id=3"
        assert process(f"https://{HOST}/new/?sid=x") == f"https://{HOST}/new/"
        for url in (
            f"http://www.{HOST}/boots/list.html?id=3&sid=x",
            f"http://sub.{HOST}/boots/list.html?id=3&sid=x",
            "http://b.example/boots/list.html?id=3&sid=x",
            f"http://{HOST}/boots/list.html?id=3&page=2",
        ):
            assert process(url) == url
        valid = {rule for rule, known in stored(database).items() if known.learned.state is State.ACTIVE}
        said = {rule for rule in valid if rule[:3] == SID[:3]}
        left_out = {number_of(database, rule) for rule in valid - said if rule.host == HOST}
        named = {line.split()[2] for line in error.splitlines() if line.startswith("not exported: ")}
        assert len(named) > 0
        assert named <= left_out

    @pytest.mark.parametrize("form", ["table", "json"])
    def test_other_formats(self, one: str, run: Run, form: str) -> None:
        assert run(one, "export", "--format", form)[0].count("active") == run(one)[0].count("active")

    def test_below_a_context_that_is_contradicted_the_others_go_out(self, tmp_path: Path) -> None:
        rules = [evidence(SID)] + [
            evidence(SID._replace(context=f"/{shop}"), share=0.1 if shop == "hats" else 1.0, state=state)
            for shop, state in zip(
                SHOPS, (State.ACTIVE, State.LEARNING, State.ACTIVE, State.ACTIVE), strict=True
            )
        ]

        exported = discarder.export(rules)

        process = reads(exported.rules, tmp_path)
        for shop in SHOPS:
            url = f"http://{HOST}/{shop}/list.html"
            assert (process(f"{url}?sid=1") == url) == (shop != "hats")
        for url in (f"http://{HOST}/new?sid=1", f"http://{HOST}/bootstrap?sid=1"):
            assert process(url) == url
        assert exported.left_out == {SID: "it is wrong in a part of the site"}

    @pytest.mark.parametrize(
        "against", [evidence(SID._replace(context="/Hats"), share=0.5, state=State.LEARNING),
                    evidence(SID._replace(context="/hats/old"), state=State.BANNED),
                    evidence(SID._replace(context="/hats/old"), state=State.REVOKED, trials=1.0)],
    )  # fmt: skip
    def test_patterns_know_no_case_and_take_all_below(self, against: LearnedRule) -> None:
        exported = discarder.export([evidence(SID._replace(context="/hats")), against])

        assert exported.rules == []
        assert list(exported.left_out.values()) == ["it is wrong in a part of the site"]

    def test_one_value_of_a_parameter(self, tmp_path: Path) -> None:
        view = Rule(HOST, Slot.PARAMETER, "view")
        rules = [
            evidence(view, share=0.5),
            evidence(view._replace(context="/a/list.html"), share=0.5, state=State.LEARNING),
            evidence(view._replace(context="/a/list.html?view=print")),
            evidence(view._replace(context="/a/list.html?view=all"), share=0.0, state=State.LEARNING),
        ]

        process = reads(discarder.export(rules).rules, tmp_path)

        url = f"http://{HOST}/a/list.html?id=3"
        assert process(f"{url}&view=print") == url
        assert process(f"{url}&view=all") == f"{url}&view=all"
        assert process(f"http://{HOST}/a/list.html/b?view=print") == f"http://{HOST}/a/list.html/b?view=print"
        beside = evidence(view._replace(context="/a/list.html?&id"), share=0.0, state=State.LEARNING)
        assert (
            discarder.export([evidence(view._replace(context="/a/list.html?view=print")), beside]).rules == []
        )
        wrong = evidence(view._replace(context="/a/list.html?view=all"), share=0.0, state=State.LEARNING)
        assert discarder.export([evidence(view._replace(context="/a/list.html")), wrong]).rules == []

    def test_a_pin_is_stronger_than_what_is_below_and_a_ban_above_is_stronger(self) -> None:
        below = evidence(SID._replace(context="/hats"), share=0.1, state=State.LEARNING)
        pinned, banned = (evidence(SID, state=state) for state in (State.PINNED, State.BANNED))

        assert len(discarder.export([pinned, below]).rules) == 1
        assert discarder.export([banned, evidence(SID._replace(context="/hats"))]).rules == []

    def test_too_few_trials_have_no_say(self) -> None:
        few = evidence(SID._replace(context="/hats"), share=0.0, state=State.LEARNING, trials=4.0)

        assert len(discarder.export([evidence(SID), few]).rules) == 1

    def test_all_parameters_but_one(self, tmp_path: Path) -> None:
        only_id = Rule(HOST, Slot.OTHERS, "id")
        rules = [
            evidence(only_id),
            evidence(Rule(HOST, Slot.PARAMETER, "utm"), state=State.LEARNING, trials=5.0),
        ]

        process = reads(discarder.export(rules).rules, tmp_path)

        assert process(f"http://{HOST}/a?utm=1&id=3&x=4") == f"http://{HOST}/a?id=3"
        assert process(f"http://{HOST}/a?utm=1&x=4") == f"http://{HOST}/a?utm=1&x=4"
        matters = evidence(Rule(HOST, Slot.PARAMETER, "x", "/a"), share=0.0, state=State.LEARNING)
        assert discarder.export([*rules, matters]).rules == []
        assert discarder.export(rules[:1]).rules == []  # nothing else was seen: who knows?
        pinned = evidence(only_id, state=State.PINNED, trials=0.0)
        assert discarder.export([pinned, matters]).rules == discarder.export(rules).rules
        other_case = evidence(Rule(HOST, Slot.PARAMETER, "ID"), state=State.LEARNING, trials=1.0)
        assert discarder.export([*rules, other_case]).rules == []

    def test_no_parameter(self, tmp_path: Path) -> None:
        rules = [
            evidence(Rule(HOST, Slot.QUERY, "")),
            evidence(Rule(HOST, Slot.PARAMETER, "x"), state=State.LEARNING, trials=5.0),
        ]

        process = reads(discarder.export(rules).rules, tmp_path)

        assert process(f"http://{HOST}/a/b?x=1&y=2") == f"http://{HOST}/a/b"
        of_names = evidence(Rule(HOST, Slot.QUERY, "", "x,y"), share=0.5, state=State.LEARNING)
        assert discarder.export([*rules, of_names]).rules == []

    def test_a_part_of_the_path(self, tmp_path: Path) -> None:
        rules = [
            evidence(Rule(HOST, Slot.EXTRA, "print", context)) for context in ("", "/print", "/docs/print/a")
        ]

        exported = discarder.export(rules)

        process = reads(exported.rules, tmp_path)
        assert process(f"http://{HOST}/print/x.html") == f"http://{HOST}/x.html"
        assert process(f"http://{HOST}/docs/print/a/x.html") == f"http://{HOST}/docs/a/x.html"
        assert process(f"http://{HOST}/other/print/x.html") == f"http://{HOST}/other/print/x.html"
        assert exported.left_out == {}
        elsewhere = evidence(
            Rule(HOST, Slot.EXTRA, "print", "/other/print"), share=0.0, state=State.LEARNING, trials=1.0
        )
        assert discarder.export([*rules, elsewhere]) == exported
        nested = [evidence(Rule(HOST, Slot.EXTRA, "mobile", context)) for context in ("", "/print/mobile")]
        mixed = discarder.export([*rules, *nested])
        process = reads(mixed.rules, tmp_path)
        assert process(f"http://{HOST}/print/mobile/x.html") == f"http://{HOST}/print/x.html"
        assert process(f"http://{HOST}/docs/print/a/x.html") == f"http://{HOST}/docs/a/x.html"
        assert list(mixed.left_out) == [rules[0].rule, rules[1].rule]
        assert set(mixed.left_out.values()) == {"another rule removes a part of the same path"}

    def test_the_last_slash(self, tmp_path: Path) -> None:
        slash = Rule(HOST, Slot.SPELLING, "", "slash")
        exported = discarder.export([evidence(slash), evidence(slash._replace(context=""))])

        process = reads(exported.rules, tmp_path)

        assert process(f"http://{HOST}/docs/?x=1") == f"http://{HOST}/docs?x=1"
        assert process(f"http://www.{HOST}/docs/") == f"http://www.{HOST}/docs/"
        assert list(exported.left_out) == [slash._replace(context="")]
        assert discarder.export([evidence(slash._replace(host=f"www.{HOST}"))]).rules == []

    @pytest.mark.parametrize(
        ("rule", "reason"),
        [
            (Rule(HOST, Slot.HOST, "http://www.a.example"), "the format has no such rule"),
            (Rule(HOST, Slot.TRAP, "/0?"), "the format has no such rule"),
            (Rule(HOST, Slot.TOGETHER, "host parameter:sid"), "the format has no such rule"),
            (Rule(HOST, Slot.PARAMETER, ";v"), "the format knows no parameters of the path"),
            (Rule(HOST, Slot.PARAMETER, "v", "/item0"), "no pattern matches these URLs and no others"),
            (Rule(HOST, Slot.PARAMETER, "v", "/a*b"), "no pattern matches these URLs and no others"),
            (Rule(HOST, Slot.PARAMETER, "v", "/a/b/c/d/e"), "no pattern matches these URLs and no others"),
            (
                Rule(HOST, Slot.PARAMETER, "v", "/x?&a=b"),
                "no pattern matches these URLs and no others",
            ),
            (Rule(HOST, Slot.EXTRA, "print"), "no place is known"),
            (Rule(HOST, Slot.EXTRA, "p7", "/p0"), "no pattern matches"),
            (Rule("::1", Slot.PARAMETER, "v"), "patterns cannot name such a host"),
        ],
    )
    def test_what_the_format_cannot_say(self, rule: Rule, reason: str) -> None:
        exported = discarder.export([evidence(rule)])

        assert exported.rules == []
        assert reason in exported.left_out[rule]

    def test_a_rule_that_is_often_wrong_stays(self) -> None:
        exported = discarder.export([evidence(SID, share=0.85)])

        assert exported.rules == []
        assert exported.left_out[SID].startswith("right in 7")

    def test_a_site_on_a_port(self, site: Site, tmp_path: Path) -> None:
        learner = Learner()
        for item in range(30):
            for sid in "abc":
                learner.observe(f"{site.url}/item?id={item}&sid={sid}", cluster=item)

        process = reads(discarder.export(learner.rules()).rules, tmp_path)

        assert process(f"{site.url}/item?id=3&sid=4") == f"{site.url}/item?id=3"


class TestImport:
    def test_the_rules_that_come_with_it(self, one: str, run: Run) -> None:
        folder = Path(duplicate_url_discarder_rules.__file__).parent
        before = stored(one)
        for path in sorted(folder.glob("*/*.json")):
            printed, error = run(one, "import", str(path))
            assert printed.startswith(f"{one.removeprefix('sqlite:///')}: pinned ")
            assert all(
                line.startswith(f"neardup: not imported: {path}: rule ") for line in error.splitlines()
            )

        pinned = {rule for rule, known in stored(one).items() if known.learned.state is State.PINNED}
        assert Rule("www.nytimes.com", Slot.PARAMETER, "smid") in pinned
        assert Rule("walmart.com", Slot.PARAMETER, "athcpid") in pinned
        assert len(pinned) > 100
        assert {rule: known for rule, known in stored(one).items() if rule not in pinned} == before

    @pytest.mark.usefixtures("offline")
    def test_our_own_export_comes_back(self, one: str, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "rules.json"
        path.write_text(run(one, "export")[0])
        other = upgraded(f"sqlite:///{tmp_path}/other.db")

        assert run(other, "import", str(path))[1] == ""

        assert {rule: known.learned.state for rule, known in stored(other).items()} == {SID: State.PINNED}
        assert json.loads(run(other, "export")[0]) == json.loads(path.read_text())

    def test_hosts(self) -> None:
        def hosts(*include: str, exclude: tuple[str, ...] = ()) -> set[str]:
            pattern = {"include": list(include), "exclude": list(exclude)}
            entry = {"order": 0, "processor": "queryRemoval", "args": ["v"], "urlPattern": pattern}
            return {rule.host for rule in discarder.read(json.dumps([entry]), "f", known).rules}

        known = {"docs.a.example.com", "example.com", "www.x.example.com", "other.org"}
        assert hosts("a.example.com") == {"a.example.com", "docs.a.example.com"}
        assert hosts("example.com") == {"www.example.com", *known} - {"other.org"}
        assert hosts("https://Example.com/", "other.org") == {
            "example.com", "www.example.com", "other.org", "www.other.org",
        }  # fmt: skip
        assert hosts("x.example.com/") == {"x.example.com", "www.x.example.com"}
        assert hosts("example.com", exclude=("a.example.com",)) == {
            "example.com", "www.example.com", "www.x.example.com",
        }  # fmt: skip
        assert hosts("127.0.0.1:8000/") == {"127.0.0.1"}
        for pattern in ("", "example.com/docs", "*.example.com", "/docs", "example.com?a=b"):
            assert hosts(pattern) == set()
        assert hosts("example.com", exclude=("example.com/docs",)) == set()

    @pytest.mark.parametrize(
        ("processor", "arguments", "expected"),
        [
            ("queryRemoval", ["a", "b"], [(Slot.PARAMETER, "a", ""), (Slot.PARAMETER, "b", "")]),
            ("queryRemovalExcept", ["a"], [(Slot.OTHERS, "a", "")]),
            ("queryRemovalExcept", [], [(Slot.QUERY, "", "")]),
            ("queryRemovalExcept", ["a", "b"], "a rule of neardup keeps one parameter"),
            ("queryRemoval", [7], "names have 1 to 64 characters"),
            ("normalizer", [], [(Slot.SPELLING, "", "slash")]),
            ("subpathRemoval", [0], "neardup has no such rule"),
            ("ofLater", [], "neardup has no such rule"),
        ],
    )
    def test_processors(
        self, processor: str, arguments: list[Any], expected: list[tuple[Slot, str, str]] | str
    ) -> None:
        entry = {
            "order": 0,
            "processor": processor,
            "args": arguments,
            "urlPattern": {"include": ["a.b.com"]},
        }

        found = discarder.read(json.dumps([entry]), "file", set())

        if isinstance(expected, str):
            assert found == ([], [f"file: rule 1 ({processor}): {expected}"])
        else:
            assert found == ([Rule("a.b.com", *content) for content in expected], [])

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("{", "is no JSON"),
            ("[" * 100_000, "is no JSON"),
            (
                "{}",
                "of duplicate-url-discarder is expected, as neardup rules export prints it without --format",
            ),
            ("[7]", "rule 1: urlPattern with a list include is expected"),
            ('[{"urlPattern": {"include": "a"}}]', "rule 1: urlPattern with a list include is expected"),
            ('[{"urlPattern": {"include": ["a"]}}]', "rule 1: processor and args are expected"),
        ],
    )
    def test_no_rules(self, one: str, run: Run, tmp_path: Path, content: str, message: str) -> None:
        path = tmp_path / "rules.json"
        path.write_text(content)
        before = stored(one)

        assert message in run(one, "import", str(path), code=1)[1]
        assert stored(one) == before

    def test_names_that_no_database_takes(self, one: str, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "rules.json"
        names = ["good", "a\x00b", "\ud800", "x\x1b[2J"]
        pattern = {"include": ["a.b.com"]}
        path.write_text(json.dumps([{"processor": "queryRemoval", "args": names, "urlPattern": pattern}]))

        printed, error = run(one, "import", str(path))

        assert "pinned 2 rules" in printed
        assert [line.endswith(": no database takes it") for line in error.splitlines()] == [True, True]
        assert Rule("a.b.com", Slot.PARAMETER, "x\x1b[2J") in stored(one)
        assert "\x1b" not in run(one)[0]

    def test_no_file(self, one: str, run: Run, tmp_path: Path) -> None:
        assert "no rules can be read there" in run(one, "import", str(tmp_path), code=1)[1]


class TestOfOneUrl:
    """``neardup show URL`` names the rules about the URL, whether its page is stored or not."""

    @staticmethod
    def shown(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
        assert main(["show", *arguments]) == code
        return capsys.readouterr().out

    def test_of_a_page_that_was_never_fetched(
        self, database: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        url = f"http://{HOST}/{SHOPS[0]}/list.html?id=3&sid=new"

        text = self.shown(capsys, url, "--database", database)
        told = json.loads(self.shown(capsys, url, "--database", database, "--format", "json"))

        assert text.startswith(f"{url}\n  is not stored\n\nRules about its URL\n")
        assert "parameter 'sid' does not matter" in text
        assert told["url"] == url
        says = [rule["says"] for rule in told["rules"]]
        assert says.count("parameter 'sid' does not matter") == 1
        assert "parameter 'id' does not matter" not in says
        assert all(rule["host"] == HOST and rule["state"] == "active" for rule in told["rules"])

    def test_of_a_stored_page_without_any(self, one: str, capsys: pytest.CaptureFixture[str]) -> None:
        text = self.shown(capsys, f"http://{HOST}/", "--database", one)
        told = json.loads(self.shown(capsys, f"http://{HOST}/", "--database", one, "--format", "json"))

        assert "Rules" not in text
        assert told["rules"] == []

    def test_a_banned_rule_says_nothing(self, one: str, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
        url = f"http://{HOST}/{SHOPS[0]}/list.html?sid=new"
        numbers = [
            of.key.hex()
            for rule, of in stored(one).items()
            if rule.slot in {Slot.PARAMETER, Slot.QUERY, Slot.TOGETHER}
        ]
        before = json.loads(self.shown(capsys, url, "--database", one, "--format", "json"))
        run(one, "ban", *numbers)
        self.shown(capsys, url, "--database", one, code=1)

        assert before["rules"]
