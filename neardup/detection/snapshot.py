"""A file of named NumPy arrays, written in one piece or not at all, and mapped into memory when read.

A crawl needs the index and the known pages at its start. Both are there as soon as the file is mapped and
checked, without a Python object for each page. A snapshot is only a faster copy of what the database holds:
whoever meets SnapshotError reads the database.

The file, all numbers little-endian:

======  =====  ==========================================================================
offset  bytes  what
======  =====  ==========================================================================
0       8      magic: 89 "NEARDUP"
8       4      format version (1)
12      4      length of the JSON header
16      8      length of the whole file
24      16     MurmurHash3 x64 128 of bytes 0 to 23 and the JSON header
40             JSON header, UTF-8: ``{"kind", "meta", "arrays": [{"name", "dtype", "shape", "offset",
               "nbytes", "checksum"}]}``; checksum: MurmurHash3 x64 128 of the array's bytes, in hexadecimal
               the arrays in the order of the header, C-contiguous, each from the next multiple of 64 on;
               zeros between them
======  =====  ==========================================================================

The checksums find damage, not forgery. The checksums are computed before anything is written, so that an
array that changes meanwhile is found when read. A killed process may leave a file ``.NAME.….tmp`` behind,
which may be deleted.
"""

from __future__ import annotations

import json
import mmap
import os
from contextlib import suppress
from math import prod
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import mmh3
import numpy as np

from neardup.errors import NeardupError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

_MAGIC = b"\x89NEARDUP"
_VERSION = 1
_START = Struct("<8sIIQ")
_CHECKSUM_BYTES = 16
_HEADER_AT = _START.size + _CHECKSUM_BYTES
_ALIGNMENT = 64
_AT_ONCE = 1 << 24

# By these names, not by newbyteorder(): NumPy then takes the machine's own order for what it is, and
# memoryview does too.
_DTYPES = {
    name: np.dtype(name) for name in ("|u1", "<u2", "<u4", "<u8", "|i1", "<i2", "<i4", "<i8", "<f4", "<f8")
}


class SnapshotError(NeardupError):
    """A snapshot cannot be written, or cannot be used as it is; the message names the file and
    what is wrong.
    """


class SnapshotMissing(SnapshotError):
    """There is no such snapshot, which is nothing to worry about at a first start."""


class Snapshot(NamedTuple):
    """A checked snapshot. The arrays are mapped copy-on-write: writing to them changes neither the file nor
    other readers.
    """

    meta: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]


def save(
    path: str | os.PathLike[str],
    *,
    kind: str,
    meta: Mapping[str, object],
    arrays: Mapping[str, npt.NDArray[Any] | Sequence[npt.NDArray[Any]]],
) -> None:
    """Write a snapshot in place of the one that is there; readers see the old one or the new one, whole.

    ``meta`` is anything JSON can hold. An array may be given in pieces (at least one, of one dtype). Pieces
    are joined along their first axis in the file, without a copy in memory.

    Raises TypeError for a dtype or meta that cannot be kept, and ValueError for pieces that do not fit
    together. Both are raised before anything is written. Raises SnapshotError if writing fails; the old
    snapshot is still there then, and nothing else.
    """
    path = Path(path)
    pieces = {name: _pieces(name, array) for name, array in arrays.items()}
    described = [_describe(name, parts) for name, parts in pieces.items()]
    header, length = _lay_out(kind, meta, described)
    start = _START.pack(_MAGIC, _VERSION, len(header), length)
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(start + _checksum([start, header]) + header)
            for array, parts in zip(described, pieces.values(), strict=True):
                file.write(bytes(array["offset"] - file.tell()))
                for part in _bytes_of(parts):
                    file.write(part)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    except OSError as exc:
        raise SnapshotError(f"snapshot {path} cannot be written: {exc.strerror or exc}") from exc
    finally:
        with suppress(OSError):
            temporary.unlink()


