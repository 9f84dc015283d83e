"""The Scrapy side: add-on, extension, spider middleware, item pipeline; and the verdict of a response for
callbacks.
"""

from __future__ import annotations

from neardup.scrapy.verdicts import get_verdict

__all__ = ["get_verdict"]
