"""How well near-duplicates are told apart: labelled pairs, or the exact resemblance of pages, against every
choice there is.
"""
