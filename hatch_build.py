"""Build the native core: every ``.pyx`` below ``neardup/`` becomes an extension module beside its source.

hatchling calls this for wheels and for editable installations. ``python hatch_build.py`` builds in place once
more after a ``.pyx`` has changed. Where the C compiler fails the package stays pure Python, and
``neardup/_build.txt`` says what is missing; :mod:`neardup.native` reads that line.

In the environment, ``NEARDUP_BOUNDSCHECK=1`` builds with every access to an array checked, and
``NEARDUP_SANITIZE=1`` with AddressSanitizer and UndefinedBehaviorSanitizer (``nox -s sanitize``).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import Cython
import lxml
from Cython.Build import cythonize
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from setuptools import Distribution, Extension
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent
RECORD = "neardup/_build.txt"
SUFFIX: str = sysconfig.get_config_var("EXT_SUFFIX")
BASELINE = ["-msse4.2", "-mpopcnt"] if platform.machine().lower() in {"x86_64", "amd64"} else []
"""Instructions that every server of the last ten years has (x86-64-v2). ``neardup/fingerprint/_bits.h`` takes
wider ones where they are.
"""
_SOURCES = ("*.pyx", "*.pxd", "*.h")
SHARED = "neardup._cyutility"
"""What Cython needs for arrays, in one module. Otherwise it would be half of the code of most modules."""

CHECKED = os.environ.get("NEARDUP_BOUNDSCHECK") == "1"
SANITIZED = os.environ.get("NEARDUP_SANITIZE") == "1"
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]


class NativeCore(BuildHookInterface[Any]):
    """Compiles when hatchling builds a wheel; ``[tool.hatch.build.targets.wheel.hooks.custom]``."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            build_in_place()
            return
        self._folder = Path(tempfile.mkdtemp(prefix="neardup-build-"))
        modules, record = build(self._folder)
        (self._folder / "record").write_text(f"{record}\n")
        build_data["force_include"][str(self._folder / "record")] = RECORD
        for name, module in modules.items():
            build_data["force_include"][str(module)] = name
        if modules:
            build_data["pure_python"] = False
            build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            shutil.rmtree(self._folder)


def build_in_place() -> str:
    """Put the modules beside their sources; returns what :func:`build` records."""
    kind = "-checked" * CHECKED + f"-sanitized-{Path(os.environ.get('CC', 'cc')).name}" * SANITIZED
    modules, record = _built(ROOT / "build" / f"native{kind}")
    for old in (ROOT / "neardup").rglob(f"*{SUFFIX}"):
        if old.relative_to(ROOT).as_posix() not in modules:
            old.unlink()
    for name, module in modules.items():
        # A process that runs has the old file mapped into its memory, so the new one takes its place at once.
        fresh = ROOT / f"{name}.new"
        shutil.copyfile(module, fresh)
        fresh.replace(ROOT / name)
    (ROOT / RECORD).write_text(f"{record}\n")
    return record


def _built(folder: Path) -> tuple[dict[str, Path], str]:
    """What :func:`build` gives, of the modules in the folder if they are of the same sources.

    Timestamps would not tell: pip builds with an lxml of its own, which is always newer than the modules.
    """
    library, known = folder / "lib", folder / "sources"
    made_of = [_digest_of_tools(), _digest_of_sources()]
    if known.exists():
        lines = known.read_text().splitlines()
        modules = {name: library / name for name in lines[2:]}
        if lines[:2] == made_of and all(path.exists() for path in modules.values()):
            return modules, f"yes {SUFFIX}"
        known.unlink()
        if lines[:1] != made_of[:1]:
            shutil.rmtree(folder)  # its timestamps tell of sources alone
    modules, record = build(folder)
    if modules:
        known.write_text("\n".join([*made_of, *modules]))
    return modules, record


def _digest_of_tools() -> str:
    """Of what makes modules of sources: Cython, lxml, Python, the command of the compiler, and this file."""
    variables = [os.environ.get(name) for name in ("CC", "CFLAGS", "CPPFLAGS", "LDFLAGS")]
    told = f"{Cython.__version__} {lxml.__version__} {SUFFIX} {variables}"
    return hashlib.sha256(told.encode() + Path(__file__).read_bytes()).hexdigest()


