"""Inverse document frequencies of words, from a table that never changes once it is learned.

A fingerprint weighted by idf can only be compared with others weighted by the same idf. So the frequencies
are not those of the pages a crawl has seen so far. The frequencies are those of a collection learned from
once (``neardup learn-idf``) and kept in a file. A word in df of N pages has idf = ln(1 + (N − df + ½) / (df +
½)). This is the weight of Robertson & Spärck Jones, made positive by the 1. A word not in the table has df =
0.

The file is an ``.npz`` without pickled objects:

- ``hashes``: uint64, ascending;
- ``frequencies``: uint32;
- ``meta``: JSON with format, name, pages, modifiers, hash of words, and digest of all this.

No table comes with neardup. A table learned from the site, or from sites like it, says more than a general
one. No general table was at hand with a licence that lets it be passed on.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import zipfile
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from neardup.errors import ConfigurationError

if TYPE_CHECKING:
    import numpy.typing as npt

    Hashes: TypeAlias = npt.NDArray[np.uint64]
    Counts: TypeAlias = npt.NDArray[np.uint32]

_FORMAT = 1
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}", re.ASCII)
_MOST_PAGES = (1 << 32) - 1
"""As many as a frequency can count."""
_MERGE_AT = 1 << 22
"""Words of pages that wait to be counted; 32 MB."""


@dataclass(frozen=True, eq=False)
class Frequencies:
    """In how many of ``pages`` pages each word stands.

    ``hashes`` (distinct, ascending) and ``frequencies`` have the shape (n,). ``modifiers`` are those of
    :mod:`neardup.text.features` by which words were read, ``hashed_by`` names their hash. Raises
    ConfigurationError if any of this is not so.
    """

    name: str
    pages: int
    modifiers: str
    hashed_by: str
    hashes: Hashes
    frequencies: Counts

    def __post_init__(self) -> None:
        check_name(self.name)
        if not isinstance(self.modifiers, str) or not isinstance(self.hashed_by, str):
            raise ConfigurationError("the modifiers and the hash must be texts")
        if self.pages > _MOST_PAGES:
            raise ConfigurationError(f"there can be {_MOST_PAGES} pages at most")
        ordered = self.hashes.ndim == 1 and bool((self.hashes[1:] > self.hashes[:-1]).all())
        if self.hashes.dtype != np.uint64 or self.frequencies.dtype != np.uint32 or not ordered:
            raise ConfigurationError("hashes must be uint64, distinct and ascending, frequencies uint32")
        if self.hashes.size == 0 or self.frequencies.shape != self.hashes.shape:
            raise ConfigurationError("there must be words, and a frequency for each")
        if not 1 <= int(self.frequencies.min()) <= int(self.frequencies.max()) <= self.pages:
            raise ConfigurationError(f"frequencies must be from 1 to the {self.pages} pages")

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that the weights depend on."""
        digest = hashlib.sha256(json.dumps([self.pages, self.modifiers, self.hashed_by]).encode())
        digest.update(self.hashes.astype("<u8").tobytes())
        digest.update(self.frequencies.astype("<u4").tobytes())
        return digest.hexdigest()

    @property
    def identity(self) -> str:
        """The name, and enough of the digest to tell it from other tables of this name."""
        return f"{self.name}@{self.digest[:8]}"

    def weights(self, hashes: Hashes) -> npt.NDArray[np.float64]:
        """Their idf, of words given by their hashes, shape (m,); each above 0."""
        places = np.minimum(np.searchsorted(self.hashes, hashes), self.hashes.size - 1)
        found = np.where(self.hashes[places] == hashes, self.frequencies[places], 0).astype(np.float64)
        return np.log1p((self.pages - found + 0.5) / (found + 0.5))

    def save(self, path: Path) -> None:
        """Write the file, whole or not at all; ConfigurationError if that cannot be done."""
        meta = {
            "format": _FORMAT,
            "name": self.name,
            "pages": self.pages,
            "modifiers": self.modifiers,
            "hashed_by": self.hashed_by,
            "digest": self.digest,
        }
        started = path.with_name(f"{path.name}.{os.getpid()}.writing")
        try:
            with started.open("wb") as out:
                np.savez(
                    out,
                    meta=np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8),
                    hashes=self.hashes,
                    frequencies=self.frequencies,
                )
                out.flush()
                os.fsync(out.fileno())
            started.replace(path)
        except OSError as exc:
            raise ConfigurationError(f"{path} cannot be written: {exc.strerror or exc}") from exc
        finally:
            started.unlink(missing_ok=True)


