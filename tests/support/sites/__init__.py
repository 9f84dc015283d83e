"""Made sites of real text, on which a crawl that drops what it should not loses pages.

The sites are served on loopback and crawled by spiders of their own.
"""
