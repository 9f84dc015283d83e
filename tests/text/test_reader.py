"""What only reads, on SQLite: it neither waits for those who write, nor needs to be allowed to."""

from __future__ import annotations

import ctypes
import os
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from neardup.cli.main import main
from neardup.errors import DatabaseUnavailable
from neardup.fingerprint.scheme import Scheme
from neardup.store import engine as engines
from neardup.store.store import Store
from tests.support.places import ROOT
from tests.support.stores import write
from tests.support.verdicts import duplicate, page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

URL = "http://a.example/"
COMMANDS = {
    "report": ("report",),
    "show": ("show", URL),
    "check": ("check", "{folder}/page.html"),
    "crawls": ("crawls",),
    "db info": ("db", "info"),
    "db stats": ("db", "stats"),
    "db export": ("db", "export", "{folder}/export.jsonl"),
    "db prune": ("db", "prune", "--older-than", "2020-01-01", "--dry-run"),
}
"""``plan`` and ``learn-idf`` open the database as these do, but want more pages than are stored here."""


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database with a page and its duplicate; whoever waits for a lock in this process gives up soon."""
    monkeypatch.delenv("SCRAPY_SETTINGS_MODULE", raising=False)
    monkeypatch.setattr(engines, "BUSY_SECONDS", 0.1)
    path = tmp_path / "stored" / "n.db"
    with Store.open(f"sqlite:///{path}", scheme=str(Scheme())) as store:
        write(store, page(1, URL), duplicate(2, "http://b.example/", 1))
    (tmp_path / "page.html").write_text(f"<p>{' '.join(f'word{n}' for n in range(30))}</p>")
    return path


def arguments(command: str, database: Path) -> list[str]:
    words = [word.format(folder=database.parent.parent) for word in COMMANDS[command]]
    return [*words, "--database", f"sqlite:///{database}"]


class TestWhileAnotherProcessHoldsTheLock:
    @pytest.fixture(params=["IMMEDIATE", "EXCLUSIVE"], autouse=True)
    def lock(self, database: Path, request: pytest.FixtureRequest) -> Iterator[None]:
        """As ``neardup crawls remove`` and a crawl hold it, in a process of its own."""
        code = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None)"
        code += "; c.execute('BEGIN ' + sys.argv[2]); c.execute('DELETE FROM duplicate_values')"
        code += "; print(flush=True); input()"
        with subprocess.Popen(
            [sys.executable, "-c", code, str(database), request.param],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as holder:
            assert holder.stdout is not None
            holder.stdout.readline()
            yield
            holder.kill()

    @pytest.mark.parametrize("command", COMMANDS)
    def test_commands_read(self, command: str, database: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(arguments(command, database)) == 0, capsys.readouterr().err

    def test_what_is_not_committed_is_not_read(
        self, database: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["show", "http://b.example/", "--database", f"sqlite:///{database}"]) == 0
        assert URL in capsys.readouterr().out

    def test_a_crawl_waits(self, database: Path) -> None:
        with (
            Store.open(f"sqlite:///{database}", scheme=str(Scheme())) as store,
            pytest.raises(DatabaseUnavailable, match=r"locked .*another program holds a lock"),
        ):
            store.begin_crawl(spider="s", settings={})


@pytest.mark.slow
class TestWithoutPermissionToWrite:
    @pytest.fixture
    def closed(self, database: Path) -> Iterator[Path]:
        yield database
        database.parent.chmod(0o755)

    def run(self, command: str, database: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "neardup", *arguments(command, database)],
            cwd=database.parent.parent,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            preexec_fn=obey_permissions,  # no threads here that could hold a lock
            capture_output=True,
            text=True,
            check=False,
        )

    def test_file(self, closed: Path) -> None:
        closed.chmod(0o444)

        done = self.run("report", closed)

        assert done.returncode == 0, done.stderr
        assert URL in done.stdout

    def test_file_and_folder_while_a_crawl_writes(self, closed: Path) -> None:
        crawl = sqlite3.connect(closed, isolation_level=None)
        crawl.execute("BEGIN IMMEDIATE")
        crawl.execute("DELETE FROM duplicate_values")
        closed.chmod(0o444)
        closed.parent.chmod(0o555)

        done = self.run("report", closed)

        crawl.close()
        assert done.returncode == 0, done.stderr
        assert URL in done.stdout

    def test_copy_by_vacuum_in_such_a_folder(self, closed: Path) -> None:
        copy = closed.parent / "copy.db"
        with sqlite3.connect(closed) as connection:
            connection.execute("VACUUM INTO ?", [str(copy)])
        connection.close()
        copy.chmod(0o444)
        closed.parent.chmod(0o555)

        done = self.run("report", copy)

        assert done.returncode == 0, done.stderr
        assert URL in done.stdout


def obey_permissions() -> None:
    """Root may write what nobody may; without this capability (CAP_DAC_OVERRIDE, in what is run from here) it
    may not.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)  # PR_CAPBSET_DROP
