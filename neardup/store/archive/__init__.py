"""Files that a whole store is exported to: JSON Lines or Parquet. What is in a file is known here, SQL is
not.
"""
