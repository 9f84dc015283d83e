"""A site's own template, learned from its pages: 3-word shingles that stand on more than a share of them
weigh nothing.

Fingerprints and sketches stay those of the whole text, so nothing that is stored changes. What changes is the
resemblance that decides. The shingles of a page in hand, P, are known. So each place of the sketch of P is
known to hold a shingle of P's own or one of the template. The least element of a union of two sets is each of
its elements with the same probability. So with n own places, of which d differ from the bits of the other
page, C,

    q = 1 − 2d/n  estimates  |A ∩ B| / |S(P) ∪ S(C)| · |S(P)| / |A|,

    A and B being what is own in S(P) and S(C).

With r, the resemblance of the whole, the resemblance of A and B is, if the pages have about the same size,

    r' = x / (2 − x),  x = 2q / (1 + r).

Nothing need be known of C but its sketch.

``python -m benchmarks.bench_content`` measured the table, with sketches of 1,024 places and pages in random
order. What is to be found is "same path in another version" among all pairs with r ≥ 0.5. The figures are
average precision, and F1 at r = 0.8, 0.9 and 0.95:

    ============================  ====================================  ======================================
    resemblance of                kafka 3.6 to 3.9, 2,027 pages         LLVM 15 and 16, 2,212 pages
    ============================  ====================================  ======================================
    the whole                     0.952: 0.934, 0.880, 0.599            0.356: 0.076, 0.281, 0.281
    the rest, by subtraction      0.961: 0.913, 0.794, 0.496            0.376: 0.282, 0.342, 0.352
    the rest, by places           0.975: 0.932, 0.880, 0.773            0.898: 0.395, 0.762, 0.881
    ============================  ====================================  ======================================

Subtraction takes the number of the page's template shingles from the intersection, r(|S(P)| + |S(C)|)/(1 +
r), and from the union. Subtraction does so as if C had the same template shingles. C has others where two
versions of a manual stand on one host, each with its own version number in its template. That is also why a
shingle is template from 30 % of the pages on and not from 50 %. For the same reason learning goes on, one
window after the other. With the versions in file order, the first window alone gave 0.42 for LLVM, all
windows 0.67 (in random order 0.91 and 0.90).

r' is less sharp than r, because fewer places decide. The standard deviation of r' was measured at r' = 0.8
and 0.95, by the number of places that are the page's own:

- 1,024 places, which is all: 0.016 and 0.008;
- 255 places: 0.042 and 0.023;
- 128 places: 0.055 and 0.036;
- 64 places: 0.087 and 0.039;
- 31 places: 0.12 and 0.08.

With fewer than :func:`least_places` r decides as it is.

Only pages that are no duplicates should be learned from. What repeats itself is then told from the template,
and :func:`least_places` keeps pages together that are template but for a date. The price: pages that the
template makes alike before it is known stay duplicates.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.errors import ConfigurationError
from neardup.fingerprint import sketch

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    Hashes = npt.NDArray[np.uint64]
    Compact = npt.NDArray[np.uint64]
    Floats = npt.NDArray[np.float64]

SHARE = 0.3
"""Shingles on more than this share of the pages of a window are template."""

WINDOW = 100
"""Pages from which one part of the template is learned; the first pages of a host are compared without."""

LEAST_PLACES = 64
"""The least number of places with shingles of the page's own at which these places decide. The number is for
sketches of up to 1,024 places; in larger sketches the share is the same.

With 32 of 1,024, fewer pages under a menu of 400 words were taken for one another: 984 of LLVM's 2,212
instead of 1,430. But a page that came again and again with two other words was never found any more. That
page became template itself, and the two words were all that was its own.
"""

LEAST_SIZE = 512
"""Places of the smallest sketches that can do without the template: in smaller ones few pages have
``LEAST_PLACES`` of their own.
"""

MOST_HOSTS = 1024
"""Hosts with a template; the one not met for longest is forgotten."""

MOST_SHINGLES = 1 << 16
"""Template shingles of a host; from then on it learns no more."""

MOST_LEARNED = 1 << 12
"""Shingles of a page that are learned from: the first of its text.

