from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neardup
from neardup.compiled import compiled, lean, machine_code
from neardup.index.psm.instructions import array_at, reaching, trailing_zeros

if TYPE_CHECKING:
    import numpy.typing as npt

CODE = """
from neardup.text import features
from neardup.fingerprint import simhash
_, hashes, weights, _ = features.Features().extract("a")
print(simhash.fingerprint(hashes, weights).value)
"""


@pytest.mark.slow
def test_works_where_nothing_can_be_cached(tmp_path: Path) -> None:
    # A folder that cannot be made stands for a read-only installation of a user without a home.
    package = tmp_path / "neardup"
    shutil.copytree(Path(neardup.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "__pycache__").touch()
    environment = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null/cache", "PYTHONDONTWRITEBYTECODE": "1"}

    done = subprocess.run(
        [sys.executable, "-c", CODE],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.strip() == str(0x85555565F6597889), done.stderr
    assert (package / "__pycache__").is_file()


@compiled
def _reaching(numbers: npt.NDArray[np.float64], factor: float, floor: float) -> int:
    return reaching(numbers, factor, floor)


@compiled
def _trailing_zeros(bits: int) -> int:
    return trailing_zeros(bits)


ANY_TIME = settings(deadline=None)  # the first call compiles
USES_ANOTHER_FILE = """
from neardup.index.psm.psm_index import PSMIndex
index = PSMIndex()
index.add(0, 0)
print(len(index.arrays()), index.nearest(7, rows=9, but=9))
"""


FLOATS = st.floats(allow_nan=True, allow_infinity=True, width=64)


@ANY_TIME
@given(st.lists(FLOATS, min_size=8, max_size=8), FLOATS, FLOATS, st.integers(0, 3))
def test_reaching_is_eight_comparisons(numbers: list[float], factor: float, floor: float, start: int) -> None:
    array = np.zeros(12)
    array[start : start + 8] = numbers

    with np.errstate(all="ignore"):
        expected = sum(1 << place for place, number in enumerate(numbers) if number * factor >= floor)
    assert _reaching(array[start : start + 8], factor, floor) == expected


@ANY_TIME
@given(st.integers(-(1 << 63), (1 << 63) - 1).filter(bool))
def test_trailing_zeros(bits: int) -> None:
    assert bits % (1 << _trailing_zeros(bits)) == 0
    assert bits >> _trailing_zeros(bits) & 1


@lean
def _weighed(address: int, lengths: tuple[int, int, int]) -> float:
    array = array_at(address, lengths, np.float64)
    total = 0.0
    for i in range(array.shape[0]):
        for j in range(array.shape[1]):
            for k in range(array.shape[2]):
                total = 10.0 * total + array[i, j, k]
    array[0, 1, 0] = -1.0
    return total


def test_an_array_at_an_address_is_that_array() -> None:
    whole = np.arange(9, dtype=np.float64)
    array = whole[1:].reshape(2, 2, 2)

    assert _weighed(array.ctypes.data, array.shape) == 12345678.0
    assert array[0, 1, 0] == -1.0


def test_machine_code_takes_what_it_is_made_for_only() -> None:
    @lean
    def doubled(number: int) -> int:
        return 2 * number

    made = machine_code(doubled, "uint64(uint64)")

    assert made(2**63 - 1) == 2**64 - 2
    with pytest.raises(OverflowError):
        made(2**64)
    with pytest.raises(TypeError):
        made(1, 2)


def test_a_lean_function_that_makes_an_array_is_refused() -> None:
    @lean
    def makes(length: int) -> float:
        return float(np.zeros(length).sum())

    with pytest.raises(numba.core.errors.NumbaError, match="Only accept returning of array"):
        makes(3)
