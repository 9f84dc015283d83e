"""``neardup collection clean``: mark near-duplicates among the results of the queries that people ask.

The queries of a search log are done by their frequency. The first 1,000 results of each are grouped by the
distance of their fingerprints. The page with the best PageRank of a group is kept, the others are marked.

A mark is a row in FOLDER/clean/marks.parquet and deletes nothing. With ``--apply``, marked pages are taken
out of the collection; ``--undo`` puts them back. The command can be interrupted: given again, it goes on.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.utils.project import get_project_settings

from neardup.cli.arguments import cores, count
from neardup.cli.outdated import tell_outdated
from neardup.cli.output import Section, complain, show_json, show_sections
from neardup.cli.progress import Progress, interruptible, number
from neardup.collection.cleaning import applying, indexes, marks
from neardup.collection.cleaning.indexes import Engine
from neardup.collection.cleaning.marking import Job, mark_in_parallel, mark_sequentially
from neardup.collection.cleaning.pages import CleanPages
from neardup.collection.cleaning.rules import DEPTH, MAX_DISTANCE, Few, Rules, Steps
from neardup.collection.cleaning.texts import Texts
from neardup.collection.cleaning.work import Way, Work
from neardup.collection.collected_ranks import ranks_file
from neardup.collection.dataset import identity as identity_of
from neardup.collection.dataset import locked, open_collection, page_files, read_state
from neardup.collection.resume import identify
from neardup.errors import ConfigurationError
from neardup.fingerprint.hamming import FINGERPRINT_BITS
from neardup.scrapy.options import Options
from neardup.scrapy.stored_responses import stored_page

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from neardup.collection.cleaning.marks import Range, Summary
    from neardup.collection.cleaning.work import Told
    from neardup.collection.dataset import Collection

_BOTH = "both"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="what neardup collection build has made")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--queries",
        type=Path,
        metavar="LOG",
        help="mark: queries and their counts, as TSV (query, tab, count) or as .jsonl (query, count, id);"
        " .gz is read, too",
    )
    what.add_argument(
        "--apply", choices=[way.value for way in Way], help="take the marked pages of this way out"
    )
    what.add_argument("--undo", action="store_true", help="put all pages back that were taken out")
    _add_search(parser)
    _add_rules(parser)
    parser.add_argument(
        "--way",
        choices=[*(way.value for way in Way), _BOTH],
        default=_BOTH,
        help="sequential: each query on what those before have left; parallel: each on all pages"
        " (default: both, with marks of each)",
    )
    parser.add_argument(
        "--processes", type=count, metavar="N", help="of the parallel way; default: one for each core"
    )
    parser.add_argument(
        "--verify",
        type=float,
        default=marks.RIGHT,
        metavar="R",
        help="with --apply: estimated resemblance of a page and its canonical page from which on the page is"
        f" taken out (default: {marks.RIGHT}; 0: whatever is marked)",
    )
    parser.add_argument("--format", choices=("table", "json"), default="table", help="default: table")


def _add_search(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--inputs",
        nargs="+",
        default=[],
        metavar="INPUT",
        help="what the collection was built of, for the texts of the index; needed once",
    )
    parser.add_argument(
        "--search",
        choices=[engine.value for engine in Engine],
        default=Engine.SQLITE.value,
        help="what makes the index: SQLite's FTS5, or tantivy, which is faster (default: sqlite)",
    )
    parser.add_argument(
        "--results",
        metavar="WHERE",
        help="take results of another search instead of the index: a TREC run, a .jsonl file with query and"
        " answer, or a URL of Elasticsearch, OpenSearch or Solr with {query} and perhaps {depth} in it",
    )
    parser.add_argument(
        "--url-field",
        metavar="NAME",
        default="url",
        help="field of a result with the URL of its page (default: url); without it, the id is the URL",
    )


def _add_rules(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-distance",
        default=MAX_DISTANCE,
        metavar="STEPS",
        help="bits in which fingerprints of a group may differ, or by frequency: 3:100,2:1000,1 is 3 for the"
        f" first 100 queries, 2 down to query 1,000, 1 for all others (default: {MAX_DISTANCE})",
    )
    parser.add_argument(
        "--depth",
        default=DEPTH,
        metavar="STEPS",
        help=f"results of a query that are looked at, or by frequency, as above (default: {DEPTH})",
    )
    parser.add_argument(
        "--depth-share",
        type=float,
        default=0.0,
        metavar="S",
        help="look at this share of the results of a query, if that is deeper (default: 0)",
    )
    parser.add_argument(
        "--few-results",
        metavar="N:K",
        help="queries with fewer than N results: bits K at most",
    )
    parser.add_argument(
        "--min-results",
        type=count,
        default=1,
        metavar="N",
        help="queries with fewer results lose none (default: 1)",
    )
    parser.add_argument(
        "--keep-host",
        action="append",
        default=[],
        metavar="HOST",
        help="mark no page of this host; repeatable",
    )
    parser.add_argument(
        "--below", type=float, metavar="RANK", help="mark only pages with a lower PageRank than this"
    )


def run(arguments: argparse.Namespace) -> None:
    collection = open_collection(arguments.folder)
    with locked(collection.folder):
        if arguments.undo:
            with interruptible("some pages are back; the same command puts back the others"):
                files = applying.undo(collection)
            print(f"{collection.folder}: all pages are back, in {number(files, 'file')}")
            tell_outdated(collection.folder)
        elif arguments.apply:
            _apply(collection, arguments)
        else:
            _mark(collection, arguments)


def _apply(collection: Collection, arguments: argparse.Namespace) -> None:
    with interruptible("the same command goes on; --undo puts back what is taken out"):
        applied = applying.apply(collection, Way(arguments.apply), arguments.verify)
    tell_outdated(collection.folder)
    if arguments.format == "json":
        show_json(asdict(applied))
        return
    print(
        f"{collection.folder}: {number(applied.removed, 'page')} taken out, by the {arguments.apply} way;"
        " --undo puts them back"
    )
    print(f"  {applied.unlike:,} marked stay: no canonical page of resemblance {arguments.verify:g} or more")
    print(f"  {applied.orphans:,} marked stay: their canonical pages are taken out themselves")


def _mark(collection: Collection, arguments: argparse.Namespace) -> None:
    if applying.is_applied(collection):
        raise ConfigurationError(
            f"{collection.folder}: pages are taken out by earlier marks; put them back with --undo first"
        )
    rules = _rules(arguments)
    results = _results(arguments.results) or Engine(arguments.search)
    ways = list(Way) if arguments.way == _BOTH else [Way(arguments.way)]
    with interruptible("what was done is kept; the same command goes on from there"):
        pages = CleanPages(collection, rules)
        identity = _identity(collection, arguments, rules, results)
        if isinstance(results, Engine):
            _index(collection, results, pages, arguments.inputs)
        path = collection.folder / "clean" / "work.db"
        with Work(path, identity) as work:
            told = work.read(arguments.queries, results if isinstance(results, Path) else None)
            job = Job(
                collection=collection,
                rules=rules,
                results=results,
                url_field=arguments.url_field,
                work=path,
            )
            progress = Progress("queries", told.queries)
            if Way.SEQUENTIAL in ways:
                mark_sequentially(job, work, progress)
            if Way.PARALLEL in ways:
                mark_in_parallel(job, work, arguments.processes or cores(), progress)
            summaries = marks.write(collection, pages, work, ways)
            work.remove()
    _show(collection, arguments, told, summaries)


def _rules(arguments: argparse.Namespace) -> Rules:
    if not 0.0 <= arguments.depth_share <= 1.0:
        raise ConfigurationError(f"--depth-share must be from 0 to 1, not {arguments.depth_share}")
    return Rules(
        max_distances=Steps.of(arguments.max_distance, "--max-distance", FINGERPRINT_BITS),
        depths=Steps.of(arguments.depth, "--depth"),
        depth_share=arguments.depth_share,
        few=None if arguments.few_results is None else Few.of(arguments.few_results),
        min_results=arguments.min_results,
        kept_hosts=tuple(sorted(set(arguments.keep_host))),
        below=arguments.below,
    )


def _results(given: str | None) -> str | Path | None:
    """A URL, the path of a file, or None for an index of the collection."""
    if given is None:
        return None
    if not given.startswith(("http://", "https://")):
        return Path(given)
    if "{query}" not in given:
        raise ConfigurationError(f"--results {given} has no {{query}} where the query is put")
    return given


def _index(collection: Collection, engine: Engine, pages: CleanPages, inputs: Sequence[str]) -> None:
    if indexes.is_complete(collection, engine):
        return
    if not inputs:
        names = [one["name"] for one in (read_state(collection.folder) or {})["inputs"]]
        raise ConfigurationError(
            f"{collection.folder} has no index of its texts yet: give --inputs with all that the collection"
            f" was built of ({', '.join(names[:3])}{', …' if len(names) > 3 else ''}), or --results"
        )
    options = Options.from_settings(get_project_settings())
    texts = Texts(collection, inputs, options.detector, stored_page)
    indexed = indexes.build(collection, engine, texts, pages, Progress("pages", len(pages)))
    if indexed < len(pages):
        complain(f"{number(len(pages) - indexed, 'page')} without a text in the inputs: no query finds these")


def _identity(
    collection: Collection, arguments: argparse.Namespace, rules: Rules, results: Engine | str | Path
) -> dict[str, object]:
    """What a clean-up is known by: another one does not go on with its work."""
    files = [*page_files(collection), ranks_file(collection)]
    try:
        return {
            "pages": identity_of(collection, files),
            "log": identify(arguments.queries),
            "results": identify(results) if isinstance(results, Path) else results,
            "url_field": arguments.url_field,
            "rules": asdict(rules),
        }
    except OSError as exc:
        raise ConfigurationError(f"{exc.filename} cannot be read: {exc.strerror or exc}") from exc


def _show(
    collection: Collection, arguments: argparse.Namespace, told: Told, summaries: Sequence[Summary]
) -> None:
    for line, reason in told.examples:
        complain(f"{arguments.queries}, line {line}: {reason}")
    if arguments.format == "json":
        ways = {
            summary.way.value: {
                "marked": summary.marked,
                "ranges": [asdict(one) for one in summary.ranges],
                "shares": [asdict(one) for one in summary.shares],
            }
            for summary in summaries
        }
        show_json({"marks": str(marks.marks_file(collection)), "log": asdict(told), "ways": ways})
        return
    print(
        f"{arguments.queries}: {number(told.lines, 'line')} with {told.queries:,} different queries;"
        f" {told.damaged:,} damaged"
    )
    if told.damaged_results:
        print(f"{arguments.results}: {number(told.damaged_results, 'line')} damaged")
    sections = []
    for summary in summaries:
        rows = [
            (f"{one.first:,}-{min(one.last, told.queries):,}", one.hit, one.results, one.unknown, *_done(one))
            for one in summary.ranges
        ]
        columns = ("queries", "with results", "results", "unknown", "marked", "seconds")
        sections.append(Section(summary.way, f"Marked by the {summary.way} way", columns, rows))
        shares = [
            (share.max_distance, share.marked, 100.0 * share.right / share.marked) for share in summary.shares
        ]
        title = f"Marks of the {summary.way} way that are right: resemblance {marks.RIGHT:g} or more"
        sections.append(
            Section(f"{summary.way}_right", title, ("distance at most", "marked", "right, %"), shares)
        )
    show_sections(sections, "table")
    print(f"\n{marks.marks_file(collection)}: nothing is deleted; --apply takes marked pages out")


def _done(one: Range) -> tuple[int, float]:
    return one.marked, round(one.seconds, 2)
