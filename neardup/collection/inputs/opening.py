"""What an argument of ``neardup collection build`` means: a file, a folder or a database."""

from __future__ import annotations

import hashlib
import struct
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neardup.collection.dataset import read_state
from neardup.collection.inputs import archives, dbm_caches, folders, one_piece, tables
from neardup.collection.inputs.found import Unreadable, Why
from neardup.collection.inputs.gzip_members import MAGIC, beginning
from neardup.collection.resume import identify
from neardup.errors import ConfigurationError
from neardup.text.folders import files_below, is_page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

    from neardup.collection.inputs.found import Input

_BEGINNING = 1 << 12
_LINES = (".jsonl", ".jl", ".ndjson", ".jsonlines", ".json")
_FEEDS = (".csv", ".xml")
_JSON = ".json"
_OF_OTHERS = (_JSON, ".xml")
"""Sites have files of other kinds with these names, such as news feeds. What sites call .csv is a table."""

_WACZ = ".wacz"
_PARQUET = ".parquet"
_GZ = ".gz"

_HEADER_MAGIC = b"PK\x03\x04"
_HEADER = struct.Struct("<26x2H")
"""In a zip file in front of a file: the lengths of its name and of what else stands there."""

_OF_ZIP = (*archives.DAMAGE, RuntimeError, NotImplementedError)
"""What zipfile raises at damage, and at what it cannot unpack."""

_OF_COLLECTIONS = frozenset({".db", ".duckdb", ".json", ".npz", ".parquet", ".shingles", ".writing"})
"""Endings of the files of a collection that might be taken for inputs, or that change."""


@dataclass(frozen=True, slots=True)
class Opened:
    """An input, ``name`` as the user knows it. ``identity`` (as JSON has it) tells whether it has changed.
    ``weight``: its bytes, or what stands for them in the estimate of the end.
    """

    name: str
    identity: dict[str, Any]
    weight: int
    pages: Input


def open_inputs(argument: str, names: tables.Names, scheme: str) -> Iterator[Opened]:
    """The inputs that an argument stands for, in order. ConfigurationError if there is none."""
    if "://" in argument:
        from neardup.collection.inputs.stores import StoredPages  # noqa: PLC0415 -- SQLAlchemy takes 14 MB

        stored, identity = StoredPages.open(argument, scheme)
        yield Opened(str(identity["path"]), identity, stored.size, stored)
        return
    path = Path(argument).expanduser()
    found = _of_folder(path, names) if path.is_dir() else _of_caches([path]) or _of_file(path, names)
    if not found:
        raise ConfigurationError(
            f"{argument} has no pages that can be read: no WARC, ARC, WACZ, JSON Lines, Parquet or HTML file"
            " and no HTTP cache"
            if path.is_dir()
            else f"{argument} is none of WARC, ARC, WACZ, HTML, {', '.join((*_LINES, *_FEEDS, _PARQUET))}"
        )
    yield from found


def _of_folder(folder: Path, names: tables.Names) -> list[Opened]:
    if cached := folders.cached_responses(folder):
        return [_many(folder, folders.HttpCache(cached), [path / "response_body" for path in cached])]
    files = _without_collections(list(files_below(folder, _refuse)))
    found = [
        opened
        for path in files
        if not is_page(path.name)
        for opened in _of_file(path, names, named_by_user=False)
    ]
    found += _of_caches(files)
    if pages := tuple(path for path in files if is_page(path.name)):
        found.append(_many(folder, folders.HtmlFiles(pages), pages))
    return found


def _without_collections(files: list[Path]) -> list[Path]:
    """Files that are no part of a collection: a folder may hold the collection that is built of it.

    What else lies in the folder of a collection, such as an archive, is an input.
    """
    collections = {
        path.parent for path in files if path.name == "collection.json" and _has_state(path.parent)
    }
    return [
        path
        for path in files
        if path.suffix not in _OF_COLLECTIONS or collections.isdisjoint(path.parents)
    ]  # fmt: skip


def _has_state(folder: Path) -> bool:
    try:
        return read_state(folder) is not None
    except ConfigurationError:  # the file of a site that has the same name
        return False


def _of_caches(files: list[Path]) -> list[Opened]:
    """The HTTP caches in DBM databases that files belong to."""
    found = {}
    for path in files:
        if (cache := dbm_caches.find(path)) and cache[0] not in found:
            found[cache[0]] = _many(*cache)
    return list(found.values())


