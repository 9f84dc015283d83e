"""A time in which the database takes no rows, and what the log says of it.

The log has a warning when an outage begins, and a line when the outage is over.
"""

from __future__ import annotations

import logging
from time import monotonic, sleep
from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError

from neardup.store.engine import is_conflict

if TYPE_CHECKING:
    from neardup.errors import DatabaseUnavailable

logger = logging.getLogger(__name__)

_FIRST_WAIT_SECONDS = 0.1
_LONGEST_WAIT_SECONDS = 5.0


class Outage:
    """An outage, which begins with the first failure.

    A first failure that is a conflict with another transaction is not announced: the next try usually
    succeeds.
    """

    def __init__(self) -> None:
        self._began = monotonic()
        self._failures = 0
        self._announced = False
        self._wait = _FIRST_WAIT_SECONDS

    @property
    def seconds(self) -> float:
        """How long it has lasted."""
        return monotonic() - self._began

    def failed(self, exc: Exception, problem: DatabaseUnavailable) -> None:
        """The database did not take the rows, for the reason ``exc``, which ``problem`` puts into words."""
        self._failures += 1
        harmless = self._failures == 1 and isinstance(exc, DBAPIError) and is_conflict(exc)
        if not self._announced and not harmless:
            self._announced = True
            logger.warning(
                "neardup: %(problem)s; trying again, with growing waits (further failures are counted, not"
                " logged)",
                {"problem": problem},
            )

    def wait(self) -> None:
        """Wait before the next try, for longer each time."""
        sleep(self._wait)
        self._wait = min(2 * self._wait, _LONGEST_WAIT_SECONDS)

    def end(self) -> None:
        """The database has taken the rows."""
        if self._announced:
            logger.info(
                "neardup: the database takes rows again, after %(seconds).1f s", {"seconds": self.seconds}
            )
