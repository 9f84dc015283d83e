"""The IP addresses that pages come from, on their way into the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.address import ip_text

if TYPE_CHECKING:
    from scrapy.http import Response

    from neardup.detection.verdict import Verdict
    from neardup.scrapy.recording import Onlooker, Recorder

_MOST_NOTED = 100_000
"""Pairs of host and IP address that are not noted again: some 20 MB."""


class HostIpRecord:
    """Notes each IP address of a host once in a crawl.

    A page that came through a proxy says nothing of its host: the IP address is that of the proxy. Nor does a
    response out of Scrapy's cache say where its host is now.
    """

    def __init__(self, recorder: Recorder | Onlooker) -> None:
        self._recorder = recorder
        self._noted: set[tuple[str, object]] = set()

    def note(self, response: Response, verdict: Verdict) -> None:
        """Have the IP address stored that a page came from."""
        if response.ip_address is None or verdict.page_id is None:
            return
        if response.meta.get("proxy") or "cached" in response.flags:
            return
        pair = verdict.address.host, response.ip_address
        if pair in self._noted:
            return
        if len(self._noted) >= _MOST_NOTED:
            self._noted.clear()
        self._noted.add(pair)
        ip = ip_text(str(response.ip_address))
        if verdict.address.host and ip:
            self._recorder.put_ip(verdict.address.host, ip)
