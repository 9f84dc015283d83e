"""Clusters of a collection on servers of Spark Connect: PySpark's own, and Sail as another dialect."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from neardup.cli.main import main
from neardup.collection import clusters
from neardup.collection.dataset import open_collection
from neardup.collection.spark import Spark
from tests.support.clustered import CHOICE, expected, hosted, page_rows, write_collection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.clustered import Row

pytestmark = pytest.mark.slow

_START_SECONDS = 120
_PROGRAMS = Path(sys.executable).parent
_SERVERS = {
    "spark": [
        "spark-submit", "--master", "local[2]",
        "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
        "--conf", "spark.connect.grpc.binding.address=127.0.0.1",
        "--conf", "spark.connect.grpc.binding.port={port}",
        "--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=1",
        # Of some hundred rows, compiling queries would take most of the time.
        "--conf", "spark.sql.codegen.wholeStage=false", "--conf", "spark.sql.codegen.factoryMode=NO_CODEGEN",
        "--driver-java-options", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", "spark-internal",
    ],
    "sail": ["sail", "spark", "server", "--ip", "127.0.0.1", "--port", "{port}"],
}  # fmt: skip


@contextmanager
def server(name: str, folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A server of the kind in a process group of its own; its URL and its process."""
    pytest.importorskip("pyspark")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program, *arguments = (part.format(port=port) for part in _SERVERS[name])
    if not (_PROGRAMS / program).exists():
        pytest.skip(f"no {program}")
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [str(_PROGRAMS / program), *arguments],
            cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
        try:
            _wait(process, port, folder / "server.log")
            yield f"sc://127.0.0.1:{port}", process
        finally:
            _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError(log.read_text())


def run(folder: Path, url: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "neardup", "collection", "clusters", str(folder), "--engine", "spark"]
    return subprocess.run([*command, "--remote", url], capture_output=True, text=True, check=False)


def run_within_a_scope(folder: Path, url: str, choice: clusters.Choice) -> None:
    collection = open_collection(folder)
    with closing(Spark(clusters.job_folder(collection, choice), url)) as engine:
        clusters.write(clusters.find(collection, engine, choice), collection)


def write_expected(folder: Path, rows: list[Row], choice: clusters.Choice) -> None:
    (folder / "clusters").mkdir()
    clusters.write(expected(rows, choice), open_collection(folder))


@pytest.mark.parametrize("name", _SERVERS)
def test_result_is_that_of_plain_python_and_duckdb(name: str, tmp_path: Path) -> None:
    """Of all pages, and within a scope; one server serves both, since its start takes as long as a job."""
    rows = page_rows()
    for folder in ("c", "duckdb", "oracle"):
        write_collection(tmp_path / folder, rows, files=2)
    of_hosts, within = hosted(rows), clusters.Choice(CHOICE.rule, scope="domain")
    for folder in ("scope", "scope-oracle"):
        write_collection(tmp_path / folder, of_hosts)
    with server(name, tmp_path) as (url, process):
        done = run(tmp_path / "c", url)
        assert done.returncode == 0, done.stderr
        run_within_a_scope(tmp_path / "scope", url, within)

        # Stages that are there are not made again, so this run only begins before the server is gone.
        (tmp_path / "c" / "clusters" / "relations.parquet").rename(tmp_path / "relations.parquet")
        _kill(process)
        gone = run(tmp_path / "c", url)

    assert gone.returncode == 1
    assert f"the Spark server {url} failed or is gone" in gone.stderr
    assert "Traceback" not in gone.stderr
    (tmp_path / "relations.parquet").rename(tmp_path / "c" / "clusters" / "relations.parquet")
    assert main(["collection", "clusters", str(tmp_path / "duckdb")]) == 0
    write_expected(tmp_path / "oracle", rows, CHOICE)
    write_expected(tmp_path / "scope-oracle", of_hosts, within)
    for result in ("relations.parquet", "clusters.parquet"):
        made = {
            folder: (tmp_path / folder / "clusters" / result).read_bytes()
            for folder in ("c", "duckdb", "oracle", "scope", "scope-oracle")
        }
        assert made["c"] == made["duckdb"] == made["oracle"]
        assert made["scope"] == made["scope-oracle"]
        assert made["scope"] != made["oracle"]