def load(path: str | os.PathLike[str], *, kind: str) -> Snapshot:
    """Map a snapshot into memory and check every byte of it.

    Raises SnapshotError if it cannot be read, is torn, damaged, of another version or kind, or no snapshot at
    all.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            length = os.fstat(file.fileno()).st_size
            if length < _HEADER_AT:
                raise SnapshotError(f"snapshot {path} is torn: it has only {length} bytes")
            mapped = mmap.mmap(file.fileno(), length, access=mmap.ACCESS_COPY)
    except FileNotFoundError as exc:
        raise SnapshotMissing(f"there is no snapshot {path}") from exc
    except (OSError, ValueError) as exc:  # mmap: ValueError if the file has become shorter
        raise SnapshotError(f"snapshot {path} cannot be read: {exc}") from exc
    try:
        header = _read_header(mapped)
        if header["kind"] != kind:
            raise _Defect(f"is of the kind {header['kind']!r}, not {kind!r}")
        arrays = _read_arrays(mapped, header["arrays"], _HEADER_AT + header["length"])
    except _Defect as exc:
        raise SnapshotError(f"snapshot {path} {exc}") from exc
    return Snapshot(header["meta"], arrays)


class _Defect(Exception):
    """What is wrong with a file, as the end of a sentence."""


def _pieces(name: str, array: npt.NDArray[Any] | Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
    """An array or its pieces, little-endian and C-contiguous; those that are so already are not copied."""
    parts = [array] if isinstance(array, np.ndarray) else list(array)
    dtype = _DTYPES.get(parts[0].dtype.newbyteorder("<").str) if parts else None
    if dtype is None:
        raise TypeError(f"array {name!r} has none of the dtypes a snapshot holds: {', '.join(_DTYPES)}")
    if any(
        part.ndim == 0 or part.shape[1:] != parts[0].shape[1:] or part.dtype != parts[0].dtype
        for part in parts
    ):
        raise ValueError(
            f"the pieces of array {name!r} do not fit together, or have no axis to be joined along"
        )
    return [np.ascontiguousarray(part, dtype=dtype) for part in parts]


def _describe(name: str, parts: list[npt.NDArray[Any]]) -> dict[str, Any]:
    return {
        "name": name,
        "dtype": parts[0].dtype.str,
        "shape": [sum(len(part) for part in parts), *parts[0].shape[1:]],
        "nbytes": sum(part.nbytes for part in parts),
        "checksum": _checksum(_bytes_of(parts)).hex(),
    }


def _lay_out(kind: str, meta: Mapping[str, object], described: list[dict[str, Any]]) -> tuple[bytes, int]:
    """Give each array its offset; returns the header and the length of the file."""
    at = 0
    for array in described:
        array["offset"] = 10**15  # as wide as any, so that the header does not become longer when it is known
    room = len(_json(kind, meta, described))
    at = _HEADER_AT + room
    for array in described:
        array["offset"] = _aligned(at)
        at = array["offset"] + array["nbytes"]
    return _json(kind, meta, described).ljust(room), at


def _json(kind: str, meta: Mapping[str, object], described: list[dict[str, Any]]) -> bytes:
    header = {"kind": kind, "meta": dict(meta), "arrays": described}
    return json.dumps(header, allow_nan=False).encode()


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT


def _bytes_of(parts: Iterable[npt.NDArray[Any]]) -> Iterable[memoryview]:
    # The memoryview of an array without elements cannot be cast.
    return (part.data.cast("B") for part in parts if part.nbytes)


def _checksum(parts: Iterable[bytes | memoryview]) -> bytes:
    hasher = mmh3.mmh3_x64_128()
    for part in parts:
        for start in range(0, len(part), _AT_ONCE):
            hasher.update(part[start : start + _AT_ONCE])
    return hasher.digest()


def _sync_folder(folder: Path) -> None:
    """Make the new name last through a power failure, where the system lets a folder be opened."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _read_header(mapped: mmap.mmap) -> dict[str, Any]:
    """The JSON header, its outer shape checked, with its ``length``."""
    start = mapped[: _START.size]
    magic, version, header_length, length = _START.unpack(start)
    if magic != _MAGIC:
        raise _Defect("is no snapshot: it does not begin like one")
    if version != _VERSION:
        raise _Defect(f"has the format version {version}; this neardup reads version {_VERSION}")
    if length != len(mapped):
        raise _Defect(f"is torn: it has {len(mapped)} bytes, and should have {length}")
    text = mapped[_HEADER_AT : _HEADER_AT + header_length]
    if _checksum([start, text]) != mapped[_START.size : _HEADER_AT]:
        raise _Defect("is damaged: the checksum of its header is wrong")
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise _Defect(f"has a header that is not JSON: {exc}") from exc
    shape = {"kind": str, "meta": dict, "arrays": list}
    if not isinstance(header, dict) or any(not isinstance(header.get(key), of) for key, of in shape.items()):
        raise _Defect("has a header without kind, meta or arrays")
    return {**header, "length": header_length}


