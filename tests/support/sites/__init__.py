"""Made sites of real text, on which a crawl that drops what it should not loses pages: served on loopback, crawled by spiders of their own."""
