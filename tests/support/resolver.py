"""A resolver of names whose answers a test gives."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest


class Names:
    """What the system's resolver answers for a name, one answer after the other; the last stays."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: dict[str, list[str]] = {}
        self.asked: list[str] = []
        self._resolve = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self)
        monkeypatch.setattr(socket, "gethostbyname", lambda host: self(host, 0, socket.AF_INET)[0][4][0])

    def __call__(self, host: Any, port: Any, *rest: Any, **more: Any) -> Any:
        name = str(host.decode() if isinstance(host, bytes) else host).lower()
        answers = self.answers.get(name)
        if answers is None:
            return self._resolve(host, port, *rest, **more)
        self.asked.append(name)
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if not answer:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return self._resolve(answer, port, *rest, **more)
