"""Joins of many inputs at once: a window and hash tables per input, and no intermediate results."""
