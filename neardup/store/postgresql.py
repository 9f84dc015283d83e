"""A connection to PostgreSQL that does not wait for ever: psycopg has no such option, and libpq none that
would do.

TCP keepalives and ``tcp_user_timeout`` tell only whether the other machine's kernel answers. A server that
hangs, or a balancer in front of one that is gone, acknowledges every byte and never says anything.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg

if TYPE_CHECKING:
    from collections.abc import Generator

_Result = TypeVar("_Result")


class LimitedConnection(psycopg.Connection[Any]):
    """Closes itself and raises OperationalError when the server has been silent for ``answer_within`` seconds
    in an answer.
    """

    answer_within: float | None = None

    def wait(self, gen: Generator[Any, Any, _Result], *args: Any, **options: Any) -> _Result:
        """What every statement of psycopg waits in."""
        if self.answer_within is None:
            return super().wait(gen, *args, **options)
        return super().wait(self._limited(gen, self.answer_within), *args, **options)

    def _limited(self, gen: Generator[Any, Any, _Result], seconds: float) -> Generator[Any, Any, _Result]:
        """Passes on what psycopg tells its generators: whether the socket is ready, or, ten times a second,
        that it is not.
        """
        heard = monotonic()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready:
                    heard = monotonic()
                elif monotonic() - heard > seconds:
                    self.pgconn.finish()
                    silence = f"the server has not answered for {seconds:g} s"
                    raise psycopg.OperationalError(silence) from TimeoutError(silence)
                wanted = gen.send(ready)
        except StopIteration as end:
            result: _Result = end.value
            return result
