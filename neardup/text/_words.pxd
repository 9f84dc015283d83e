"""The words of a text for other native modules."""

from neardup.text._buffer cimport Buffer


cdef enum:
    AFTER = 64  # zeros behind the last word


cdef int fold(bytes text, parted, check, Buffer* words) except -1
"""The words of a text in UTF-8, case-folded and in NFC, in their order: a zero or several between two, and
``AFTER`` of them behind the last. ``parted`` and ``check``: see words.py. The bytes are the caller's to free,
whatever happens.
"""
