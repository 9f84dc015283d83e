"""Which URLs say that they are good for some time only."""

from __future__ import annotations

import time

import pytest

from neardup.urls.expiry import expires


def after(seconds: int) -> int:
    return int(time.time()) + seconds


@pytest.mark.parametrize(
    "form",
    [
        "https://a.example/page?exp={}",
        "https://a.example/page?until={}000",
        "https://a.example/signed/0f3a/{}/page.html",
        "https://a.example/page?X-Amz-Date=20261126T021500Z&X-Amz-Expires=300&X-Amz-Signature=0f3a",
        "https://a.example/page?sig=0f3a;token_expiry=never",
    ],
)
def test_urls_that_expire(form: str) -> None:
    assert expires(form.format(after(60)))


@pytest.mark.parametrize(
    ("form", "seconds"),
    [
        ("https://a.example/page", 0),
        ("https://a.example/expired/page?filter=expired", 0),
        ("https://a.example/jobs?show_expired=1&expiring=0", 0),
        ("https://a.example/page?made={}", -60),
        ("https://a.example/calendar?month={}", 30 * 86_400),
        ("https://a.example/page?id={}7", 60),
        ("https://a.example/{}78901234567890", 60),
    ],
)
def test_urls_that_do_not(form: str, seconds: int) -> None:
    assert not expires(form.format(after(seconds)))
