"""Processes that do tasks, one a core.

They end when the process that started them does, whatever has ended it: what is done is in files by then.
"""

from __future__ import annotations

import multiprocessing
import signal
from contextlib import closing
from itertools import islice
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Protocol, cast

from neardup.errors import NeardupError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from multiprocessing.connection import Connection


_TOLD, _DONE, _ERROR = "told", "done", "error"


class Work(Protocol):
    """What a process does with tasks, one after the other."""

    def __call__(self, task: Any, tell: Callable[[Any], None]) -> Any:
        """Do a task; ``tell`` takes what is told before the task is done."""

    def close(self) -> None:
        """No task is left."""


def run(
    make: Callable[[], Work], tasks: Iterable[Any], processes: int, hear: Callable[[Any], None]
) -> Iterator[Any]:
    """Do tasks in any order; yields what they return. ``hear`` gets what they tell before.

    A NeardupError of a task is raised here, and stops all. If there is to be one process, it is this one.
    """
    if processes == 1:
        with closing(make()) as work:
            for task in tasks:
                yield work(task, hear)
        return
    # A new interpreter each: a copy of this one would share its threads' locks and its database connections.
    context = multiprocessing.get_context("spawn")
    waiting = iter(tasks)
    running: dict[Any, Any] = {}
    started: list[Any] = []
    try:
        for task in islice(waiting, processes):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, make), daemon=True)
            process.start()
            started.append(process)
            theirs.close()
            ours.send(task)
            running[ours] = task
        while running:
            for connection in cast("list[Connection]", wait(list(running))):
                is_done, value = _received(connection, running)
                if not is_done:
                    hear(value)
                    continue
                del running[connection]
                for task in islice(waiting, 1):
                    connection.send(task)
                    running[connection] = task
                yield value
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.join()


def _received(connection: Any, running: dict[Any, Any]) -> tuple[bool, Any]:
    try:
        kind, value = connection.recv()
    except (EOFError, OSError) as exc:
        raise NeardupError(
            f"a process has ended at {running[connection]}, perhaps for want of memory; what was done is kept"
        ) from exc
    if kind == _ERROR:
        raise value
    return kind == _DONE, value


def _serve(connection: Connection, make: Callable[[], Work]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the one who started us ends us
    work = make()
    try:
        while True:
            task = connection.recv()
            try:
                answer = (_DONE, work(task, lambda told: connection.send((_TOLD, told))))
            except NeardupError as exc:
                answer = (_ERROR, exc)
            connection.send(answer)
    except (EOFError, OSError):
        return  # whoever started us is gone
