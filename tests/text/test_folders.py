"""Which files of a folder are its pages, and reading them."""

from __future__ import annotations

import gzip
import os
from typing import TYPE_CHECKING

import pytest

from neardup.errors import ConfigurationError, NeardupError
from neardup.text import folders
from neardup.text.folders import html_files, is_page, read_page

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "name",
    [
        "a.html", "a.htm", "a.xhtml", "a.HTML", "a b.html", "a.html.gz", "a.htm.gz", "a.HTML.GZ",
        "index.html.en", "index.html.pt-br",
        "index.html.ja.utf8", "index.html.ko.euc-kr", "index.html.zh-cn.utf8", "index.html.de.gz",
        "a.html.html", "x.php.html", "é.html",
    ],
)  # fmt: skip
def test_names_of_pages(name: str) -> None:
    assert is_page(name)


@pytest.mark.parametrize(
    "name",
    [
        "a", ".html", ".htm", "html", "a.txt", "a.htmlx", "a.shtml", "ahtml", "a.html.js", "a.html.md",
        "a.html.br", "a.html.xz", "a.html.in",
        "a.html.orig", "a.html.bak", "a.html.gz.asc", "a.html~", "a.html.1", "a.html/", "a.js.gz", "a.html\n",
    ],
)  # fmt: skip
def test_other_names(name: str) -> None:
    assert not is_page(name)


def test_files_below_folders_are_sorted_and_each_is_there_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("b/2.html", "b/1.html", "a.html", "a/deep/er/3.htm", "a/no.txt", "c.html.gz", ".d/4.html"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "folder.html").mkdir()
    monkeypatch.chdir(tmp_path)
    expected = [".d/4.html", "a/deep/er/3.htm", "a.html", "b/1.html", "b/2.html", "c.html.gz"]

    assert html_files([tmp_path]) == sorted(tmp_path / name for name in expected)
    assert html_files([str(tmp_path / "b"), tmp_path / "a"]) == [
        tmp_path / name for name in (expected[1], *expected[3:5])
    ]
    assert len(html_files([tmp_path, "b", tmp_path / "b", "."])) == len(expected)
    assert html_files([]) == html_files([tmp_path / "folder.html"]) == []


def test_symbolic_links_are_skipped_but_a_folder_may_be_named_by_one(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "sub").mkdir(parents=True)
    (site / "page.html").write_text("page")
    (site / "alias.html").symlink_to("page.html")
    (site / "broken.html").symlink_to("none.html")
    (site / "sub" / "round").symlink_to(site)
    (tmp_path / "link").symlink_to(site)

    assert html_files([site]) == [site / "page.html"]
    assert html_files([tmp_path / "link"]) == [tmp_path / "link" / "page.html"]


def test_pipes_are_no_pages(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.html")

    assert html_files([tmp_path]) == []


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("page")

    for path in (tmp_path / "none", tmp_path / "page.html"):
        with pytest.raises(ConfigurationError, match=f"{path} is not a folder"):
            html_files([tmp_path, path])


def test_a_folder_that_cannot_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: str) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refused)

    with pytest.raises(ConfigurationError, match=f"{tmp_path} cannot be read: Permission denied"):
        html_files([tmp_path])


def test_packed_pages_are_unpacked(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_bytes(b"<p>a")
    (tmp_path / "b.html.gz").write_bytes(gzip.compress(b"<p>b"))

    assert [read_page(path) for path in html_files([tmp_path])] == [b"<p>a", b"<p>b"]


@pytest.mark.parametrize(
    "data",
    [
        b"<p>not packed",
        gzip.compress(b"<p>cut off" * 99)[:-20],
        gzip.compress(b"<p>wrong" * 99)[:12] + b"\xff" * 30,
    ],
    ids=["not packed", "cut off", "wrong"],
)
def test_packed_pages_that_cannot_be_unpacked(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.html.gz").write_bytes(data)

    with pytest.raises(NeardupError, match=r"a\.html\.gz cannot be read: "):
        read_page(tmp_path / "a.html.gz")


def test_missing_and_huge_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NeardupError, match=r"none\.html cannot be read: .*No such file"):
        read_page(tmp_path / "none.html")
    monkeypatch.setattr(folders, "MOST_BYTES", 1000)
    (tmp_path / "a.html.gz").write_bytes(gzip.compress(b" " * 1001))
    (tmp_path / "b.html").write_bytes(b" " * 1000)

    assert len(read_page(tmp_path / "b.html")) == 1000
    with pytest.raises(NeardupError, match=r"a\.html\.gz is larger than 1,000 bytes"):
        read_page(tmp_path / "a.html.gz")
