"""The report as one HTML file, and the page to explore a store."""
