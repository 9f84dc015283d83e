"""Page in, verdict out: what is known of pages, and the rule that tells near-duplicates."""
