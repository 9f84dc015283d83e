"""Indexes over 64-bit fingerprints: they see values, weights and row numbers, never a URL or HTML."""
