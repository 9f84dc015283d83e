"""PostgreSQL and MariaDB servers of a test's own, to be killed, started again, and put on a disk that fills
up.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from tests.support.faults import HANG_SECONDS, Fault, small_disk

if TYPE_CHECKING:
    from collections.abc import Iterator

_FOLDERS = [*map(str, Path("/usr/lib/postgresql").glob("*/bin")), "/usr/sbin", "/usr/local/sbin"]
"""Where the programs of servers are on Debian and its like; on other systems they are on the path."""

_USERS = {"postgresql": "postgres", "mysql": "mysql"}
"""Who root runs a server as."""


_DISK_MEGABYTES = 96
"""What a fresh server takes, and some more."""


class Server:
    """A server with one database and its data in a folder; its log is beside them."""

    def __init__(self, backend: str, folder: Path) -> None:
        self.backend = backend
        self.starts = 0
        self._data = folder / "data"
        self._log = folder / "log.txt"
        self._socket = folder / "socket"
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        root = sa.URL.create(
            "postgresql+psycopg", "postgres", host="127.0.0.1", port=port, database="postgres"
        )
        if backend == "mysql":
            root = sa.URL.create("mysql+pymysql", "root", host="127.0.0.1", port=port, database="mysql")
        self._root = root
        self.url = root.set(database="neardup").render_as_string(hide_password=False)
        self._process: subprocess.Popen[bytes] | None = None
        self._prepare(folder)

    def start(self) -> None:
        """Start it, unless it runs; returns when it takes connections."""
        deadline = time.monotonic() + HANG_SECONDS
        while not self._answers():
            assert time.monotonic() < deadline, self._log.read_text()
            # What a killed server leaves behind may keep the next one from starting for a moment.
            if self._process is None or self._process.poll() is not None:
                self.starts += 1
                self._process = self._run(*self._command())
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End it at once: SIGKILL, or, of PostgreSQL, SIGQUIT, as ``pg_ctl stop -m immediate`` does."""
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait()

    def execute(self, statement: str) -> None:
        engine = sa.create_engine(self._root, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
        with engine.connect() as connection:
            connection.execute(sa.text(statement))

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def _prepare(self, folder: Path) -> None:
        if os.geteuid() == 0:
            try:
                shutil.chown(folder, _USERS[self.backend])
            except LookupError as exc:
                _unable(f"root cannot run {self.backend}: {exc}")
        if self.backend == "postgresql":
            make = [_program("initdb"), "-D", str(self._data), "-A", "trust", "-U", "postgres", "--no-sync"]
        else:
            make = [
                _program("mariadb-install-db"), "--no-defaults", f"--datadir={self._data}", "--skip-test-db",
                "--auth-root-authentication-method=normal", "--innodb-log-file-size=8M",
            ]  # fmt: skip
        assert self._run(*make).wait() == 0, self.log
        self.start()
        self.execute("CREATE DATABASE neardup")

    def _command(self) -> list[str]:
        if self.backend == "postgresql":
            return [
                _program("postgres"), "-D", str(self._data), "-p", str(self._root.port),
                "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
            ]  # fmt: skip
        return [
            _program("mariadbd"), "--no-defaults", f"--datadir={self._data}", f"--port={self._root.port}",
            "--bind-address=127.0.0.1", f"--socket={self._socket}", "--innodb-log-file-size=8M",
        ]  # fmt: skip

    def _run(self, *command: str) -> subprocess.Popen[bytes]:
        user = _USERS[self.backend] if os.geteuid() == 0 else None
        group = None if user is None else pwd.getpwnam(user).pw_gid
        with self._log.open("ab") as log:
            return subprocess.Popen(
                command, cwd="/", user=user, group=group, stdout=log, stderr=log, start_new_session=True
            )

    def _answers(self) -> bool:
        engine = sa.create_engine(self._root, poolclass=sa.NullPool)
        try:
            engine.connect().close()
        except sa.exc.DBAPIError:
            return False
        return True


@contextmanager
def own_server(backend: str, folder: Path | None = None) -> Iterator[Server]:
    """A server that runs, by default in a folder of its own; the test is skipped where its programs are not
    installed.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as other:
        server = Server(backend, folder or Path(other))
        try:
            yield server
        finally:
            server.stop(signal.SIGQUIT if backend == "postgresql" else signal.SIGKILL)


@contextmanager
def full_disk(backend: str, seconds: float = 2.0, *, log_too: bool = False) -> Iterator[tuple[Server, Fault]]:
    """A server on a small disk, and the fault that the disk is full for a while.

    A server that the full disk ends is started again.

    ``log_too``: whether PostgreSQL's log happens to be at the end of a file then, and the next one must be
    made.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with small_disk(folder, _DISK_MEGABYTES) as disk, own_server(backend, folder) as server:

            def begin() -> None:
                disk.fill()
                if log_too:
                    server.execute("SELECT pg_switch_wal()")

            def end() -> None:
                disk.empty()
                server.start()

            yield server, Fault(begin, end, seconds=seconds, until_noticed=True)


def _program(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path=os.pathsep.join(_FOLDERS))
    if found is None:
        _unable(f"{name} is not installed")
    assert found is not None
    return found


def _unable(reason: str) -> None:
    if os.environ.get("NEARDUP_TEST_SERVERS") == "required":
        pytest.fail(reason)
    pytest.skip(reason)
