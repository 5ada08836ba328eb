"""Rows that stay forever once they have begun: pairs of streams that never end."""
