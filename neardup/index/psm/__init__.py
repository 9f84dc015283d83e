"""Probabilistic SimHash Matching: the index that grows while it is searched."""