def check_name(name: str) -> str:
    """The given name, if a table can have it; else ConfigurationError."""
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"a table cannot be named {name!r}: up to 32 letters and digits of ASCII, dots, hyphens and"
            " underscores"
        )
    return name


def load(file: str | os.PathLike[str]) -> Frequencies:
    """The table in a file; ConfigurationError says why it cannot be used."""
    path = Path(file).expanduser()
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as data:
            meta: dict[str, Any] = json.loads(data["meta"].tobytes())
            hashes, frequencies = data["hashes"], data["frequencies"]
        if meta["format"] != _FORMAT:
            raise ConfigurationError(f"has format {meta['format']}, and this neardup reads format {_FORMAT}")
        table = Frequencies(
            meta["name"], int(meta["pages"]), meta["modifiers"], meta["hashed_by"], hashes, frequencies
        )
        if table.digest != meta["digest"]:
            raise ConfigurationError("its digest does not fit its contents")
    except ConfigurationError as exc:
        raise ConfigurationError(f"{path}: the table of frequencies is damaged or foreign: {exc}") from exc
    except zipfile.BadZipFile as exc:
        raise ConfigurationError(f"{path} is damaged, or no table of frequencies: {exc}") from exc
    except OSError as exc:
        raise ConfigurationError(
            f"{path}: no table of frequencies can be read there ({exc.strerror or exc}); neardup learn-idf"
            " makes them"
        ) from exc
    except (
        EOFError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, OverflowError, MemoryError,
        zlib.error,
    ) as exc:  # fmt: skip
        raise ConfigurationError(
            f"{path} is not a table of frequencies as neardup learn-idf makes them"
        ) from exc
    return table


class Learner:
    """Counts in how many pages each word stands; pages with the same words in the same order count once."""

    def __init__(self) -> None:
        self.pages = 0
        self._seen: set[bytes] = set()
        self._waiting: list[Hashes] = []
        self._waiting_words = 0
        self._hashes: Hashes = np.empty(0, dtype=np.uint64)
        self._frequencies: Counts = np.empty(0, dtype=np.uint32)

    def add(self, in_order: Hashes, distinct: Hashes) -> bool:
        """Count a page by the hashes of its words; False if there are none or such a page has been counted
        before.
        """
        key = hashlib.blake2b(in_order.tobytes(), digest_size=16).digest()
        if not distinct.size or key in self._seen:
            return False
        self._seen.add(key)
        self.pages += 1
        self._waiting.append(distinct)
        self._waiting_words += distinct.size
        if self._waiting_words >= _MERGE_AT:
            self._merge()
        return True

    def _merge(self) -> None:
        hashes, counts = np.unique(np.concatenate(self._waiting), return_counts=True)
        self._waiting, self._waiting_words = [], 0
        merged, places = np.unique(np.concatenate((self._hashes, hashes)), return_inverse=True)
        frequencies = np.zeros(merged.size, dtype=np.uint32)
        # Neither side has a word twice, so that each addition meets every place once at most.
        frequencies[places[: self._hashes.size]] += self._frequencies
        frequencies[places[self._hashes.size :]] += counts.astype(np.uint32)
        self._hashes, self._frequencies = merged, frequencies

    def frequencies(self, name: str, *, modifiers: str, hashed_by: str, min_pages: int) -> Frequencies:
        """The table of words in at least ``min_pages`` of the pages so far; ConfigurationError if there are
        none.
        """
        if self._waiting:
            self._merge()
        kept = self._frequencies >= min_pages
        if not kept.any():
            raise ConfigurationError(
                f"no word stands in {min_pages} of the {self.pages} different pages that have words; give"
                " more pages"
            )
        return Frequencies(
            name, self.pages, modifiers, hashed_by, self._hashes[kept], self._frequencies[kept]
        )
