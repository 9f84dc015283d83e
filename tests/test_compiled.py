from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import neardup

CODE = """
from neardup import features, simhash
_, hashes, weights, _ = features.Features().extract("a")
print(simhash.fingerprint(hashes, weights).value)
"""


def test_works_where_nothing_can_be_cached(tmp_path: Path) -> None:
    # A folder that cannot be made stands for a read-only installation of a user without a home.
    package = tmp_path / "neardup"
    shutil.copytree(Path(neardup.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "__pycache__").touch()
    environment = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null/cache", "PYTHONDONTWRITEBYTECODE": "1"}

    done = subprocess.run(
        [sys.executable, "-c", CODE],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.strip() == str(0x85555565F6597889), done.stderr
    assert (package / "__pycache__").is_file()
