"""The one line that turns neardup on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.scrapy.extension import NearDuplicates
from neardup.scrapy.middleware import NearDuplicateMiddleware
from neardup.scrapy.pipeline import NearDuplicatePipeline

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


class Addon:
    """``ADDONS = {"neardup.Addon": 500}`` installs the three components; each looks at the settings for itself.

    The spider middleware at 100: after HttpErrorMiddleware (50), so that error pages are never fingerprinted. The
    pipeline at 0: before those that would store or export the items of a duplicate.
    """

    def update_settings(self, settings: BaseSettings) -> None:
        settings.setdefault_in_component_priority_dict("EXTENSIONS", NearDuplicates, 100)
        settings.setdefault_in_component_priority_dict("SPIDER_MIDDLEWARES", NearDuplicateMiddleware, 100)
        settings.setdefault_in_component_priority_dict("ITEM_PIPELINES", NearDuplicatePipeline, 0)
