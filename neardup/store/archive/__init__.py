"""Files that a whole store is exported to: JSON Lines or Parquet.

This package knows what is in a file, and nothing of SQL.
"""
