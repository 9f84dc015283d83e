"""Spark as an engine, by Spark Connect: the server makes the tables, this process says which.

The server and this process must see the folder of the collection under the same path. The Python of the
server's workers must have neardup, whose kernels they run.
"""

from __future__ import annotations

import importlib
import logging
import re
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from neardup.collection.engine import Engine
from neardup.errors import ConfigurationError, NeardupError
from neardup.parquet import arrow_module

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from neardup.collection.engine import Kernel


_DETAILS = re.compile(r'details = "(.*)"')

_RETRIES = 4
"""How often a request is tried again, in 4 s; PySpark itself would wait for a server that is gone for ten
minutes.
"""


class Spark(Engine):
    """The Spark Connect server of a URL, ``sc://HOST[:PORT]``."""

    def __init__(self, folder: Path, remote: str) -> None:
        super().__init__(folder)
        if not remote.startswith("sc://"):
            raise ConfigurationError(
                f"--remote must be the URL of a Spark Connect server, sc://HOST, not {remote!r}"
            )
        self._remote = remote
        try:
            sessions = importlib.import_module("pyspark.sql.connect.session")
            retries = importlib.import_module("pyspark.sql.connect.client.retries")
            self._errors = importlib.import_module("pyspark.errors")
            self._grpc = importlib.import_module("grpc")
        except ImportError as exc:
            raise ConfigurationError("--engine spark needs PySpark: pip install 'neardup[spark]'") from exc
        # PySpark logs a traceback of its own for each failure that it raises, and warns of it as well.
        warnings.filterwarnings("ignore", module=r"pyspark\.")
        logging.getLogger("pyspark.sql.connect.logging").setLevel(logging.CRITICAL)
        with self._failing():
            self._session = sessions.SparkSession.builder.remote(remote).create()
            self._session.client.set_retry_policies([retries.DefaultPolicy(max_retries=_RETRIES)])

    def differing(self, one: str, other: str) -> str:
        return f"bit_count({one} ^ {other})"

    def source(self, name: str, folder: Path) -> None:
        with self._failing():
            self._session.read.parquet(str(folder.resolve())).createOrReplaceTempView(name)

    def close(self) -> None:
        # A server that is gone needs no goodbye.
        try:
            self._session.stop()
        except (self._errors.PySparkException, self._grpc.RpcError):
            return

    def _write(self, query: str, folder: Path) -> None:
        self._write_frame(self._session.sql(query), folder)

    def _write_mapped(self, query: str, kernel: Kernel, schema: Any, folder: Path) -> None:
        types = importlib.import_module("pyspark.sql.pandas.types")
        self._write_frame(
            self._session.sql(query).mapInArrow(kernel, types.from_arrow_schema(schema)), folder
        )

    def _write_frame(self, frame: Any, folder: Path) -> None:
        frame.write.mode("overwrite").parquet(str(folder.resolve()))
        if not any(folder.glob("*.parquet")):  # Sail writes no file where there is no row
            folder.mkdir(exist_ok=True)
            parquet = arrow_module("pyarrow.parquet", folder)
            parquet.write_table(frame.limit(0).toArrow(), folder / "part.parquet")

    def _fetch(self, query: str) -> Any:
        return self._session.sql(query).toArrow()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except (self._errors.PySparkException, self._grpc.RpcError, OSError) as exc:
            told = str(exc).strip()
            # PySpark gives failures of the connection as they are printed, over many lines.
            details = _DETAILS.search(told)
            reason = details[1] if details else told.partition("\n")[0]
            raise NeardupError(
                f"the Spark server {self._remote} failed or is gone: {reason}; what is done is kept, and the"
                " same command goes on from there"
            ) from exc
