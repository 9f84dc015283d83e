"""``neardup`` and its verbs as Markdown, from the argument parsers."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from neardup.cli.main import make_parser
from neardup.cli.verbs import VerbParser

if TYPE_CHECKING:
    from collections.abc import Iterator

_WIDTH = 88
"""Of the usage, whatever the terminal is in which the site is built."""


def verbs(
    parser: argparse.ArgumentParser, name: str = "neardup"
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """All verbs, and the verbs below them, by what is typed."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb, below in action.choices.items():
                if isinstance(below, VerbParser):
                    below.complete()
                yield f"{name} {verb}", below
                yield from verbs(below, f"{name} {verb}")


def _argument(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    shown = ", ".join(action.option_strings) or str(action.metavar or action.dest)
    if action.option_strings and action.nargs != 0:
        choices = "|".join(map(str, action.choices)) if action.choices is not None else None
        shown += f" {action.metavar or choices or action.dest.upper()}"
    help_text = (action.help or "") % {**vars(action), "prog": parser.prog}
    return f"`{shown}`\n:   {help_text[:1].upper()}{help_text[1:]}\n"


def _section(name: str, parser: argparse.ArgumentParser) -> str:
    description = re.sub(rf"^`+{re.escape(name)}`+: ", "", (parser.description or "").strip())
    description = description.replace("``", "`")
    arguments = [
        action
        for action in parser._actions
        if not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)
    ]
    formatter = argparse.HelpFormatter(parser.prog, width=_WIDTH)
    formatter.add_usage(None, parser._actions, parser._mutually_exclusive_groups, prefix="")
    usage = formatter.format_help().rstrip()
    level = "#" * (name.count(" ") + 1)
    return "\n".join(
        [
            f"{level} `{name}`\n",
            f"{description[:1].upper()}{description[1:]}\n",
            f"```text\n{usage}\n```\n",
            *(_argument(action, parser) for action in arguments),
        ]
    )


def markdown() -> str:
    """A section a verb."""
    return "\n".join(_section(name, parser) for name, parser in verbs(make_parser()))
