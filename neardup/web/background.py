"""Work that takes minutes, in a process of its own: views have the processor and Python's lock to themselves.

The memory that the work takes is free again when the process ends.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from neardup.collection import workers
from neardup.errors import NeardupError

if TYPE_CHECKING:
    from collections.abc import Callable

    Tell = Callable[[Any], None]

_NICE = 5
"""Views come first where a processor is wanted by both."""

_MODULES = ["neardup.web.counting", "neardup.web.trials"]


def prepare() -> None:
    """Have processes start within milliseconds, not a second, where the system can copy one."""
    workers.preload(_MODULES)
    Task("warming up", _nothing, lambda _: None, lambda *_: None)


class Task:
    """Work that has been started. It can be waited for, and stopped.

    ``work`` can be pickled. It is called with what takes what it tells; ``hear`` gets this here. ``ended``
    gets what the work returns, or else why it failed. It is not called for work that was stopped. Both are
    called in a thread.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[Tell], Any],
        hear: Callable[[Any], None],
        ended: Callable[[Any, NeardupError | None], None],
    ) -> None:
        self._lock = Lock()
        self._process: workers.Process | None = None
        self._stopped = False
        self._name = name
        self._thread = Thread(target=self._run, args=(work, hear, ended), daemon=True, name=f"neardup {name}")
        self._thread.start()

    def wait(self, seconds: float | None = None) -> None:
        """Until the work has ended, or for so long."""
        self._thread.join(seconds)

    def stop(self) -> None:
        """End the work, whatever it does, and wait for its end."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.terminate()
        self.wait()

    def _run(
        self,
        work: Callable[[Tell], Any],
        hear: Callable[[Any], None],
        ended: Callable[[Any, NeardupError | None], None],
    ) -> None:
        process = workers.Process(partial(_Yielding, work))
        with self._lock:
            self._process = process
            if self._stopped:
                process.terminate()
        returned, failure = None, None
        try:
            process.send(None)
            is_done = False
            while not is_done:
                is_done, returned = process.received()
                if not is_done:
                    hear(returned)
        except NeardupError as exc:
            failure = exc
        except (EOFError, OSError):
            failure = NeardupError(f"{self._name} has ended, perhaps for want of memory")
        with self._lock:
            self._process = None
            is_wanted = not self._stopped
        process.end()
        if is_wanted:
            ended(returned, failure)


@dataclass(frozen=True, slots=True)
class _Yielding:
    """Does one piece of work, after all others that want the processor."""

    work: Callable[[Tell], Any]

    def __call__(self, task: None, tell: Tell) -> Any:
        if hasattr(os, "nice"):
            os.nice(_NICE)
        return self.work(tell)

    def close(self) -> None:
        pass


def _nothing(tell: Tell) -> None:
    pass