With all of them, the average precision above is the same to four digits. The 10 % longest pages have 1,207
shingles and more on Kafka's site, 1,823 on LLVM's, the longest 119,046 and 136,176.
"""

MOST_COUNTED = 1 << 14
"""Shingles of a host that are counted in a window; the rarest of more are forgotten. No more than
``MOST_LEARNED`` / ``SHARE``, 13,653, can become template in one window.
"""

_BATCH = 10
"""Pages that are counted together. A shingle on one of them only is not counted, so that a window does not
hold all its text.
"""

_NONE: Hashes = np.empty(0, dtype=np.uint64)


class _Host:
    """The template of a host, and the counts of the window at hand."""

    __slots__ = ("batch", "counted", "counts", "pages", "template")

    def __init__(
        self,
        template: Hashes = _NONE,
        counted: Hashes = _NONE,
        counts: npt.NDArray[np.int64] | None = None,
        pages: int = 0,
    ) -> None:
        self.template = template
        self.counted = counted
        self.counts = np.empty(0, dtype=np.int64) if counts is None else counts
        self.pages = pages
        self.batch: list[Hashes] = []

    def learn(self, shingles: Hashes) -> None:
        if self.template.size >= MOST_SHINGLES:
            return
        self.batch.append(np.unique(shingles[:MOST_LEARNED]))
        if len(self.batch) < _BATCH:
            return
        found, counts = np.unique(np.concatenate(self.batch), return_counts=True)
        common = counts > 1
        self._count(found[common], counts[common])
        self.batch.clear()
        self.pages += _BATCH
        if self.pages >= WINDOW:
            learned = np.union1d(self.template, self.counted[self.counts > SHARE * self.pages])
            self.template = learned[:MOST_SHINGLES]
            self.counted, self.counts, self.pages = _NONE, np.empty(0, dtype=np.int64), 0

    def _count(self, found: Hashes, counts: npt.NDArray[np.int64]) -> None:
        self.counted, place = np.unique(np.concatenate((self.counted, found)), return_inverse=True)
        both = np.concatenate((self.counts, counts))
        self.counts = np.bincount(place, weights=both, minlength=self.counted.size).astype(np.int64)
        if self.counted.size > MOST_COUNTED:
            most = np.sort(np.argpartition(self.counts, -MOST_COUNTED)[-MOST_COUNTED:])
            self.counted, self.counts = self.counted[most], self.counts[most]


class HostTemplates:
    """What is template on each host.

    With pages of 300 words, a host takes some 50 kB while a window is being counted. Each shingle of the
    template takes 8 bytes. Whatever its pages, a host takes at most 1.1 MB: 0.5 MB of template, 0.3 MB of
    counts, and 0.3 MB of the last pages.
    """

    __slots__ = ("_hosts",)

    def __init__(self) -> None:
        self._hosts: OrderedDict[str, _Host] = OrderedDict()

    def __len__(self) -> int:
        return len(self._hosts)

    def learn(self, host: str, shingles: Hashes) -> None:
        """Learn from a page that is no duplicate; ``shingles``: those of its text, shape (n,), in their order
        and repeated at will.
        """
        if host not in self._hosts:
            if len(self._hosts) >= MOST_HOSTS:
                self._hosts.popitem(last=False)
            self._hosts[host] = _Host()
        self._hosts.move_to_end(host)
        self._hosts[host].learn(shingles)

    def template(self, host: str) -> Hashes:
        """Shingles of the template that are known by now: sorted, distinct, shape (t,)."""
        known = self._hosts.get(host)
        return _NONE if known is None else known.template

    def own_places(self, host: str, shingles: Hashes, full_sketch: Hashes) -> Compact | None:
        """Where the sketch of a page holds a shingle that is not template, as the bits of a compact sketch,
        shape (size // 64,).

        ``full_sketch`` is ``sketch.minwise(shingles, size)``. None if no template of the page is known.
        """
        template = self.template(host)
        if not template.size:
            return None
        # Not isin, which would sort the page as well.
        place = np.minimum(np.searchsorted(template, shingles), template.size - 1)
        own = shingles[template[place] != shingles]
        if own.size == shingles.size:
            return None
        if not own.size:
            return np.zeros(full_sketch.size // 64, dtype=np.uint64)
        # The least of all is the least of its own exactly where one of its own is the least.
        return sketch.compact((sketch.minwise(own, full_sketch.size) == full_sketch).astype(np.uint64))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All that is known but for the last few pages of each host, for a snapshot."""
        hosts = list(self._hosts.values())
        names = [name.encode("utf-8", "surrogatepass") for name in self._hosts]
        return {
            "names": np.frombuffer(b"".join(names), dtype=np.uint8),
            "name_sizes": np.array([len(name) for name in names], dtype=np.int64),
            "pages": np.array([host.pages for host in hosts], dtype=np.int64),
            "templates": np.concatenate([_NONE, *(host.template for host in hosts)]),
            "template_sizes": np.array([host.template.size for host in hosts], dtype=np.int64),
            "counted": np.concatenate([_NONE, *(host.counted for host in hosts)]),
            "counts": np.concatenate([np.empty(0, np.int64), *(host.counts for host in hosts)]),
            "counted_sizes": np.array([host.counted.size for host in hosts], dtype=np.int64),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> HostTemplates:
        """What :meth:`arrays` gave. Raises ValueError if arrays are missing or do not fit together."""
        made = cls()
        for name, sample in made.arrays().items():
            if name not in arrays:
                raise ValueError(f"the templates lack the array {name!r}")
            if arrays[name].dtype != sample.dtype or arrays[name].ndim != 1:
                raise ValueError(f"array {name} of the templates: {arrays[name].dtype} {arrays[name].shape}")
        names = _split(arrays["names"], arrays["name_sizes"])
        templates = _split(arrays["templates"], arrays["template_sizes"])
        counted = _split(arrays["counted"], arrays["counted_sizes"])
        counts = _split(arrays["counts"], arrays["counted_sizes"])
        pages = arrays["pages"].tolist()
        for host, *of_host in zip(names, templates, counted, counts, pages, strict=True):
            made._hosts[host.tobytes().decode("utf-8", "surrogatepass")] = _Host(*of_host)
        return made


def check_size(size: int) -> int:
    """The given number of places, if sketches of so many can do without the template; else
    ConfigurationError.
    """
    if size < LEAST_SIZE:
        raise ConfigurationError(
            f"sketch_size must be at least {LEAST_SIZE} with content 'learned', not {size}: few places of"
            " smaller sketches are no template"
        )
    return size


def least_places(size: int) -> int:
    """Places of a sketch of ``size`` with shingles of the page's own, from which on these decide."""
    return max(LEAST_PLACES, LEAST_PLACES * size // sketch.SIZE)


def adjusted(
    resemblances: Floats, stored: npt.NDArray[np.uint64], compact: Compact, own_places: Compact | None
) -> Floats:
    """Resemblances r' of what is no template, from those of the whole, r; shapes (n,), each 0 to 1.

    - ``stored``: compact sketches of the pages compared with, shape (n, size // 64).
    - ``compact``: the compact sketch of the page in hand.
    - ``own_places``: the page's :meth:`HostTemplates.own_places`.

    Where too little is the page's own, or both pages are nothing but template, r' is r.
    """
    if own_places is None:
        return resemblances
    own = int(np.bitwise_count(own_places).sum())
    if own < least_places(compact.size * 64):
        return resemblances
    differing = np.bitwise_count((stored ^ compact) & own_places).sum(axis=1, dtype=np.int64)
    agreeing = np.maximum(0.0, 1.0 - 2.0 * differing / own)
    x = np.minimum(1.0, 2.0 * agreeing / (1.0 + resemblances))
    return np.asarray(x / (2.0 - x), dtype=np.float64)


def _split(joined: npt.NDArray[Any], sizes: npt.NDArray[np.int64]) -> list[npt.NDArray[Any]]:
    ends = np.cumsum(sizes)
    if (sizes < 0).any() or (ends[-1] if ends.size else 0) != joined.size:
        raise ValueError(f"{joined.size} elements cannot be of the sizes {sizes.tolist()[:10]}")
    return np.split(joined, ends[:-1]) if ends.size else []
