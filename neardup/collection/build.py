"""Stored pages into a dataset: a row a page, a row a link.

Each input is read in parts, by as many processes as there are cores. A part is done when its file is in the
dataset. So whatever ends the command, the same command goes on with the parts that are missing, and makes the
same files.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, Protocol

from neardup.address import Address
from neardup.collection import dataset, rare_places, results, revisits, workers
from neardup.collection.inputs.archives import Archive
from neardup.collection.inputs.found import (
    UNREAD,
    End,
    Known,
    Other,
    Page,
    Revisit,
    Skipped,
    Text,
    Unreadable,
    Values,
    Why,
)
from neardup.collection.inputs.one_piece import OnePiece, Unpacking
from neardup.collection.inputs.opening import Opened, open_inputs
from neardup.collection.inputs.tables import Feed, JsonLines, ParquetTable
from neardup.errors import ConfigurationError, NeardupError, PageTooLarge
from neardup.fingerprint import sketch
from neardup.text import headline
from neardup.text.anchors import links
from neardup.text.visible_text import utf8_of_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from neardup.collection.dataset import Collection
    from neardup.collection.inputs.found import Input, Origin, Record
    from neardup.collection.inputs.tables import Names
    from neardup.detection.detector import DetectorOptions
    from neardup.fingerprint.reader import Reading, Response


class OpenPage(Protocol):
    """What makes a response of what was stored; None: it is no HTML page."""

    def __call__(self, url: str, status: int, headers: bytes, body: bytes) -> Response | None: ...


PLACE_BITS = 40
"""Bits of an id for the place in an input."""

_EXAMPLES = 3
"""Skipped records of each reason that are named, of each part."""

_TELL_SECONDS = 1.0


class Part(NamedTuple):
    """The records of an input that begin in ``[start, end)``.

    ``exact``: a record begins at ``start``, so that nobody need look for one.
    """

    number: int
    part: int
    start: int
    end: int
    exact: bool = False

    def __str__(self) -> str:
        return f"part {self.part} of input {self.number}"

    @property
    def name(self) -> str:
        return dataset.part_name(self.number, self.part)


class Told(NamedTuple):
    """How far the reading of a part is."""

    part: Part
    place: int


@dataclass(slots=True)
class Note:
    """What is kept with a part that is done.

    ``first`` is the place of its first record. ``next`` is that of the first record after it. ``examples``
    are place, reason and detail of some records that were skipped. ``undated``: pages whose dates cannot be
    read.
    """

    first: int = 0
    next: int = 0
    pages: int = 0
    undated: int = 0
    links: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    examples: list[tuple[int, str, str]] = field(default_factory=list)

    def skip(self, place: int, why: Why, detail: str) -> Why:
        """Count and name a record that gives no row; returns why it does not."""
        self.skipped[why.value] = self.skipped.get(why.value, 0) + 1
        if self.skipped[why.value] <= _EXAMPLES:
            self.examples.append((place, why.value, detail))
        return why


@dataclass(frozen=True, slots=True)
class Built:
    """What a collection holds: by input in their order, its name and the notes of its parts and its revisits.

    ``revisits``: pages that are revisits of others.
    """

    notes: dict[str, list[Note]]
    revisits: int

    @property
    def pages(self) -> int:
        return sum(note.pages for notes in self.notes.values() for note in notes)

    @property
    def links(self) -> int:
        return sum(note.links for notes in self.notes.values() for note in notes)

    @property
    def undated(self) -> int:
        """How many pages have dates that cannot be read."""
        return sum(note.undated for notes in self.notes.values() for note in notes)

    @property
    def skipped(self) -> Counter[str]:
        """How many records were skipped, by reason."""
        counted: Counter[str] = Counter()
        for notes in self.notes.values():
            for note in notes:
                counted.update(note.skipped)
        return counted

    @property
    def unread(self) -> dict[str, int]:
        """Of how many places of which inputs it is not known what they held."""
        counted = {
            name: sum(note.skipped.get(why, 0) for note in notes for why in UNREAD)
            for name, notes in self.notes.items()
        }
        return {name: places for name, places in counted.items() if places}


def build(
    collection_folder: Path,
    arguments: Sequence[str],
    names: Names,
    options: DetectorOptions,
    open_page: OpenPage,
    processes: int,
    on_progress: Callable[[int, int], None],
) -> Built:
    """Build a collection, or go on with one; returns what it holds then.

    ``open_page`` makes the response that a crawl would have, or None if it is no HTML. ``on_progress``
    is told of how many bytes of how many are done. Raises ConfigurationError for inputs that cannot be read
    or do not belong to the collection, and if another process writes it. Raises NeardupError if the dataset
    cannot be written.
    """
    collection = dataset.Collection(collection_folder, str(options.make_reader().scheme))
    dataset.PAGES()  # without pyarrow nothing begins
    opened = _opened(arguments, names, collection.scheme)  # before the folder is made
    with dataset.locked(collection_folder):
        inputs = _numbered(collection, opened, names)
        _begin(collection, inputs, names)
        make = partial(_Builder, collection, inputs, options, open_page)
        missing = [part for part in parts_of(inputs) if not _is_done(collection, part)]
        if missing:
            _put_aside(collection)
        while missing:
            _run(make, missing, processes, inputs, on_progress)
            missing = _disagreeing(collection, inputs, missing)
        _learn(collection, processes)
        of_revisits = _resolved(collection, inputs)
        notes = {
            one.name: [
                *(read_note(collection, part) for part in parts_of({number: one})),
                *([of_revisits[number]] if number in of_revisits else []),
            ]
            for number, one in inputs.items()
        }
        _write(collection, inputs, names, complete=True)
    return Built(notes, sum(note.pages for note in of_revisits.values()))


def _opened(arguments: Sequence[str], names: Names, scheme: str) -> list[Opened]:
    """The inputs. ConfigurationError: nothing of them can be read, or no table has the columns.

    A folder may have tables of other kinds. So these alone stop nothing, where others can be read.
    """
    given = {str(Path(argument).expanduser()) for argument in arguments}
    found = [opened for argument in arguments for opened in open_inputs(argument, names, scheme)]
    has_table = any(isinstance(one.pages, JsonLines | Feed | ParquetTable) for one in found)
    has_pages = any(not isinstance(one.pages, Unreadable) for one in found)
    for one in found:
        if one.pages.size > 1 << PLACE_BITS:
            raise ConfigurationError(f"{one.name} is larger than a terabyte; split it")
        if isinstance(one.pages, Unreadable) and not (
            has_table if one.pages.why is Why.NO_COLUMNS and one.name in given else has_pages
        ):
            raise ConfigurationError(f"{one.name} {one.pages.detail}")
    return found


def numbered(collection: Collection, arguments: Sequence[str], names: Names) -> dict[int, Opened]:
    """The inputs by their numbers, which they keep: new ones come behind those that the collection has.

    ConfigurationError: an input cannot be read, has changed, or is missing.
    """
    return _numbered(collection, _opened(arguments, names, collection.scheme), names)


def _numbered(collection: Collection, opened: list[Opened], names: Names) -> dict[int, Opened]:
    saved = dataset.read_state(collection.folder) or {
        "scheme": collection.scheme, "options": asdict(names), "inputs": []
    }  # fmt: skip
    for what, ours in (("scheme", collection.scheme), ("options", asdict(names))):
        if saved[what] != ours:
            raise ConfigurationError(
                f"{collection.state} was begun with the {what} {saved[what]}, not {ours}; give the same,"
                " or build another collection"
            )
    numbers = {one["name"]: number for number, one in enumerate(saved["inputs"])}
    by_name = {one.name: one for one in opened}
    for name, one in by_name.items():
        known = saved["inputs"][numbers[name]]["identity"] if name in numbers else one.identity
        if known != one.identity:
            raise ConfigurationError(
                f"{name} has changed since it was read into {collection.folder}; build another collection"
            )
    if absent := [name for name in numbers if name not in by_name]:
        raise ConfigurationError(
            f"{collection.folder} holds {', '.join(absent[:_EXAMPLES])} as well; name all of its inputs, new"
            " ones behind them"
        )
    order = [*numbers, *(name for name in by_name if name not in numbers)]
    return {number: by_name[name] for number, name in enumerate(order)}


def _begin(collection: Collection, inputs: dict[int, Opened], names: Names) -> None:
    try:
        for folder in (
            collection.pages, collection.links, collection.records, collection.revisits, collection.shingles,
            collection.rare,
        ):  # fmt: skip
            folder.mkdir(parents=True, exist_ok=True)
        for left in collection.folder.glob("**/*.writing"):
            left.unlink(missing_ok=True)
    except OSError as exc:
        raise dataset.unwritable(collection, exc) from exc
    _write(collection, inputs, names, complete=False)


def _write(collection: Collection, inputs: dict[int, Opened], names: Names, *, complete: bool) -> None:
    described = [{"name": one.name, "identity": one.identity} for one in inputs.values()]
    state = {
        "scheme": collection.scheme, "options": asdict(names), "inputs": described, "complete": complete
    }  # fmt: skip
    try:
        dataset.write_state(collection.folder, state)
    except OSError as exc:
        raise dataset.unwritable(collection, exc) from exc


def parts_of(inputs: dict[int, Opened]) -> Iterator[Part]:
    """The parts in which inputs are read, in order."""
    for number, opened in inputs.items():
        starts = opened.pages.starts
        for part, (start, end) in enumerate(zip(starts, [*starts[1:], opened.pages.size], strict=True)):
            yield Part(number, part, start, end)


def _is_done(collection: Collection, part: Part) -> bool:
    return (collection.pages / part.name).exists()


def read_note(collection: Collection, part: Part) -> Note:
    """What was kept with a part that is done."""
    return Note(**dataset.read_note(collection.pages / part.name))


def _run(
    make: Callable[[], _Builder],
    parts: list[Part],
    processes: int,
    inputs: dict[int, Opened],
    on_progress: Callable[[int, int], None],
) -> None:
    weights = {part: _weight(part, inputs[part.number]) for part in parts}
    total = sum(weights.values())
    done = 0
    running: dict[Part, int] = {}

    def hear(told: Told) -> None:
        part, place = told
        running[part] = weights[part] * (place - part.start) // max(1, part.end - part.start)
        on_progress(done + sum(running.values()), total)

    for part in workers.run(make, parts, min(processes, len(parts)), hear):
        running.pop(part, None)
        done += weights[part]
        on_progress(done + sum(running.values()), total)


def _weight(part: Part, opened: Opened) -> int:
    return opened.weight * (part.end - part.start) // max(1, opened.pages.size)


def _disagreeing(collection: Collection, inputs: dict[int, Opened], made: list[Part]) -> list[Part]:
    """Parts of archives that begin elsewhere than the part before ends.

    Whoever looks for a record from the middle of an archive on may find one that stands within another: an
    archive in an archive. Such a part is made once more from where it should begin.
    """
    exact = {part.name for part in made if part.exact}
    again: list[Part] = []
    for number, opened in inputs.items():
        if not isinstance(opened.pages, Archive):
            continue
        before: Note | None = None
        for part in parts_of({number: opened}):
            note = read_note(collection, part)
            if before is not None:
                # A record may reach over parts. These have no record, and say so by their ends.
                agrees = min(note.first, part.end) == min(before.next, part.end)
                if not agrees and part.name not in exact:
                    again.append(part._replace(start=before.next, exact=True))
                    break
                if before.next >= part.end:
                    continue
            before = note
    return again


def _put_aside(collection: Collection) -> None:
    try:
        results.put_aside(collection, (*results.CLUSTERS, results.RANKS))
    except OSError as exc:
        raise dataset.unwritable(collection, exc) from exc


def _learn(collection: Collection, processes: int) -> None:
    try:
        rare_places.learn(collection, processes)
    except OSError as exc:
        raise dataset.unwritable(collection, exc) from exc


def _resolved(collection: Collection, inputs: dict[int, Opened]) -> dict[int, Note]:
    """Write the pages of revisits, unless they are there; returns what became of the revisits of each input.

    An input that came later may have what a revisit refers to. So the pages are those of so many parts.
    """
    if not revisits.revisit_files(collection):
        return {}
    parts = sum(1 for _ in parts_of(inputs))
    notes: dict[int, Note] = {}
    if collection.resolved.exists():
        saved = dataset.read_note(collection.resolved)
        if saved["parts"] == parts:
            return {int(number): Note(**note) for number, note in saved["inputs"].items()}
    try:
        resolution = revisits.Resolution(collection)
        for outcome in resolution.outcomes():
            number, place = divmod(outcome.id, 1 << PLACE_BITS)
            note = notes.setdefault(number, Note())
            if outcome.skipped is None:
                note.pages += 1
            else:
                note.skip(place, outcome.skipped, outcome.refers_to)
        resolution.write(
            {"parts": parts, "inputs": {str(number): asdict(note) for number, note in notes.items()}}
        )
    except OSError as exc:
        raise dataset.unwritable(collection, exc) from exc
    return notes


class _Builder:
    """Makes parts, in a process of its own."""

    def __init__(
        self,
        collection: Collection,
        inputs: dict[int, Opened],
        options: DetectorOptions,
        open_page: OpenPage,
    ) -> None:
        self._collection = collection
        self._inputs = inputs
        self._reader = options.make_reader()
        self._min_features = options.min_features
        self._open_page = open_page
        self._unpacking: tuple[int, Unpacking] | None = None

    def __call__(self, task: Part, tell: Callable[[Told], None]) -> Part:
        try:
            writer = dataset.PartWriter(self._collection, task.name)
            try:
                note = self._read(task, writer, tell)
                writer.finish(asdict(note))
            finally:
                writer.drop()
        except OSError as exc:
            raise dataset.unwritable(self._collection, exc) from exc
        return task

    def close(self) -> None:
        if self._unpacking is not None:
            self._unpacking[1].close()

    def _read(self, part: Part, writer: dataset.PartWriter, tell: Callable[[Told], None]) -> Note:
        opened = self._inputs[part.number]
        note: Note | None = None
        told_at = monotonic()
        for found in self._records(opened.pages, part):
            place = found.place if isinstance(found, Skipped | Other | End) else found.origin.place
            note = note or Note(first=place, next=place)
            if isinstance(found, End):
                note.next = place
            elif isinstance(found, Skipped):
                note.skip(*found)
            elif isinstance(found, Revisit):
                self._keep_revisit(found, part.number, opened.name, writer)
            elif not isinstance(found, Other):
                why = self._keep(found, part.number, opened.name, writer, note)
                if found.origin.capture is not None:
                    writer.record((_id(part.number, found.origin), *_keys(found.origin), why))
            if monotonic() - told_at > _TELL_SECONDS:
                told_at = monotonic()
                reached = place if self._unpacking is None else self._unpacking[1].reached
                tell(Told(part, reached))
        assert note is not None
        return note

    def _records(self, pages: Input, part: Part) -> Iterator[Record | End]:
        if isinstance(pages, OnePiece):
            return self._unpacking_of(part, pages.archive).records(part.start, part.end)
        if part.exact:
            assert isinstance(pages, Archive)
            return pages.records(part.start, part.end, exact=True)
        return pages.records(part.start, part.end)

    def _unpacking_of(self, part: Part, archive: Archive) -> Unpacking:
        """An archive in one piece, unpacked up to a part at most."""
        if self._unpacking is not None:
            number, unpacking = self._unpacking
            if number == part.number and unpacking.behind <= part.start:
                return unpacking
        self.close()
        unpacking = Unpacking(archive)
        self._unpacking = part.number, unpacking
        return unpacking

    def _keep(
        self, found: Page | Text | Known, number: int, name: str, writer: dataset.PartWriter, note: Note
    ) -> Why | None:
        """Keep a page; returns why it gives no row."""
        origin = found.origin
        page_id = _id(number, origin)
        url, led_to = origin.url, {}
        reading: Reading | None = None
        try:
            if isinstance(found, Known):
                values = found.values
            else:
                if isinstance(found, Page):
                    response = response_of(found, self._open_page)
                    reading = self._reader.read_response(response)
                    url = response.url
                    led_to = links(url, response.selector.root)
                else:
                    reading = self._reader.read_text(utf8_of_text(found.text))
                values = _values(reading)
        except Left as exc:
            return note.skip(origin.place, exc.why, "")
        except PageTooLarge as exc:
            return note.skip(origin.place, Why.TOO_LARGE, str(exc))
        except NeardupError as exc:
            return note.skip(origin.place, Why.UNDECODABLE, str(exc))
        except Exception as exc:  # noqa: BLE001  # as in a crawl: one page makes no other fail
            return note.skip(origin.place, Why.FAILED, f"{type(exc).__name__}: {exc}")
        page = Address.of(url)
        writer.page(
            (
                page_id, _storable(page.url), _storable(page.host), origin.date, origin.ip,
                *values, _storable(name), origin.place,
            )
        )  # fmt: skip
        if reading is not None and reading.can_be_matched(self._min_features):
            writer.shingles(page_id, _storable(page.host), reading)
        targets = list(led_to)
        if not "".join(targets).isascii():
            targets = [_storable(link) for link in targets]
        writer.links(page_id, targets, led_to.values())
        note.pages += 1
        note.undated += origin.undated
        note.links += len(led_to)
        return None

    def _keep_revisit(self, found: Revisit, number: int, name: str, writer: dataset.PartWriter) -> None:
        origin, refers_to = found.origin, found.refers_to
        # What it refers to tells whether it is a page. The address is that which a page would have.
        response = self._open_page(origin.url, 200, b"Content-Type: text/html", b"")
        page = Address.of(origin.url if response is None else response.url)
        writer.revisit(
            (
                _id(number, origin), _storable(page.url), _storable(page.host), origin.date, origin.ip,
                _storable(name), origin.place, *revisits.keys(*refers_to),
                _storable(revisits.told(refers_to)),
            )
        )  # fmt: skip


def response_of(page: Page, open_page: OpenPage) -> Response:
    """The response that a crawl would have; Left if a crawl would leave it alone."""
    if not 200 <= page.status < 300:
        raise Left(Why.ERROR_PAGE)
    response = open_page(page.origin.url, page.status, page.headers, page.body)
    if response is None:
        raise Left(Why.NOT_HTML)
    return response


class Left(Exception):
    """A page that a crawl would leave alone."""

    def __init__(self, why: Why) -> None:
        super().__init__(why.value)
        self.why = why


def _id(number: int, origin: Origin) -> int:
    if origin.place >> PLACE_BITS:  # what comes out of gzip is larger than the file
        raise ConfigurationError(
            f"{origin.url} stands behind the first terabyte of its input; split the input"
        )
    return number << PLACE_BITS | origin.place


def _keys(origin: Origin) -> tuple[int | None, ...]:
    """What revisits may call a record by."""
    assert origin.capture is not None
    return revisits.keys(origin.capture.record, origin.url, origin.date, origin.capture.digest)


def _values(reading: Reading) -> Values:
    found = reading.headline
    title = headline.to_bytes(found) if found.any() else None
    if reading.fingerprint is None or reading.sketch is None:
        return Values(None, None, None, reading.distinct_words, None, title)
    return Values(
        hash_value=reading.fingerprint.value,
        weak_bits=reading.fingerprint.pack_weak_bits(),
        sketch=sketch.to_bytes(reading.sketch),
        features=reading.distinct_words,
        text_digest=reading.text_digest,
        headline=title,
    )


def _storable(text: str) -> str:
    """A text without lone surrogates, which Parquet does not take."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
