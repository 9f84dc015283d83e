"""A spider whose items come from a page object; apart from the others, because scrapy-poet is no dependency
of the tests.
"""

from __future__ import annotations

from collections.abc import AsyncIterator  # noqa: TC003 - scrapy-poet reads annotations
from typing import Any
from urllib.parse import urlsplit

from scrapy.http import HtmlResponse, Response
from web_poet import WebPage, field

from tests.support.sites.company_spiders import CompanySpider


class CompanyPage(WebPage[dict[str, Any]]):
    """The item of a page."""

    @field
    def path(self) -> str:
        return urlsplit(str(self.url))._replace(scheme="", netloc="").geturl()

    @field
    def title(self) -> str | None:
        return self.css("h1::text").get()


class PoetSpider(CompanySpider):
    """Is given a page object with each response."""

    name = "poet"

    async def parse(  # type: ignore[override]
        self, response: Response, page: CompanyPage
    ) -> AsyncIterator[Any]:
        if not isinstance(response, HtmlResponse):
            return
        item = await page.to_item()
        api = response.css("div::attr(data-api)").get()
        if api is None:
            yield item
        else:
            yield response.follow(api, self.completed, cb_kwargs={"item": item})
        for request in self.links(response):
            yield request

    def completed(self, response: Any, item: Any) -> Any:
        yield {**item, **response.json()}
