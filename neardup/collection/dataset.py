"""The dataset of a collection: a folder of Parquet files, one row a page and one a link.

``FOLDER/collection.json`` names the format and the scheme of the fingerprints. ``FOLDER/pages/`` and
``FOLDER/links/`` hold the rows in files named by input and part. ``FOLDER/records/`` and
``FOLDER/revisits/`` have what revisits need (:mod:`neardup.collection.revisits`). ``FOLDER/rare/`` and
``FOLDER/frequencies.parquet`` tell what is rare on hosts (:mod:`neardup.collection.rare_places`).
``FOLDER/clusters/`` holds what ``neardup collection clusters`` finds
(:mod:`neardup.collection.results`).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neardup.collection.unpublished import Unpublished
from neardup.collection.waiting import Waiting
from neardup.errors import ConfigurationError, NeardupError
from neardup.parquet import arrow_module, reading_parquet
from neardup.text import headline

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from neardup.fingerprint.reader import Reading

FORMAT = 2

KEYS = ("record", "capture", "digest")
"""What revisits refer by, the surest first: id of a record, its URL and date, digest of its payload."""

OWN = ("id", "url", "host", "date", "ip", "file", "place")
"""Columns of ``pages`` that a revisit has itself. The others are those of the page that it refers to."""

_LOCK = "lock"
"""Name of the file that a process locks while it writes. The file stays, and is empty."""

_ROWS_OF_A_GROUP = 1 << 14
_NOTE = b"neardup"
"""Key of the note in the metadata of a part."""

_SCHEME = re.compile(r"(?P<features>[^/]+)/.*/minwise-\d+x(?P<places>\d+)/v1")


@dataclass(frozen=True, slots=True)
class Collection:
    """A dataset that exists; ``scheme`` is that of all of its fingerprints, by its stored name."""

    folder: Path
    scheme: str

    @property
    def pages(self) -> Path:
        return self.folder / "pages"

    @property
    def clusters(self) -> Path:
        return self.folder / "clusters"

    @property
    def features(self) -> str:
        """The name of the features that the fingerprints are made of."""
        return self._part("features")

    @property
    def places(self) -> int:
        """Places of a sketch."""
        return int(self._part("places"))

    def _part(self, name: str) -> str:
        found = _SCHEME.fullmatch(self.scheme)
        if found is None:
            raise ConfigurationError(
                f"{self.folder}: the scheme {self.scheme!r} is none of this version of neardup; build the"
                " collection again"
            )
        return found[name]

    @property
    def links(self) -> Path:
        return self.folder / "links"

    @property
    def records(self) -> Path:
        return self.folder / "records"

    @property
    def revisits(self) -> Path:
        return self.folder / "revisits"

    @property
    def resolved(self) -> Path:
        """The pages of the revisits whose pages are known."""
        return self.pages / "revisits.parquet"

    @property
    def shingles(self) -> Path:
        """The shingles of pages, until it is known what is rare."""
        return self.folder / "shingles"

    @property
    def rare(self) -> Path:
        return self.folder / "rare"

    @property
    def frequencies(self) -> Path:
        """What is known of hosts."""
        return self.folder / "frequencies.parquet"

    @property
    def state(self) -> Path:
        """What was built, and of what."""
        return self.folder / "collection.json"


def open_collection(folder: Path) -> Collection:
    """The dataset in a folder, all of it built; else ConfigurationError."""
    saved = read_state(folder)
    if saved is None:
        raise ConfigurationError(f"{folder} is no collection: there is no collection.json in it")
    if not saved["complete"]:
        raise ConfigurationError(
            f"{folder} is not complete: give neardup collection build the same inputs again, and it goes on"
        )
    collection = Collection(folder, saved["scheme"])
    _check_pages(collection)
    return collection


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other commands from writing into a folder, which is made.

    The lock ends with the process, whatever ends it. Raises ConfigurationError if another process has it, or
    if a file has the name of the folder.
    """
    from filelock import FileLock, Timeout  # noqa: PLC0415 -- 50 ms that only those pay who write

    path = folder / _LOCK
    if folder.is_file():
        raise ConfigurationError(f"{folder} is a file; name a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path, timeout=0)
        lock.acquire()
    except Timeout as exc:
        raise ConfigurationError(
            f"{folder} is being written by another neardup collection; wait until it has ended, or give"
            " another folder"
        ) from exc
    except OSError as exc:
        raise NeardupError(f"{path} cannot be written: {exc.strerror or exc}") from exc
    try:
        yield
    finally:
        lock.release()


def identity(collection: Collection, files: Sequence[Path]) -> list[list[Any]]:
    """What tells whether files are still the same, as JSON has it: name, size and time of change."""
    found = [(path, path.stat()) for path in files]
    return [[str(path.relative_to(collection.folder)), one.st_size, one.st_mtime_ns] for path, one in found]


def read_state(folder: Path) -> dict[str, Any] | None:
    """What ``collection.json`` says; None if there is none, ConfigurationError if it is damaged."""
    path = Collection(folder, "").state
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        if saved["format"] != FORMAT:
            raise ConfigurationError(
                f"{path} is of the format {saved['format']!r}, not {FORMAT}; build the collection again"
            )
        str(saved["scheme"]), dict(saved["options"]), list(saved["inputs"]), bool(saved["complete"])
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise ConfigurationError(f"{path} cannot be read: {exc.strerror or exc}") from exc
    except (ValueError, KeyError, TypeError, RecursionError) as exc:
        if isinstance(exc, ConfigurationError):
            raise
        raise ConfigurationError(
            f"{path} is damaged ({exc}); build the collection in another folder"
        ) from exc
    return dict(saved)


def write_state(folder: Path, state: Mapping[str, Any]) -> None:
    """Replace ``collection.json``, all of it or nothing; OSError if that is not possible."""
    path = Collection(folder, "").state
    started = path.with_name(f"{path.name}.writing")
    with started.open("w", encoding="utf-8") as out:
        json.dump({"format": FORMAT, **state}, out, indent=1)
        out.flush()
        os.fsync(out.fileno())
    started.replace(path)


def part_name(number: int, part: int) -> str:
    """The name of the files with the rows of one part of an input."""
    return f"{number:06}-{part:04}.parquet"


def read_note(path: Path) -> dict[str, Any]:
    """What is noted in a part that is done; ConfigurationError if the file is damaged."""
    parquet = arrow_module("pyarrow.parquet", path)
    with reading_parquet(path):
        return dict(json.loads(parquet.read_metadata(path).metadata[_NOTE]))


class PartWriter:
    """The rows of one part. Its files get their names when all rows are written, ``pages`` last.

    So a part whose file in ``pages`` is there is done. A part without records or revisits has no files of
    these.
    """

    def __init__(self, collection: Collection, name: str) -> None:
        self._links = Table(collection.links / name, LINKS())
        self._pages = Table(collection.pages / name, PAGES())
        self._records = Table(collection.records / name, RECORDS())
        self._revisits = Table(collection.revisits / name, REVISITS())
        self._shingles = Waiting(collection.shingles / name)
        self._optional = (self._records, self._revisits, self._shingles)
        self._tables = (*self._optional, self._links, self._pages)

    def page(self, row: tuple[Any, ...]) -> None:
        self._pages.add_row(row)

    def links(self, page_id: int, targets: list[str], nofollow: Iterable[bool]) -> None:
        """Where the anchors of one page lead to."""
        self._links.add([page_id] * len(targets), targets, nofollow)

    def shingles(self, page_id: int, host: str, reading: Reading) -> None:
        """What tells where the sketch of a page holds what is rare on the host."""
        self._shingles.add(page_id, host, reading)

    def record(self, row: tuple[Any, ...]) -> None:
        """A record that revisits may refer to."""
        self._records.add_row(row)

    def revisit(self, row: tuple[Any, ...]) -> None:
        self._revisits.add_row(row)

    def finish(self, note: Mapping[str, Any]) -> None:
        """Write what is left, and a note that :func:`read_note` gives back."""
        written = [table for table in self._tables if table.rows or table not in self._optional]
        for table in written:
            table.finish(note)
        for table in self._optional:
            if table not in written:  # the part may have been made from elsewhere before
                table.path.unlink(missing_ok=True)
        for table in written:
            table.publish()

    def drop(self) -> None:
        """Remove what was written; nothing is left if the part was not finished."""
        for table in self._tables:
            table.drop()


class Table(Unpublished):
    """Rows on their way to a file. Columns gather to row groups.

    The columns are lists of plain values, so that no link takes a tuple of its own.
    """

    def __init__(self, path: Path, schema: Any) -> None:
        super().__init__(path)
        self._schema = schema
        self._written = 0
        self._arrow = arrow_module("pyarrow", path)
        self._columns: list[list[Any]] = [[] for _ in schema]

    @cached_property
    def _file(self) -> Any:
        parquet = arrow_module("pyarrow.parquet", self.path)
        return parquet.ParquetWriter(self._started, self._schema, compression="zstd")

    @property
    def rows(self) -> int:
        """Rows so far."""
        return self._written + len(self._columns[0])

    def add(self, *columns: Iterable[Any]) -> None:
        """Add the columns of some rows."""
        for column, added in zip(self._columns, columns, strict=True):
            column.extend(added)
        self._write_when_full()

    def add_row(self, row: Iterable[Any]) -> None:
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)
        self._write_when_full()

    def finish(self, note: Mapping[str, Any]) -> None:
        self._write()
        self._file.add_key_value_metadata({_NOTE: json.dumps(note)})
        self._file.close()
        with self._started.open("rb") as written:
            os.fsync(written.fileno())

    def write(self, table: Any) -> None:
        """Write rows that are an Arrow table of the schema already."""
        self._written += table.num_rows
        self._file.write_table(table)

    def _write_when_full(self) -> None:
        if len(self._columns[0]) >= _ROWS_OF_A_GROUP:
            self._write()

    def _write(self) -> None:
        arrays = [
            self._arrow.array(column, type=of.type)
            for column, of in zip(self._columns, self._schema, strict=True)
        ]
        self.write(self._arrow.table(arrays, schema=self._schema))
        self._columns = [[] for _ in self._schema]


