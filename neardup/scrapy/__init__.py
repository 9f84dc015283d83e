"""The Scrapy side: add-on, extension, middlewares, item pipeline, and the verdict of a response."""
