"""Aggregates over joins without the join."""
