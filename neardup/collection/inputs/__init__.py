"""What pages are read from: one module a form of storage."""
