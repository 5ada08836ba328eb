"""Scans: where rows come in, of streams and of tables."""