def _read_arrays(mapped: mmap.mmap, described: list[Any], end: int) -> dict[str, npt.NDArray[Any]]:
    """The arrays that follow each other from ``end``, the end of the header, to the end of the file."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    with memoryview(mapped) as view:
        for array in described:
            name, dtype, shape, checksum = _read_description(array)
            offset, nbytes = array["offset"], array["nbytes"]
            if name in arrays:
                raise _Defect(f"has two arrays {name!r}")
            if offset != _aligned(end) or offset + nbytes > len(mapped):
                raise _Defect(
                    f"has array {name!r} at {offset} to {offset + nbytes}, which should follow {end}"
                    f" and not go beyond the file's end at {len(mapped)}"
                )
            if any(view[end:offset]):
                raise _Defect(f"is damaged: bytes before array {name!r} are not zero")
            with view[offset : offset + nbytes] as content:
                if _checksum([content]) != checksum:
                    raise _Defect(f"is damaged: the checksum of array {name!r} is wrong")
            count = nbytes // dtype.itemsize
            flat = np.frombuffer(mapped, dtype, count, offset) if count else np.empty(0, dtype)
            try:
                arrays[name] = flat.reshape(shape)
            except (ValueError, OverflowError) as exc:
                raise _Defect(f"has array {name!r} of an impossible shape: {exc}") from exc
            end = offset + nbytes
    if end != len(mapped):
        raise _Defect(f"has {len(mapped) - end} bytes after its last array")
    return arrays


def _read_description(array: Any) -> tuple[str, np.dtype[Any], list[int], bytes]:
    """Name, dtype, shape and checksum of an array, if its description in the header is sound."""
    if not isinstance(array, dict) or not isinstance(array.get("name"), str):
        raise _Defect("has a header with an array without a name")
    name, shape = array["name"], array.get("shape")
    if not isinstance(array.get("dtype"), str) or array["dtype"] not in _DTYPES:
        raise _Defect(f"has array {name!r} of the unknown dtype {array.get('dtype')!r}")
    dtype = _DTYPES[array["dtype"]]
    numbers = [
        array.get("offset"),
        array.get("nbytes"),
        *(shape if isinstance(shape, list) and shape else [None]),
    ]
    if any(type(number) is not int or number < 0 for number in numbers):
        raise _Defect(f"has array {name!r} with a shape, offset or size that is none: {numbers}")
    if array["nbytes"] != prod(numbers[2:]) * dtype.itemsize:
        raise _Defect(f"has array {name!r} whose size is not that of its shape")
    try:
        checksum = bytes.fromhex(array["checksum"])
    except (KeyError, TypeError, ValueError) as exc:
        raise _Defect(f"has array {name!r} without a checksum") from exc
    return name, dtype, numbers[2:], checksum
