"""The shingles of a part, in a file that waits until it is known what is rare on hosts.

One page follows the other, each a head and plain bytes. Shingles are twenty times as large as rows. Parquet
would gather those of many pages, and copy them several times on their way to the file and back.
"""

from __future__ import annotations

import os
from functools import cached_property
from struct import Struct
from typing import TYPE_CHECKING

import numpy as np

from neardup.collection.unpublished import Unpublished
from neardup.errors import ConfigurationError
from neardup.fingerprint.reader import Reading
from neardup.text import headline as headlines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import BinaryIO

SUFFIX = ".shingles"

_HEAD = Struct("<qQ4I")
"""Id and digest of the text; then the bytes of the host, the headline, the shingles and what is held."""

_BUFFER = 1 << 18


class Waiting(Unpublished):
    """Writes the file of a part, as :class:`neardup.collection.dataset.Table` writes its rows."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.with_suffix(SUFFIX))
        self.rows = 0

    @cached_property
    def _file(self) -> BinaryIO:
        return self._started.open("wb", buffering=_BUFFER)

    def add(self, page_id: int, host: str, reading: Reading) -> None:
        pieces = (
            host.encode(),
            headlines.to_bytes(reading.headline),
            reading.shingles.astype("<u8", copy=False).data,
            reading.holders.astype("<u4").data,
        )
        lengths = (memoryview(piece).nbytes for piece in pieces)
        self._file.write(_HEAD.pack(page_id, reading.text_digest, *lengths))
        for piece in pieces:
            self._file.write(piece)
        self.rows += 1

    def finish(self, note: Mapping[str, object]) -> None:
        """Write what is left; the note is that of the other tables."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


def read(path: Path) -> Iterator[tuple[int, str, Reading]]:
    """Id, host and what else is kept of each page; ConfigurationError if the file is cut off."""
    with path.open("rb", buffering=_BUFFER) as file:
        while head := file.read(_HEAD.size):
            if len(head) == _HEAD.size:
                page_id, digest, *lengths = _HEAD.unpack(head)
                host, title, shingles, holders = (file.read(length) for length in lengths)
            if len(head) < _HEAD.size or len(holders) < lengths[-1]:
                raise ConfigurationError(f"{path} is cut off; build the collection in another folder")
            yield (
                page_id,
                host.decode(),
                Reading(
                    None,
                    None,
                    np.frombuffer(shingles, dtype="<u8").astype(np.uint64, copy=False),
                    np.frombuffer(holders, dtype="<u4").astype(np.int64),
                    0,
                    digest,
                    headlines.from_bytes(title),
                ),
            )
