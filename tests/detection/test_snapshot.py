from __future__ import annotations

import json
import os
import resource
import struct
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import mmh3
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from neardup.detection.snapshot import Snapshot, SnapshotError, SnapshotMissing, load, save
from neardup.errors import NeardupError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

SIMPLE_DTYPES = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f4", "f8")


def example() -> dict[str, npt.NDArray[Any]]:
    return {
        "values": np.array([1, 2**64 - 1, 3], dtype=np.uint64),
        "text": np.frombuffer(b"some text", dtype=np.uint8),
        "nothing": np.empty((0, 2), dtype=np.int32),
        "keys": np.arange(6, dtype=np.int64).reshape(3, 2) - 3,
    }


def same(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def forged(header: object, data: bytes = bytes(64)) -> bytes:
    """A snapshot whose checksums of file and header are right, whatever the header says; the data begin at
    512.
    """
    text = (header if isinstance(header, bytes) else json.dumps(header).encode()).ljust(512 - 40)
    start = struct.pack("<8sIIQ", b"\x89NEARDUP", 1, len(text), 512 + len(data))
    return start + mmh3.mmh3_x64_128_digest(start + text) + text + data


def forged_array(**changes: object) -> dict[str, object]:
    """A right description of the 64 bytes of :func:`forged`, with changes; None leaves a key out."""
    checksum = mmh3.mmh3_x64_128_digest(bytes(64)).hex()
    array = {"name": "a", "dtype": "<i8", "shape": [8], "offset": 512, "nbytes": 64, "checksum": checksum}
    return {key: value for key, value in {**array, **changes}.items() if value is not None}


class TestRoundTrip:
    def test_everything_comes_back(self, tmp_path: Path) -> None:
        meta = {"scheme": "words", "pages": 3, "deep": {"list": [1, None, "ü\ud800"]}}
        save(tmp_path / "s", kind="index", meta=meta, arrays=example())

        loaded = load(tmp_path / "s", kind="index")

        assert loaded.meta == meta
        assert list(loaded.arrays) == list(example())
        assert all(same(loaded.arrays[name], array) for name, array in example().items())
        assert all(array.ctypes.data % 64 == 0 for array in loaded.arrays.values() if array.size)

    @given(
        array=st.sampled_from(SIMPLE_DTYPES).flatmap(
            lambda dtype: npst.arrays(dtype, npst.array_shapes(min_side=0, max_side=5))
        ),
        cuts=st.lists(st.integers(0, 5), max_size=3),
    )
    def test_any_array_in_any_pieces(
        self, tmp_path_factory: pytest.TempPathFactory, array: npt.NDArray[Any], cuts: list[int]
    ) -> None:
        path = tmp_path_factory.mktemp("pieces") / "s"

        save(path, kind="k", meta={}, arrays={"a": np.split(array, sorted(cuts)), "b": array[::-1]})
        loaded = load(path, kind="k").arrays

        assert same(loaded["a"], array)
        assert same(loaded["b"], array[::-1])

    def test_other_byte_order_and_no_arrays(self, tmp_path: Path) -> None:
        save(tmp_path / "s", kind="k", meta={}, arrays={"a": np.array([1, 2], dtype=">u4")})
        save(tmp_path / "none", kind="k", meta={"n": 1}, arrays={})

        assert same(load(tmp_path / "s", kind="k").arrays["a"], np.array([1, 2], dtype=np.uint32))
        assert load(tmp_path / "none", kind="k") == ({"n": 1}, {})

    def test_writing_to_what_is_loaded_changes_neither_file_nor_others(self, tmp_path: Path) -> None:
        save(tmp_path / "s", kind="k", meta={}, arrays=example())
        one, other = load(tmp_path / "s", kind="k"), load(tmp_path / "s", kind="k")

        one.arrays["values"][:] = 7

        assert same(other.arrays["values"], example()["values"])
        assert same(load(tmp_path / "s", kind="k").arrays["values"], example()["values"])
        assert one.arrays["values"].data[0] == 7  # of the machine's own byte order, and known as such

    @pytest.mark.parametrize(
        ("array", "error"),
        [
            (np.array(["text"]), TypeError),
            (np.array([object()]), TypeError),
            (np.array([1j]), TypeError),
            ([], TypeError),
            (np.array(5), ValueError),
            ([np.zeros(1), np.zeros(1, dtype=np.uint8)], ValueError),
            ([np.zeros((1, 2)), np.zeros((1, 3))], ValueError),
        ],
    )
    def test_what_cannot_be_kept_is_refused(self, tmp_path: Path, array: Any, error: type[Exception]) -> None:
        with pytest.raises(error):
            save(tmp_path / "s", kind="k", meta={}, arrays={"good": np.zeros(1), "a": array})
        with pytest.raises(TypeError):
            save(tmp_path / "s", kind="k", meta={"a": object()}, arrays={})

        assert list(tmp_path.iterdir()) == []


class TestDamage:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        save(tmp_path / "s", kind="k", meta={"n": 1}, arrays=example())
        return tmp_path / "s"

    def test_a_flipped_bit_of_any_byte_is_found(self, path: Path) -> None:
        sound = path.read_bytes()
        for at in range(len(sound)):
            damaged = bytearray(sound)
            damaged[at] ^= 1 << at % 8
            path.write_bytes(damaged)

            with pytest.raises(SnapshotError, match="/s"):
                load(path, kind="k")

    def test_any_other_length_is_found(self, path: Path) -> None:
        sound = path.read_bytes()
        for content in (*(sound[:length] for length in range(len(sound))), sound + b"\0", sound * 2):
            path.write_bytes(content)

            with pytest.raises(SnapshotError, match="/s is torn"):
                load(path, kind="k")

    def test_messages_say_what_is_wrong(self, path: Path, tmp_path: Path) -> None:
        sound = path.read_bytes()

        with pytest.raises(SnapshotMissing, match=r"there is no snapshot .*/other"):
            load(tmp_path / "other", kind="k")
        with pytest.raises(SnapshotError, match=r"cannot be read.*directory"):
            load(tmp_path, kind="k")
        with pytest.raises(SnapshotError, match="/s is of the kind 'k', not 'index'"):
            load(path, kind="index")
        for content, message in (
            (b"SQLite format 3" + bytes(100), "is no snapshot"),
            (sound[:8] + b"\4" + sound[9:], "format version 4; this neardup reads version 1"),
            (sound[:-9] + b"Some text", "damaged"),
            (sound[:60] + b"!" + sound[61:], "damaged: the checksum of its header"),
            (sound[:-1] + b"!", "damaged: the checksum of array 'keys'"),
        ):
            path.write_bytes(content)
            with pytest.raises(SnapshotError, match=message) as caught:
                load(path, kind="k")
            assert str(path) in str(caught.value)
            assert isinstance(caught.value, NeardupError)

    def test_a_right_forgery_is_read(self, path: Path) -> None:
        path.write_bytes(forged({"kind": "k", "meta": {}, "arrays": [forged_array()]}))

        assert same(load(path, kind="k").arrays["a"], np.zeros(8, dtype=np.int64))

    @pytest.mark.parametrize(
        ("array", "message"),
        [
            (forged_array(dtype="|O"), "unknown dtype '|O'"),
            (forged_array(dtype=["<i8"]), "unknown dtype"),
            (forged_array(dtype=None), "unknown dtype"),
            (forged_array(name=5), "without a name"),
            ("a", "without a name"),
            (forged_array(shape=[9]), "size is not that of its shape"),
            (forged_array(shape=[16], nbytes=128), "not go beyond the file's end"),
            (forged_array(shape=[True], nbytes=8), "shape, offset or size"),
            (forged_array(shape=[-8], nbytes=-64), "shape, offset or size"),
            (forged_array(shape=8), "shape, offset or size"),
            (forged_array(shape=[]), "shape, offset or size"),
            (forged_array(shape=[0, 2**70], nbytes=0, checksum="0" * 32), "impossible shape"),
            (forged_array(offset=448), "should follow 512"),
            (forged_array(offset=513), "should follow 512"),
            (forged_array(offset=1024), "should follow 512"),
            (forged_array(offset=None), "shape, offset or size"),
            (forged_array(checksum=None), "without a checksum"),
            (forged_array(checksum="zz"), "without a checksum"),
            (forged_array(checksum=5), "without a checksum"),
            (forged_array(checksum=""), "checksum of array 'a'"),
        ],
    )
    def test_a_description_that_cannot_be_is_found(self, path: Path, array: object, message: str) -> None:
        path.write_bytes(forged({"kind": "k", "meta": {}, "arrays": [array]}))

        with pytest.raises(SnapshotError, match=message):
            load(path, kind="k")

    def test_arrays_that_overlap_or_leave_a_gap_are_found(self, path: Path) -> None:
        half = mmh3.mmh3_x64_128_digest(bytes(32)).hex()
        first = forged_array(shape=[4], nbytes=32, checksum=half)
        for arrays, message in (
            ([forged_array(), forged_array(name="b")], "should follow 576"),
            ([forged_array(), forged_array()], "two arrays 'a'"),
            ([first], "32 bytes after its last array"),
            ([], "after its last array"),
        ):
            path.write_bytes(forged({"kind": "k", "meta": {}, "arrays": arrays}))
            with pytest.raises(SnapshotError, match=message):
                load(path, kind="k")

    @pytest.mark.parametrize(
        "header", [b"{", b"\xff", b"[" * 400, [], {}, {"kind": 1, "meta": {}, "arrays": []}, {"kind": "k"}]
    )
    def test_a_header_that_is_none_is_found(self, path: Path, header: object) -> None:
        path.write_bytes(forged(header))

        with pytest.raises(SnapshotError, match="header"):
            load(path, kind="k")


SAVE_IN_LITTLE_ROOM = """
import resource, sys
import numpy as np
from neardup.detection.snapshot import SnapshotError, save
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
try:
    save(sys.argv[1], kind="k", meta={}, arrays={"a": np.zeros(100_000)})
except SnapshotError as exc:
    print(exc)
"""


class TestFailedSave:
    @pytest.mark.parametrize("room", [0, 100, 4096, 500_000])
    def test_old_snapshot_stays_and_nothing_else(self, tmp_path: Path, room: int) -> None:
        assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
        path = tmp_path / "s"
        save(path, kind="k", meta={}, arrays=example())

        done = subprocess.run(
            [sys.executable, "-c", SAVE_IN_LITTLE_ROOM, path, str(room)],
            capture_output=True,
            text=True,
            check=True,
        )

        assert f"snapshot {path} cannot be written: File too large" in done.stdout
        assert list(tmp_path.iterdir()) == [path]
        assert same(load(path, kind="k").arrays["values"], example()["values"])

    @pytest.mark.parametrize("step", ["fsync", "replace", "write"])
    def test_an_error_at_any_step(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
        def fail(*_: object) -> None:
            raise OSError(28, "No space left on device")

        path = tmp_path / "s"
        save(path, kind="k", meta={}, arrays=example())
        if step == "fsync":
            monkeypatch.setattr(os, "fsync", fail)
        elif step == "replace":
            monkeypatch.setattr("pathlib.Path.replace", fail)
        else:
            monkeypatch.setattr("pathlib.Path.open", fail)

        with pytest.raises(SnapshotError, match="/s cannot be written: No space left on device"):
            save(path, kind="k", meta={}, arrays={})
        monkeypatch.undo()

        assert list(tmp_path.iterdir()) == [path]
        assert list(load(path, kind="k").arrays) == list(example())

    def test_places_that_cannot_be_written_to(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        (tmp_path / "folder").mkdir()
        for path in (tmp_path / "no" / "s", tmp_path / "file" / "s", tmp_path / "folder"):
            with pytest.raises(SnapshotError, match="cannot be written"):
                save(path, kind="k", meta={}, arrays=example())

        assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder"]


def test_readers_see_one_whole_snapshot_while_it_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s"
    written = threading.Event()

    def keep_saving() -> None:
        for number in range(1, 200):
            save(path, kind="k", meta={"n": number}, arrays={"a": np.full(number * 10, number)})
        written.set()

    save(path, kind="k", meta={"n": 0}, arrays={"a": np.full(0, 0)})
    writer = threading.Thread(target=keep_saving)
    writer.start()
    held: list[Snapshot] = []
    last = 0
    while not written.is_set():
        loaded = load(path, kind="k")
        assert loaded.meta["n"] >= last
        if loaded.meta["n"] > last or not held:  # each keeps a file open
            held.append(loaded)
        last = loaded.meta["n"]
    writer.join()

    for meta, arrays in held:  # what was mapped stays as it was, though its file has no name any more
        assert np.array_equal(arrays["a"], np.full(meta["n"] * 10, meta["n"]))
    assert [entry.name for entry in tmp_path.iterdir()] == ["s"]
