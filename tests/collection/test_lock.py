"""Two commands that would write one collection at once: the second one says so and changes nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from neardup.cli.main import main
from tests.support.archives import warc
from tests.support.collections import build, built, exchanges, files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOLDER = """
import sys
from pathlib import Path
from neardup.collection.dataset import locked
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that writes the collection, by what it does first."""
    command = [sys.executable, "-c", HOLDER, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        yield process
        process.kill()


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "pages.warc.gz"
    path.write_bytes(warc(exchanges()[:5]).data)
    return path


def test_second_command_is_told_and_changes_nothing(
    tmp_path: Path, archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, more = tmp_path / "out", tmp_path / "more.warc.gz"
    built(out, archive)
    more.write_bytes(archive.read_bytes())
    before, state = files(out), (out / "collection.json").read_bytes()
    capsys.readouterr()

    with holder(out) as process:
        assert build(out, archive, more) == 1
        assert f"{out} is being written by another neardup collection" in capsys.readouterr().err
        for verb in (
            ["clusters", str(out)],
            ["elect", str(out), "--by", "https"],
            ["clean", str(out), "--undo"],
        ):
            assert main(["collection", *verb]) == 1
            assert f"{out} is being written by another neardup collection" in capsys.readouterr().err
        assert files(out) == before
        assert (out / "collection.json").read_bytes() == state

        # A kill leaves nothing that keeps others out.
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert build(out, archive, more) == 0
    assert main(["collection", "clusters", str(out)]) == 0
    assert len(built(out, archive, more)) == 10


def test_commands_give_the_folder_back(tmp_path: Path, archive: Path) -> None:
    built(tmp_path / "out", archive)
    assert main(["collection", "clusters", str(tmp_path / "out")]) == 0
    with holder(tmp_path / "out"):
        pass


def test_folder_that_cannot_be_written(
    tmp_path: Path, archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")

    assert build(tmp_path / "file", archive) == 1
    assert f"{tmp_path}/file is a file; name a folder" in capsys.readouterr().err
    assert build(tmp_path / "file" / "below", archive) == 1
    assert "cannot be written" in capsys.readouterr().err
