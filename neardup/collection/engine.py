"""Where the tables of a job are made: the same SQL on DuckDB, in this process, and on a Spark server.

A table is a folder of Parquet files below the folder of the job. A table is written under another name and
renamed when all of it is there. So a job that was interrupted goes on with the first table that is missing,
on whichever engine.
"""

from __future__ import annotations

import importlib
import shutil
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from neardup.errors import ConfigurationError, NeardupError
from neardup.parquet import arrow_module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Kernel = Callable[[Iterator[Any]], Iterator[Any]]
    """Arrow record batches in, record batches out. Which rows come in which batch, and in what order, must
    not matter.
    """

MEMORY = "1200MB"
"""Memory that DuckDB takes before it writes to disk, unless said otherwise."""

_FLUSHED = "1MB"
"""Memory of a statement that DuckDB's allocator gives back at its end. Unless told, it keeps up to 512 MB."""

_BATCH = 1 << 16


class Engine(ABC):
    """Makes the tables of one job in ``folder``, and knows them by their names in SQL.

    ``rows_at_once`` is how many rows a statement should group at a time; None: any number.
    """

    rows_at_once: int | None = None

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    def differing(self, one: str, other: str) -> str:
        """SQL for the number of bits in which two columns of type BIGINT differ."""

    @abstractmethod
    def source(self, name: str, folder: Path) -> None:
        """Know the Parquet files of a folder by a name."""

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def _write(self, query: str, folder: Path) -> None: ...

    @abstractmethod
    def _write_mapped(self, query: str, kernel: Kernel, schema: Any, folder: Path) -> None: ...

    @abstractmethod
    def _fetch(self, query: str) -> Any: ...

    @abstractmethod
    def _failing(self) -> Any:
        """A context in which failures of the engine become errors of neardup."""

    def make(self, name: str, query: str) -> None:
        """Make a table of what a query finds, unless it is there."""
        self._once(name, lambda folder: self._write(query, folder))

    def map(self, name: str, query: str, kernel: Kernel, schema: Any) -> None:
        """Make a table, of this Arrow schema, of what a kernel makes of what a query finds, unless it is
        there.
        """
        self._once(name, lambda folder: self._write_mapped(query, kernel, schema, folder))

    def fetch(self, query: str) -> Any:
        """What a query finds, as an Arrow table; its order is not to be relied on."""
        with self._failing():
            return self._fetch(query)

    def count(self, name: str) -> int:
        """Rows of a table."""
        return int(self.fetch(f"SELECT count(*) AS rows FROM {name}")["rows"][0].as_py())

    def _once(self, name: str, write: Callable[[Path], None]) -> None:
        made = self.folder / name
        with self._failing():
            if not made.exists():
                begun = self.folder / f"{name}.begun"
                shutil.rmtree(begun, ignore_errors=True)
                write(begun)
                begun.rename(made)
            self.source(name, made)


def duckdb_module(needed: str) -> Any:
    """DuckDB. ConfigurationError if it is not installed; ``needed`` begins the message: what needs it."""
    try:
        return importlib.import_module("duckdb")
    except ImportError as exc:
        raise ConfigurationError(f"{needed} DuckDB: pip install 'neardup[offline]'") from exc


class DuckDB(Engine):
    """DuckDB in this process; ``memory`` as DuckDB writes it, such as ``2GB``. What does not fit goes to
    ``folder``.
    """

    rows_at_once = 4_000_000

    def __init__(self, folder: Path, memory: str = MEMORY) -> None:
        super().__init__(folder)
        self._duckdb = duckdb_module("clusters of a collection need")
        arrow_module("pyarrow", folder)
        spilled = folder / "spilled"
        spilled.mkdir(exist_ok=True)
        try:
            self._connection = self._duckdb.connect(
                config={
                    "memory_limit": memory,
                    "temp_directory": str(spilled),
                    "preserve_insertion_order": False,
                    "allocator_bulk_deallocation_flush_threshold": _FLUSHED,
                }
            )
        except self._duckdb.Error as exc:
            raise ConfigurationError(f"DuckDB does not take the memory {memory!r}: {exc}") from exc
        self._connection.execute("SET enable_progress_bar = false")

    def differing(self, one: str, other: str) -> str:
        return f"bit_count(xor({one}, {other}))"

    def source(self, name: str, folder: Path) -> None:
        self._connection.read_parquet(str(folder / "*.parquet")).create_view(name)

    def close(self) -> None:
        self._connection.close()

    def _write(self, query: str, folder: Path) -> None:
        folder.mkdir()
        self._run(lambda: self._connection.sql(query).write_parquet(str(folder / "part.parquet")))

    def _write_mapped(self, query: str, kernel: Kernel, schema: Any, folder: Path) -> None:
        folder.mkdir()
        parquet = arrow_module("pyarrow.parquet", folder)

        def write() -> None:
            found = self._connection.sql(query).to_arrow_reader(_BATCH)
            with parquet.ParquetWriter(folder / "part.parquet", schema) as writer:
                for batch in kernel(found):
                    writer.write_batch(batch)

        self._run(write)

    def _fetch(self, query: str) -> Any:
        return self._run(lambda: self._connection.sql(query).to_arrow_table())

    def _run(self, work: Callable[[], Any]) -> Any:
        """What comes of a statement, in a thread of its own: DuckDB 2.0 does not heed Ctrl-C within one."""
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(work)
            try:
                return running.result()
            except KeyboardInterrupt:
                while not running.done():  # an interrupt that comes while a statement is prepared is missed
                    self._connection.interrupt()
                    wait([running], timeout=0.1)
                raise

    @contextmanager
    def _failing(self) -> Iterator[None]:
        again = "what is done is kept, and the same command goes on from there"
        try:
            yield
        except self._duckdb.OutOfMemoryException as exc:
            raise NeardupError(
                f"{self.folder}: {_first_line(exc)}; give more with --memory: {again}"
            ) from exc
        except (self._duckdb.Error, OSError) as exc:
            raise NeardupError(f"{self.folder}: {_first_line(exc)}; {again}") from exc


def _first_line(exc: BaseException) -> str:
    return str(exc).strip().partition("\n")[0]