def leave_out(source: Path, target: Path, page_ids: Any) -> int:
    """Write the rows of a part of ``pages/`` without those of some pages, an array of ids, into another file.

    Returns how many rows were left out. The file is there as a whole or not at all. OSError: it cannot be
    written; ConfigurationError: the part is damaged.
    """
    arrow = arrow_module("pyarrow", source)
    parquet = arrow_module("pyarrow.parquet", source)
    compute = arrow_module("pyarrow.compute", source)
    begun = target.with_name(f"{target.name}.{os.getpid()}.writing")
    note, left = read_note(source), 0
    try:
        with parquet.ParquetWriter(begun, PAGES(), compression="zstd") as writer:
            with reading_parquet(source):
                batches = parquet.ParquetFile(source).iter_batches(_ROWS_OF_A_GROUP)
            for batch in batches:
                stays = compute.invert(compute.is_in(batch["id"], arrow.array(page_ids, arrow.int64())))
                kept = batch.filter(stays)
                left += batch.num_rows - kept.num_rows
                writer.write_table(arrow.Table.from_batches([kept]).cast(PAGES()))
            writer.add_key_value_metadata({_NOTE: json.dumps({**note, "pages": note["pages"] - left})})
        with begun.open("rb") as written:
            os.fsync(written.fileno())
        begun.replace(target)
    finally:
        begun.unlink(missing_ok=True)
    return left


