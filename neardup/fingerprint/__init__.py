"""Words → what pages are compared by: fingerprints with their bit weights, and sketches."""
