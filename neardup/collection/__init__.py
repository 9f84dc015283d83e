"""Work on stored collections of fingerprints; nothing here is imported by a crawl."""
