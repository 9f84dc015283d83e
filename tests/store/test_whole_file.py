"""Files that commands write whole or not at all, and what they may replace."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

from neardup.cli.main import main
from neardup.store.whole_file import written_whole
from tests.support.places import PAGES
from tests.support.stores import upgraded

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = {
    "report": ["report", "--database", "{database}", "--html", "{out}"],
    "pairs": ["pairs", "{values}", "--out", "{out}"],
    "match": ["match", "{values}", "{values}", "--out", "{out}"],
    "learn-idf": ["learn-idf", str(PAGES / "apache"), "--out", "{out}"],
}
"""Those that write a file, each with ``{out}`` where its name is given."""

NAMES = {"report": "r.html", "pairs": "p.csv", "match": "m.csv", "learn-idf": "idf.npz"}


def run(command: str, folder: Path, out: Path) -> int:
    values = folder / "values.npy"
    np.save(values, np.arange(8, dtype=np.uint64))
    database = upgraded(f"sqlite:///{folder}/n.db")
    given = {"database": database, "values": str(values), "out": str(out)}
    return main([part.format(**given) for part in COMMANDS[command]])


@pytest.mark.parametrize("command", COMMANDS)
def test_pipe_stays_a_pipe(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / NAMES[command]
    os.mkfifo(out)

    assert run(command, tmp_path, out) == 1
    assert f"{out} is a device, a pipe or a socket; name a file" in capsys.readouterr().err
    assert out.is_fifo()


@pytest.mark.parametrize("command", COMMANDS)
def test_link_stays_a_link(command: str, tmp_path: Path) -> None:
    out, behind = tmp_path / NAMES[command], tmp_path / "behind"
    behind.write_bytes(b"old")
    out.symlink_to(behind)

    assert run(command, tmp_path, out) == 0
    assert out.is_symlink()
    assert behind.read_bytes() not in {b"", b"old"}
    assert list(tmp_path.glob("*.writing")) == []


def test_nothing_is_left_of_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fill_the_disk() -> None:
        with written_whole(path) as started:
            started.write_text("half of it")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="No space left"):
        fill_the_disk()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
