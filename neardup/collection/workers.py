"""Processes that do tasks, one a core.

They end at once when the process that started them does, whatever has ended it. What is done is in files or
in the database by then.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from contextlib import closing, contextmanager
from itertools import islice
from multiprocessing.connection import wait
from threading import Thread
from typing import TYPE_CHECKING, Any, Protocol

from neardup.errors import NeardupError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from multiprocessing.connection import Connection


_TOLD, _DONE, _ERROR = "told", "done", "error"

_START = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
"""How processes are started: the server of forks has no threads, and imports what is preloaded once."""


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
    waiting = iter(tasks)
    running: dict[Any, tuple[Process, Any]] = {}
    started: list[Process] = []
    try:
        for task in islice(waiting, processes):
            process = Process(make)
            started.append(process)
            with _named(task):
                process.send(task)
            running[process.connection] = process, task
        while running:
            for connection in wait(list(running)):
                process, task = running[connection]
                with _named(task):
                    is_done, value = process.received()
                if not is_done:
                    hear(value)
                    continue
                del running[connection]
                for task in islice(waiting, 1):
                    with _named(task):
                        process.send(task)
                    running[connection] = process, task
                yield value
    finally:
        for process in started:  # all end at once, and none waits for another
            process.terminate()
        for process in started:
            process.end()


@contextmanager
def _named(task: Any) -> Iterator[None]:
    """Name the task of a process that has ended."""
    try:
        yield
    except EOFError as exc:
        raise NeardupError(
            f"a process has ended at {task}, perhaps for want of memory; what was done is kept"
        ) from exc


class Process:
    """A process that does tasks, one after the other: they are sent by its ``connection``."""

    def __init__(self, make: Callable[[], Work]) -> None:
        # None is a copy of this process: a copy would share its threads' locks and its database connections.
        context: Any = multiprocessing.get_context(_START)
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, make), daemon=True)
        self._process.start()
        theirs.close()

    def send(self, task: Any) -> None:
        """Give the process a task. EOFError: the process has ended."""
        try:
            self.connection.send(task)
        except OSError as exc:
            raise EOFError from exc

    def received(self) -> tuple[bool, Any]:
        """Whether a task is done, and what it returns, or else what it tells.

        NeardupError: that of the task. EOFError: the process has ended.
        """
        try:
            kind, value = self.connection.recv()
        except OSError as exc:
            raise EOFError from exc
        if kind == _ERROR:
            raise value
        return kind == _DONE, value

    def terminate(self) -> None:
        """Have the process end, whatever it does; :meth:`received` says when it has."""
        self._process.terminate()

    def end(self) -> None:
        """End the process, and wait for its end."""
        self.terminate()
        self._process.join()
        self.connection.close()


def preload(modules: list[str]) -> None:
    """Have the server of forks, where there is one and it does not run yet, import modules once for all."""
    if _START == "forkserver":
        multiprocessing.set_forkserver_preload(modules)


def _serve(connection: Connection, make: Callable[[], Work]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the one who started us ends us
    Thread(target=_end_with_the_one_who_started_us, daemon=True).start()
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


def _end_with_the_one_who_started_us() -> None:
    """A task that computes for minutes, or waits for a database, would not learn of the end."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
