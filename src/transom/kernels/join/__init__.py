"""Joins of two relations. `join.py` is the driver; what a side keeps and how it expires is the tactic."""