def _of_file(path: Path, names: tables.Names, *, named_by_user: bool = True) -> list[Opened]:
    """No input if it is a file of another kind. In a folder, this is what only looks like a feed."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] == [_GZ]
    suffix = suffixes[-2 if packed and len(suffixes) > 1 else -1] if suffixes else ""
    try:
        with path.open("rb") as file:
            start, form, is_gzip = _told(file, packed=packed)
        size = path.stat().st_size
    except OSError as exc:
        raise ConfigurationError(f"{path} cannot be read: {exc.strerror or exc}") from exc
    if form is None:  # its first record may be damaged
        form = next((form for form in archives.FORMS if f".{form}" in suffixes), None)
    pages: Input
    if form:
        archives.need_reader(form)
        splits = not archives.is_in_frames(start)
        pages = _archive(archives.Archive(path, None, form, is_gzip, size, splits))
    elif suffix == _WACZ:
        return list(_of_wacz(path, size))
    elif suffix in _LINES:
        pages = tables.JsonLines(path, names, packed, tables.UNKNOWN_SIZE if packed else size)
    elif suffix in _FEEDS:
        pages = tables.Feed(path, names, packed, suffix[1:])
    elif suffix == _PARQUET:
        pages = tables.ParquetTable.of(path, names)
    elif is_page(path.name):
        pages = folders.HtmlFiles((path,))
    else:
        return []
    if isinstance(pages, tables.JsonLines | tables.Feed) and (missing := pages.missing()):
        if not named_by_user and suffix in _OF_OTHERS and (suffix == _JSON or missing.why is Why.NO_COLUMNS):
            return []
        pages = missing
    return [Opened(str(path), identify(path) or {}, size, pages)]


def _told(file: IO[bytes], *, packed: bool) -> tuple[bytes, str | None, bool]:
    """The first bytes of a file, the form of archive that these tell, and whether the file is packed.

    A damaged first record tells no form, and may not tell that it is packed: then ``packed`` does, the name.
    """
    start = file.read(_BEGINNING)
    is_gzip = start.startswith(MAGIC)
    form = archives.form_of(beginning(file, 0) if is_gzip else start)
    return start, form, is_gzip or (form is None and packed)


def _archive(found: archives.Archive) -> archives.Archive | one_piece.OnePiece:
    if found.packed and one_piece.is_one_piece(found):
        return one_piece.OnePiece(found)
    return found


def _of_wacz(path: Path, size: int) -> Iterator[Opened]:
    archives.need_reader(archives.WARC)
    identity = identify(path) or {}
    try:
        with zipfile.ZipFile(path) as file:
            members = [one for one in file.infolist() if one.filename.startswith("archive/")]
        found = [(one, _begin_of(path, one)) for one in members if not one.is_dir()]
    except _OF_ZIP as exc:
        yield Opened(str(path), identity, size, _unlisted(path, size, exc))
        return
    for info, begins in found:
        yield Opened(f"{path}/{info.filename}", identity, info.compress_size, _of_member(path, info, begins))
    if not found:
        yield Opened(str(path), identity, size, Unreadable(Why.DAMAGED, "has no archive in it"))


def _of_member(path: Path, info: zipfile.ZipInfo, begins: int) -> Input:
    """An archive in a WACZ file."""
    splits = info.compress_type == zipfile.ZIP_STORED
    try:
        member, begins = (None, begins) if splits else (info.filename, 0)
        source = archives.Archive(path, member, archives.WARC, False, info.file_size, splits, begins)
        with source.open() as stored:
            start, form, is_gzip = _told(stored, packed=info.filename.endswith(_GZ))
        splits = splits and not archives.is_in_frames(start)
        return _archive(replace(source, form=form or archives.WARC, packed=is_gzip, splits=splits))
    except (ConfigurationError, *_OF_ZIP) as exc:
        return Unreadable(Why.DAMAGED, f"cannot be read: {exc}")


def _begin_of(path: Path, info: zipfile.ZipInfo) -> int:
    """Where a file begins in a zip file; BadZipFile if it is not where the list of files has it."""
    with path.open("rb") as file:
        file.seek(max(0, info.header_offset))
        header = file.read(_HEADER.size)
    if info.header_offset < 0 or len(header) < _HEADER.size or not header.startswith(_HEADER_MAGIC):
        raise zipfile.BadZipFile(f"{info.filename} is not where the list of files has it")
    name, more = _HEADER.unpack(header)
    return int(info.header_offset + _HEADER.size + name + more)


def _unlisted(path: Path, size: int, problem: Exception) -> Input:
    """A WACZ file whose list of files is wrong: what gzip has packed in it can be found without."""
    source = archives.Archive(path, None, archives.WARC, packed=True, size=size, splits=True)
    with source.open() as file:
        if source.next_begin(file, 0, size) is None:
            return Unreadable(Why.DAMAGED, f"is no WACZ file, or is damaged: {problem}")
    return source


def _many(folder: Path, pages: Input, files: list[Path] | tuple[Path, ...]) -> Opened:
    """Files of a folder as one input, which is another one if a file is added, removed or changed."""
    digest = hashlib.blake2b(digest_size=16)
    weight = 0
    for path in files:
        try:
            found = path.stat()
            size, changed = found.st_size, found.st_mtime_ns
        except OSError:  # whoever reads the file names it
            size = changed = 0
        weight += size
        digest.update(f"{path}\0{size}\0{changed}\n".encode("utf-8", "surrogateescape"))
    identity = {"path": str(folder.resolve()), "files": len(files), "digest": digest.hexdigest()}
    return Opened(str(folder), identity, weight, pages)


def _refuse(error: OSError) -> None:
    raise ConfigurationError(f"{error.filename} cannot be read: {error.strerror}") from error