def PAGES() -> Any:  # noqa: N802  # a constant that needs an extra
    """The Arrow schema of ``pages/``."""
    arrow = arrow_module("pyarrow", Path("a collection"))
    return arrow.schema(
        [
            arrow.field("id", arrow.int64(), nullable=False),
            arrow.field("url", arrow.string(), nullable=False),
            arrow.field("host", arrow.string(), nullable=False),
            ("date", arrow.timestamp("us", "UTC")),
            ("ip", arrow.string()),
            ("hash_value", arrow.uint64()),
            ("weak_bits", arrow.binary(48)),
            ("sketch", arrow.binary()),
            ("features", arrow.int32()),
            ("text_digest", arrow.uint64()),
            ("headline", arrow.binary(headline.BYTES)),
            ("file", arrow.string()),
            ("place", arrow.int64()),
        ]
    )


def LINKS() -> Any:  # noqa: N802  # as PAGES
    """The Arrow schema of ``links/``."""
    arrow = arrow_module("pyarrow", Path("a collection"))
    return arrow.schema(
        [
            arrow.field("page_id", arrow.int64(), nullable=False),
            arrow.field("url", arrow.string(), nullable=False),
            arrow.field("nofollow", arrow.bool_(), nullable=False),
        ]
    )


def RECORDS() -> Any:  # noqa: N802  # as PAGES
    """The Arrow schema of ``records/``: a record of an archive that revisits may refer to, by its keys.

    ``skipped`` is why the record gives no row; null: its row has the same id.
    """
    arrow = arrow_module("pyarrow", Path("a collection"))
    keys = [(name, arrow.uint64()) for name in KEYS]
    return arrow.schema(
        [arrow.field("id", arrow.int64(), nullable=False), *keys, ("skipped", arrow.string())]
    )


