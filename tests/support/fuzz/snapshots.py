"""The target ``snapshot``: the file that a crawl starts with, whose arrays become a detector's pages and
index.

The first byte says what the rest is:

- 0: a file;
- 1: a file whose checksums and length are put right first;
- 2: edits to the arrays of a sound snapshot, of ``_EDIT`` bytes each.

What is taken over without a complaint must then be of use.
"""

from __future__ import annotations

import functools
import json
import re
import struct
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mmh3
import numpy as np

from neardup.detection import snapshot
from neardup.detection.detector import Detector, DetectorOptions
from neardup.detection.detector_arrays import arrays_of, restore_arrays
from neardup.detection.snapshot import SnapshotError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from neardup.fingerprint.reader import Reading

    Arrays = dict[str, npt.NDArray[Any]]

_START = struct.Struct("<8sIIQ")
_HEADER_AT = _START.size + 16
_EDIT = struct.Struct("<BBHQ")
"""What is done, to which array, at which element, with which number."""

_CHECKSUM = re.compile(rb'"checksum": "([0-9a-f]{32})"')
_KIND = "crawl"
_OPTIONS = DetectorOptions(sketch_size=512)
_PAGES = 130
_ADDED = 200
"""Fingerprints that are added to an index that was taken over: enough to divide leaves and to use free lines.
"""


def restore(data: bytes) -> None:
    """Load and take over; SnapshotError and ValueError are the answers to what is unsound."""
    if not data:
        return
    form, rest = data[0] % 3, data[1:]
    try:
        detector = Detector(_OPTIONS, reader=_sound().reader, first_id=10_000)
        count = restore_arrays(
            detector, _edited(rest) if form == 2 else _loaded(_put_right(rest) if form else rest)
        )
    except (SnapshotError, ValueError):
        return
    assert count == len(detector.pages), "another number of pages"
    _use(detector)


def seeds() -> Iterator[bytes]:
    small: Arrays = {
        "pages/records": np.arange(6, dtype=np.uint64).reshape(2, 3),
        "index/values": np.zeros(10, dtype=np.uint64),
        "sketches/rows": np.arange(3),
        "nothing": np.empty((0, 2), dtype=np.float32),
    }
    with tempfile.TemporaryDirectory() as folder:
        for arrays in ({}, small):
            snapshot.save(Path(folder) / "s", kind=_KIND, meta={"n": 1}, arrays=arrays)
            for form in (0, 1):
                yield bytes([form]) + (Path(folder) / "s").read_bytes()
    yield b"\2"
    for array in range(len(_arrays())):
        for what in range(len(_EDITS)):
            yield b"\2" + _EDIT.pack(what, array, 1, 3)


