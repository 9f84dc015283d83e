"""What the README tells its readers to run."""

from __future__ import annotations

import re

from tests.support.places import ROOT

README = (ROOT / "README.md").read_text()


def command(name: str) -> str:
    """The command under the mark ``<!-- command: NAME -->``."""
    found = re.search(rf"<!-- command: {name} -->\n```sh\n(.*)\n```", README)
    assert found is not None, name
    return found.group(1)


def main_job() -> str:
    """What the first command does after the installation."""
    _, installs, job = command("run").partition(" && uv pip install -q . && ")
    assert installs
    return job