def _digest_of_sources() -> str:
    digest = hashlib.sha256()
    for path in sorted(path for kind in _SOURCES for path in (ROOT / "neardup").rglob(kind)):
        digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def build(folder: Path) -> tuple[dict[str, Path], str]:
    """Compile into a folder; returns the modules by their place in the package, and the line of the record.

    The line is ``yes`` and the suffix of the modules, or says what is missing; there are no modules then.
    """
    with contextlib.chdir(ROOT):
        command = _BuildExtensions(
            Distribution({"name": "neardup", "ext_modules": list(_extensions(folder))})
        )
        command.build_lib, command.build_temp = str(folder / "lib"), str(folder / "objects")
        command.parallel = os.cpu_count()
        command.ensure_finalized()
        try:
            command.run()
        except (BaseError, CCompilerError) as exc:
            missing = command.what_is_missing(folder)
            print(f"neardup is built without its native core: {missing}\n{exc}", file=sys.stderr)  # noqa: T201
            return {}, missing
        made = {Path(command.get_ext_fullpath(extension.name)) for extension in command.extensions}
        return {path.relative_to(folder / "lib").as_posix(): path.resolve() for path in made}, f"yes {SUFFIX}"


def _extensions(folder: Path) -> Iterator[Extension]:
    sources = sorted(Path("neardup").rglob("*.pyx"))
    extensions = [
        # The root is for headers of the package: "neardup/…/name.h".
        Extension(
            ".".join(path.with_suffix("").parts),
            [str(path)],
            include_dirs=[".", *lxml.get_include()],
            depends=[str(header) for header in sorted(Path("neardup").rglob("*.h"))],
        )
        for path in sources
    ]
    yield from cythonize(
        [*extensions, Extension(SHARED, [f"{SHARED.replace('.', '/')}.c"])],
        shared_utility_qualified_name=SHARED,
        build_dir=str(folder),
        include_path=lxml.get_include(),
        compiler_directives={
            "language_level": 3,
            "boundscheck": CHECKED,
            "initializedcheck": CHECKED,
            "wraparound": False,
            "cdivision": True,
            "show_performance_hints": not CHECKED,
        },
    )


class _BuildExtensions(build_ext):
    def build_extensions(self) -> None:
        for extension in self.extensions:
            if self.compiler.compiler_type == "msvc":
                extension.extra_compile_args = ["/O2"]
            else:
                # Twins must round alike: a product is not added in one step, which some processors can.
                extension.extra_compile_args = ["-O3", "-ffp-contract=off", *BASELINE]
                # Checked modules run tests once, and are compiled in two thirds of the time.
                extension.extra_compile_args += ["-O1"] if CHECKED else ["-g0"]
                if SANITIZED:
                    self._sanitize(extension)
        super().build_extensions()

    def _sanitize(self, extension: Extension) -> None:
        """The library of the sanitizers is not linked: that of the tests or of the fuzzer is preloaded."""
        extension.extra_compile_args += [*SANITIZERS, "-O1", "-g", "-fno-omit-frame-pointer"]
        if "clang" in Path(self.compiler.compiler[0]).name:
            # Branches are counted for the fuzzer. Cython calls functions by other types than their own.
            extension.extra_compile_args += ["-fsanitize=fuzzer-no-link", "-fno-sanitize=function"]

    def what_is_missing(self, folder: Path) -> str:
        """Why the compiler failed, in a few words."""
        for missing, code in (("no C compiler", "int one;\n"), ("no Python.h", "#include <Python.h>\n")):
            source = folder / "trial.c"
            source.write_text(code)
            try:
                self.compiler.compile([str(source)], output_dir=str(folder), include_dirs=self.include_dirs)
            except (AttributeError, BaseError, CCompilerError):  # no compiler was even found to be asked
                return missing
        return "the C compiler failed; pip install -v shows how"


if __name__ == "__main__":
    RESULT = build_in_place()
    sys.exit(0 if RESULT.startswith("yes") else 1)