def _loaded(content: bytes) -> Mapping[str, npt.NDArray[Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s"
        path.write_bytes(content)
        return snapshot.load(path, kind=_KIND).arrays


def _put_right(content: bytes) -> bytes:
    """The file with its magic number, version, length and checksums as they should be."""
    file = bytearray(content)
    if len(file) < _HEADER_AT:
        return content
    length = struct.unpack_from("<I", file, 12)[0] % (len(file) - _HEADER_AT + 1)
    header = file[_HEADER_AT : _HEADER_AT + length]
    try:
        described = json.loads(header)["arrays"]
        for place, array in zip(_CHECKSUM.finditer(header), described, strict=False):
            of_array = bytes(file[array["offset"] : array["offset"] + array["nbytes"]])
            at = _HEADER_AT + place.start(1)
            file[at : at + 32] = mmh3.mmh3_x64_128_digest(of_array).hex().encode()
    except (ValueError, TypeError, KeyError, RecursionError):
        pass  # without a sound header there are no arrays to put right
    _START.pack_into(file, 0, b"\x89NEARDUP", snapshot._VERSION, length, len(file))
    checked = bytes(file[: _START.size] + file[_HEADER_AT : _HEADER_AT + length])
    file[_START.size : _HEADER_AT] = mmh3.mmh3_x64_128_digest(checked)
    return bytes(file)


def _edited(edits: bytes) -> Arrays:
    arrays = {
        name: array.copy() for name, array in _arrays().items()
    }  # a detector writes to what it takes over
    names = sorted(arrays)
    for at in range(0, len(edits) - _EDIT.size + 1, _EDIT.size):
        what, which, place, number = _EDIT.unpack_from(edits, at)
        name = names[which % len(names)]
        if name in arrays:
            _EDITS[what % len(_EDITS)](arrays, name, place, number)
    return arrays


def _set(arrays: Arrays, name: str, place: int, number: int) -> None:
    _put(arrays, name, place, number)


def _set_small(arrays: Arrays, name: str, place: int, number: int) -> None:
    _put(arrays, name, place, number % 512 - 64)


def _put(arrays: Arrays, name: str, place: int, number: int) -> None:
    array = arrays[name]
    if array.size:
        size = array.dtype.itemsize
        raw = (number & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        array.reshape(-1)[place % array.size] = np.frombuffer(raw, dtype=array.dtype)[0]


def _copy(arrays: Arrays, name: str, place: int, number: int) -> None:
    array = arrays[name]
    if array.size:
        array.reshape(-1)[place % array.size] = array.reshape(-1)[number % array.size]


def _shorten(arrays: Arrays, name: str, place: int, number: int) -> None:
    arrays[name] = arrays[name][: max(0, len(arrays[name]) - place % 64)]


def _lengthen(arrays: Arrays, name: str, place: int, number: int) -> None:
    array = arrays[name]
    arrays[name] = np.concatenate([array, array[: number % 64]])


def _retype(arrays: Arrays, name: str, place: int, number: int) -> None:
    dtypes = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f4", "f8")
    with np.errstate(all="ignore"):
        arrays[name] = arrays[name].astype(dtypes[number % len(dtypes)])


def _reshape(arrays: Arrays, name: str, place: int, number: int) -> None:
    array = arrays[name]
    columns = number % 4 + 1
    arrays[name] = array.reshape(-1)[: array.size // columns * columns].reshape(-1, columns)


def _drop(arrays: Arrays, name: str, place: int, number: int) -> None:
    del arrays[name]


def _exchange(arrays: Arrays, name: str, place: int, number: int) -> None:
    other = sorted(arrays)[number % len(arrays)]
    arrays[name], arrays[other] = arrays[other], arrays[name]


_EDITS = (_set, _set_small, _copy, _shorten, _lengthen, _retype, _reshape, _drop, _exchange)


def _use(detector: Detector) -> None:
    """Judge pages as a crawl would: known, changed and new ones; then let the index grow, and take it down
    again.
    """
    readings = _readings()
    for number in (0, 1, 129, 50):
        detector.judge(_url(number), readings[number])
        detector.judge(_url(number), readings[number + 1])
        detector.judge(f"http://new.example/{number}", readings[number])
    index = detector.index
    for row in range(_ADDED):
        index.add(row * 0x9E3779B97F4A7C15 % (1 << 64), row)
    for reading in readings[::20]:
        assert reading.fingerprint is not None
        matches = index.match_table(reading.fingerprint)
        assert bool((matches[:, 0] < len(detector.pages) + _ADDED).all()), "a match in no row"
        assert (index.find_first(reading.fingerprint) is None) == (len(matches) == 0), "other matches"
    for row in range(_ADDED):
        assert index.remove(row * 0x9E3779B97F4A7C15 % (1 << 64), row), "a fingerprint is lost"
    again = Detector(_OPTIONS, reader=detector.reader)
    restore_arrays(again, _joined(detector))
    assert len(again.pages) == len(detector.pages), "pages are lost"
    assert len(again.index) == len(index), "fingerprints are lost"


def _url(number: int) -> str:
    return f"http://a.example/{number}"


@functools.cache
def _readings() -> list[Reading]:
    """Pages with one menu, each with words of its own; every tenth is much like the one before."""
    reader = _OPTIONS.make_reader()
    menu = " ".join(f"menu{number}" for number in range(30))
    own = [" ".join(f"{n - (n % 10 == 9)}x{number}" for number in range(60)) for n in range(_PAGES + 1)]
    return [reader.read_text(f"{menu} {words}{' more' * (n % 10 == 9)}") for n, words in enumerate(own)]


@functools.cache
def _sound() -> Detector:
    detector = Detector(_OPTIONS)
    for number, reading in enumerate(_readings()[:_PAGES]):
        detector.judge(_url(number), reading)
    return detector


@functools.cache
def _arrays() -> Arrays:
    """Those of a sound snapshot, each in one piece."""
    return _joined(_sound())


def _joined(detector: Detector) -> Arrays:
    return {
        name: array if isinstance(array, np.ndarray) else np.concatenate(array)
        for name, array in arrays_of(detector).items()
    }
