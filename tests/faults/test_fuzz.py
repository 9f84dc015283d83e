"""What the fuzzing targets start from and what they have found, and some mutations of each; without
atheris.
"""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

import pytest

from tests.support.fuzz import files
from tests.support.fuzz.__main__ import Watch
from tests.support.fuzz.targets import TARGETS, seeds

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MUTATIONS = 100
"""Of one target."""

LARGEST = 1 << 14


def mutated(data: bytes, other: bytes, chance: random.Random) -> bytes:
    """Some bytes changed, left out, put in, or taken from another input."""
    made = bytearray(data[:LARGEST])
    for _ in range(chance.choice((1, 1, 2, 8))):
        at = chance.randrange(len(made) + 1)
        match chance.randrange(4):
            case 0:
                made[at : at + 1] = chance.randbytes(1)
            case 1:
                del made[at : at + chance.choice((1, 4, 64))]
            case 2:
                made[at:at] = chance.randbytes(chance.choice((1, 4, 12)))
            case _:
                start = chance.randrange(len(other) + 1)
                made[at : at + 8] = other[start : start + chance.choice((8, 12, 64))]
    return bytes(made)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_seeds_and_what_was_found(name: str) -> None:
    for data in seeds(name):
        TARGETS[name].run(data)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_mutations(name: str) -> None:
    chance, inputs, target = random.Random(name), seeds(name), TARGETS[name]
    for _ in range(MUTATIONS):
        data = mutated(chance.choice(inputs), chance.choice(inputs), chance)
        try:
            target.run(data)
        except Exception as exc:
            exc.add_note(f"the input: {data!r}")
            raise


def test_each_reader_of_files_reads_a_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    read: set[str] = set()

    def noting(name: str, reader: Callable[[Path], object]) -> Callable[[Path], object]:
        def reads(path: Path) -> object:
            found = reader(path)
            read.add(name)
            return found

        return reads

    monkeypatch.setattr(files, "READERS", [(name, noting(name, reader)) for name, reader in files.READERS])
    for data in files.seeds():
        files.read(data)

    assert read == {name for name, _ in files.READERS}


@pytest.mark.parametrize(("times", "told"), [(1, "does not come again"), (2, "comes again")])
def test_a_fault_is_told_once_and_whether_it_comes_again(
    times: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs: list[bytes] = []

    def fails_at_first(data: bytes) -> None:
        runs.append(data)
        if len(runs) <= times:
            raise KeyError(data)

    watch = Watch(fails_at_first, tmp_path, "words")
    watch(b"a")
    watch(b"b")

    out, err = capsys.readouterr()
    assert re.search(rf"FAULT: KeyError in test_fuzz\.py:\d+, {told}; the input is ", out)
    assert "KeyError: b'a'" in err
    assert runs == [b"a", b"a", b"b"]
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"a"]
