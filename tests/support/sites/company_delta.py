"""scrapy-deltafetch as Scrapy wants spider middlewares since 2.15 or so; apart from the others, because it is
no dependency of the tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy_deltafetch import DeltaFetch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.http import Response


class AsynchronousDeltaFetch(DeltaFetch):
    """Does one after the other what its parent does with a whole iterable."""

    async def process_spider_output_async(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        async for one in result:
            for kept in self.process_spider_output(response, [one], None):
                yield kept
