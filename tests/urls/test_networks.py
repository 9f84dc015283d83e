"""Which addresses are private, in all their forms, and what URLs connect to."""

from __future__ import annotations

import pytest

from neardup.address import place_of
from neardup.urls.networks import is_private, literal_address


class TestAddresses:
    @pytest.mark.parametrize(
        "address",
        [
            "127.0.0.1", "127.255.0.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
            "169.254.169.254", "100.64.0.1", "0.0.0.0", "0.1.2.3", "224.0.0.1", "239.1.2.3", "240.0.0.1",
            "255.255.255.255", "192.0.2.1", "198.18.0.1", "::", "::1", "fe80::1", "fe80::1%1", "fec0::1",
            "fc00::1",
            "fd12:3456::1", "ff02::1", "2001:db8::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1",
            "64:ff9b::7f00:1", "64:ff9b::10.0.0.1", "64:ff9b:1::8.8.8.8", "2001::1", "2002:7f00:1::1",
            "2002:a00:1::",
        ],
    )  # fmt: skip
    def test_private(self, address: str) -> None:
        assert is_private(address)

    @pytest.mark.parametrize(
        "address",
        [
            "8.8.8.8", "172.15.0.1", "172.32.0.1", "192.167.0.1", "223.255.255.1", "2606:4700::1111",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8", "2002:808:808::1",
        ],
    )  # fmt: skip
    def test_public(self, address: str) -> None:
        assert not is_private(address)

    @pytest.mark.parametrize(
        "host",
        [
            "127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "0X7F.0x1", "0177.0.0.1",
            "017700000001", "127.0.0.1.",
            "127.1.", "[::ffff:127.0.0.1]", "[::1]", "::1", "0", "0.0.0.0", "[::]", "[64:ff9b::7f00:1]",
            "[2002:7f00:1::]", "[fe80::1%25eth0]",
        ],
    )  # fmt: skip
    def test_every_form_of_a_private_one(self, host: str) -> None:
        address = literal_address(host)

        assert address is not None
        assert is_private(address)

    @pytest.mark.parametrize(
        "host",
        [
            "", "a.example", "localhost", "127.0.0.1.example", "1.2.3.4.5", "256.1.1.1.1", "0x7g",
            "4294967296", "09", "1..2", "de.ad", "a",
        ],
    )  # fmt: skip
    def test_names(self, host: str) -> None:
        assert literal_address(host) is None


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://a.example", "a.example"),
        ("https://a.example:443/x", "a.example"),
        ("http://A.Example.:80/x", "a.example"),
        ("https://a.example:80", "a.example:80"),
        ("http://a.example:443", "a.example:443"),
        ("http://user:secret@a.example:8080/", "a.example:8080"),
        ("http://a.example@127.0.0.1:81/", "127.0.0.1:81"),
        ("http://[::1]/", "::1"),
        ("http://[::1]:8080/", "[::1]:8080"),
        ("http://Ü.example/", "xn--tda.example"),
        ("http://１２７.０.０.１/", "127.0.0.1"),
        ("http://", ""),
        ("http://a.example:99999/", ""),
        ("http://a.example:x/", ""),
        ("http://[::1/", ""),
        ("http:///path", ""),
        ("http://a.example:8080?to=//b.example:81/", "a.example:8080"),
        ("http://a.example:8080#//b.example:81/", "a.example:8080"),
        ("https://a.example:80/x", "a.example:80"),
        ("http://a.example:80/x", "a.example"),
        ("http://a.example:99999/x", ""),
        (f"http://{'a' * 60}.example:81/x", f"{'a' * 60}.example:81"),
        (f"http://user:{'x' * 400}@a.example:81/x", "a.example:81"),
    ],
)
def test_places(url: str, place: str) -> None:
    assert place_of(url) == place
