"""Verbs whose modules are imported when the verb is asked for: all of them together take a second."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Verb(NamedTuple):
    """The module of a verb, and what ``--help`` says of the verb.

    The module has ``add_arguments(parser)``, and ``run(arguments)`` unless it has verbs of its own. Its
    docstring describes the verb.
    """

    module: str
    help: str


class VerbParser(argparse.ArgumentParser):
    """A parser that imports the module of its verb, and has arguments, from its first use on."""

    def __init__(self, *, module: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._module = module

    def complete(self) -> None:
        """Add the arguments of the verb, its description, and ``run``, the function that carries it out."""
        if self._module is not None:
            module, self._module = import_module(self._module), None
            # The marks of reStructuredText only disturb on the terminal.
            self.description = (module.__doc__ or "").replace("``", "")
            module.add_arguments(self)
            if hasattr(module, "run"):
                self.set_defaults(run=module.run)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.complete()
        return super().parse_known_args(args, namespace)


def add_verbs(parser: argparse.ArgumentParser, verbs: Mapping[str, Verb], *, dest: str) -> None:
    """Have a command take one of these verbs."""
    choices = parser.add_subparsers(dest=dest, required=True, metavar="VERB", parser_class=VerbParser)
    for name, verb in verbs.items():
        choices.add_parser(name, help=verb.help, module=verb.module)
