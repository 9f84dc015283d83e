"""What mkdocs cannot do by itself: the commands from their parsers, and the result files as pages of the
site.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT)]

from docs import command_pages

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

RESULTS = ROOT / "benchmarks" / "results"
COMMANDS = "<!-- commands -->"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the result files; in the repository the pages link to them where they are."""
    for path in sorted(RESULTS.iterdir()):
        if path.suffix in {".md", ".svg"}:
            files.append(
                File.generated(
                    config, f"benchmarks/results/{path.name}", content=path.read_text(encoding="utf-8")
                )
            )
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill in the commands, and have links into the repository's folder of results lead to the pages made
    from it.
    """
    up = "../" * page.file.src_uri.count("/")
    markdown = markdown.replace(f"({up}../benchmarks/results/", f"({up}benchmarks/results/")
    if COMMANDS in markdown:
        markdown = markdown.replace(COMMANDS, command_pages.markdown())
    return markdown
