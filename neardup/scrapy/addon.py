"""The one line that turns neardup on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.scrapy.deferral import DeferredRequestMiddleware
from neardup.scrapy.extension import NearDuplicates
from neardup.scrapy.guard import PrivateNetworkMiddleware
from neardup.scrapy.middleware import NearDuplicateMiddleware
from neardup.scrapy.options import is_guarded
from neardup.scrapy.origin import OriginMiddleware
from neardup.scrapy.pipeline import NearDuplicatePipeline
from neardup.scrapy.refusal import told_in_a_line

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


class Addon:
    """``ADDONS = {"neardup.Addon": 500}`` installs the four components; each looks at the settings for
    itself.

    - The spider middleware stands at 100: after HttpErrorMiddleware (50), so that error pages are never
      fingerprinted.
    - The downloader middleware stands at -1000: before whatever else might let a request go. A request that
      is put back into the queue must not have passed middlewares that count requests, or let each pass once.
    - The pipeline stands at 0: before pipelines that would store or export the items of a duplicate.

    ``NEARDUP_GUARD`` adds the guard at 90, before robots.txt (100) is asked for. ``NEARDUP_GUARD`` also adds
    what notes the origin of requests at 950, near the spider.
    """

    def update_settings(self, settings: BaseSettings) -> None:
        settings.setdefault_in_component_priority_dict("EXTENSIONS", NearDuplicates, 100)
        settings.setdefault_in_component_priority_dict(
            "DOWNLOADER_MIDDLEWARES", DeferredRequestMiddleware, -1000
        )
        settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", NearDuplicateMiddleware, 100)
        settings.setdefault_in_component_priority_dict("ITEM_PIPELINES", NearDuplicatePipeline, 0)
        with told_in_a_line():
            guarded = is_guarded(settings)
        if guarded:
            settings.setdefault_in_component_priority_dict(
                "DOWNLOADER_MIDDLEWARES", PrivateNetworkMiddleware, 90
            )
            settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", OriginMiddleware, 950)
