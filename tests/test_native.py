"""The native core: each module has a Python twin, and a package without it says so and works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import neardup
from neardup import native
from neardup.cli.main import main
from neardup.text import feature_kernels
from tests.support.places import PAGES, ROOT
from tests.support.readme import main_job
from tests.support.twins import python_twin

REPORT = "from neardup import native; print(native.describe(), native.load('neardup.text._feature_kernels'))"
SUFFIX = EXTENSION_SUFFIXES[0]
NATIVE = sorted((ROOT / "neardup").rglob("*.pyx"))


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package, without what the build made."""
    copy = tmp_path / "neardup"
    left_out = shutil.ignore_patterns("__pycache__", "_build.txt", f"*{SUFFIX}")
    shutil.copytree(Path(neardup.__file__).parent, copy, ignore=left_out)
    return copy


def described(folder: Path, **environment: str) -> str:
    """What the package in a folder says of its native core."""
    others = {name: value for name, value in os.environ.items() if name != "NEARDUP_NATIVE"}
    done = subprocess.run(
        [sys.executable, "-c", REPORT],
        cwd=folder, env=others | environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip()


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_where_there_is_a_compiler_the_native_core_is_built() -> None:
    assert described(ROOT).startswith("native core: yes <module 'neardup.text._feature_kernels'")


@pytest.mark.parametrize("path", NATIVE, ids=lambda path: path.stem)
def test_each_native_module_stands_beside_the_module_that_it_serves(path: Path) -> None:
    assert path.name.startswith("_")
    assert path.with_name(f"{path.stem[1:]}.py").is_file()


def test_what_the_build_has_recorded_is_told(package: Path) -> None:
    assert described(package.parent) == f"native core: no (not built; {native.COST}) None"
    (package / "_build.txt").write_text("no C compiler\n")
    assert described(package.parent) == f"native core: no (no C compiler; {native.COST}) None"
    (package / "_build.txt").write_text("yes .cpython-27.so\n")
    assert described(package.parent) == (
        f"native core: no (built for .cpython-27.so, not for this Python; {native.COST}) None"
    )


def test_the_environment_turns_it_off() -> None:
    assert described(ROOT, NEARDUP_NATIVE="0") == f"native core: no (NEARDUP_NATIVE=0; {native.COST}) None"


def test_the_version_tells(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])

    assert " ".join(capsys.readouterr().out.split()) == f"neardup {neardup.__version__}, {native.describe()}"


@pytest.mark.skipif(not native.available, reason=native.reason)
def test_a_twin_gives_way_to_the_native_function() -> None:
    compiled = native.load("neardup.text._feature_kernels")

    assert compiled is not None
    assert feature_kernels.count is compiled.count
    assert python_twin(feature_kernels).count.__code__.co_filename == feature_kernels.__file__


@pytest.mark.slow
def test_without_a_compiler_the_package_is_built_and_works(package: Path) -> None:
    project = package.parent
    for name in ("migrations", "crawler"):
        shutil.copytree(ROOT / name, project / name)
    for name in ("pyproject.toml", "hatch_build.py", "scrapy.cfg", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, project)
    shutil.copytree(PAGES / "apache", project / "tests" / "pages")
    environment = {**os.environ, "CC": "/bin/false"}
    for name in ("SCRAPY_SETTINGS_MODULE", "PYTHONPATH", "NEARDUP_NATIVE"):
        environment.pop(name, None)

    def run(job: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            job, shell=True, cwd=project, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done

    uv = f"{sys.executable} -m uv --quiet --offline --no-cache"
    run(f"{uv} venv --python {sys.executable} .venv")
    # The libraries are those of this environment, and the package is not.
    [libraries] = (project / ".venv").glob("lib/python*/site-packages")
    (libraries / "others.pth").write_text("\n".join(path for path in sys.path if "site-packages" in path))
    run(f"{uv} pip install --python .venv/bin/python --no-deps --no-build-isolation .")
    assert not list(libraries.rglob(f"neardup/**/*{SUFFIX}"))
    assert "Tag: py3-none-any" in next(libraries.glob("neardup-*.dist-info/WHEEL")).read_text()

    told = f"native core: no (no C compiler; {native.COST})"
    assert (
        " ".join(run(".venv/bin/neardup --version").stdout.split())
        == f"neardup {neardup.__version__}, {told}"
    )

    # -P, or the modules of the project would come before those that are installed.
    job = main_job().replace("scrapy ", ".venv/bin/python -P -m scrapy ", 1)
    job = job.replace("&& neardup", "&& .venv/bin/neardup")
    done = run(job)

    assert f"WARNING: neardup: {told}" in done.stderr
    assert "pages       8\n" in done.stderr
    assert "By path prefix" in done.stdout