def REVISITS() -> Any:  # noqa: N802  # as PAGES
    """The Arrow schema of ``revisits/``.

    A revisit has some columns of a page itself. The keys are those of the record that it refers to, and
    ``refers_to`` is how it names that record.
    """
    arrow = arrow_module("pyarrow", Path("a collection"))
    own = [PAGES().field(name) for name in OWN]
    keys = [(name, arrow.uint64()) for name in KEYS]
    return arrow.schema([*own, *keys, ("refers_to", arrow.string())])


def RARE() -> Any:  # noqa: N802  # as PAGES
    """The Arrow schema of ``rare/``, a row a page.

    ``rare_places`` are the planes of :func:`neardup.collection.rare_places.planes_of`. ``rare_limit``: on how
    many pages of the host a rare shingle may stand. ``is_all_rare``: the host is known, and next to nothing
    in the page is template. ``is_article``: so much is rare that the headline is a small part of it.
    """
    arrow = arrow_module("pyarrow", Path("a collection"))
    return arrow.schema(
        [
            arrow.field("id", arrow.int64(), nullable=False),
            ("rare_places", arrow.binary()),
            ("rare_limit", arrow.int32()),
            ("is_all_rare", arrow.bool_()),
            ("is_article", arrow.bool_()),
        ]
    )


def FREQUENCIES() -> Any:  # noqa: N802  # as PAGES
    """The Arrow schema of ``frequencies.parquet``: what is known of a host
    (:class:`neardup.detection.document_frequencies.HostFrequencies`).
    """
    arrow = arrow_module("pyarrow", Path("a collection"))
    return arrow.schema([("host", arrow.string()), ("pages", arrow.int64()), ("counts", arrow.binary())])


def unwritable(collection: Collection, exc: OSError) -> NeardupError:
    """The error of a collection that cannot be written."""
    return NeardupError(
        f"{collection.folder} cannot be written: {exc.strerror or exc}; what was done is kept, and the same"
        " command goes on"
    )


def page_files(collection: Collection) -> list[Path]:
    """The files of ``pages/``, in their order."""
    return sorted(collection.pages.glob("*.parquet"))


def _check_pages(collection: Collection) -> None:
    """All files must have the columns of :func:`PAGES`."""
    files, expected = page_files(collection), PAGES()
    if not files:
        raise ConfigurationError(
            f"{collection.pages} has no Parquet file; neardup collection build makes them"
        )
    for path in files:
        parquet = arrow_module("pyarrow.parquet", path)
        with reading_parquet(path):
            schema = parquet.read_schema(path)
        for field in expected:
            place = schema.get_field_index(field.name)
            if place < 0:
                raise ConfigurationError(f"{path} has no column {field.name}, but {', '.join(schema.names)}")
            if schema.field(place).type != field.type:
                raise ConfigurationError(
                    f"{path}: column {field.name} is {schema.field(place).type}, not {field.type}"
                )
