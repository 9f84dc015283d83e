"""Which requests in the queue of a job are not to be made, from one run to the next."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from scrapy.utils.test import get_crawler

from neardup.scrapy.made_before import FILE, MadeBefore, keep, take

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from scrapy.crawler import Crawler

MADE = MadeBefore({1, 2**64 - 1}, Counter({(7, 3): 2, (2**64 - 1, 2.5): 1}))


def of_job(folder: Path) -> Crawler:
    return get_crawler(settings_dict={"JOBDIR": str(folder)})


def test_is_read_once(tmp_path: Path) -> None:
    keep(of_job(tmp_path), MADE)

    assert take(of_job(tmp_path)) == MADE
    assert take(of_job(tmp_path)) == MadeBefore()


def test_without_a_job_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    keep(get_crawler(), MADE)

    assert take(get_crawler()) == MadeBefore()
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_keep_is_no_file(tmp_path: Path) -> None:
    keep(of_job(tmp_path), MadeBefore())

    assert not (tmp_path / FILE).exists()


def test_a_file_that_is_cut_is_forgotten(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"released": [1, 2')

    assert take(of_job(tmp_path)) == MadeBefore()
    assert not (tmp_path / FILE).exists()


def test_a_job_that_cannot_be_written_to(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / FILE).mkdir()
    keep(of_job(tmp_path), MADE)

    assert f"{tmp_path}/{FILE} cannot be written" in caplog.text
    assert take(of_job(tmp_path)) == MadeBefore()
