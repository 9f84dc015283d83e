"""Page → words: what of a page is text, its words, and their features."""
