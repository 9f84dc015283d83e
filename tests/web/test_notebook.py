"""Clusters and pairs in notebooks."""

from __future__ import annotations

import pytest

from neardup.errors import NeardupError
from neardup.web.notebook import Clusters, PairView
from tests.support.web import Browser, Elements, keys


def test_clusters(filled: str) -> None:
    shown = Clusters.of(filled, host="127.0.0.1")._repr_html_()

    assert "clang-13" in shown
    assert Clusters.of(filled, host="other.example").rows == []
    assert not any(tag in {"script", "style"} for tag, _ in Elements(shown).met)


def test_pair(filled: str, browser: Browser) -> None:
    urls = [browser.json(f"/page/{key}")["page"]["page"]["url"] for key in keys(browser, "clang-14/Tooling")]
    shown = PairView.of(filled, *urls)._repr_html_()

    assert "bits differ" in shown
    assert "clang-14/Tooling" in shown
    with pytest.raises(NeardupError, match="not stored"):
        PairView.of(filled, urls[0], "http://a.example/")
