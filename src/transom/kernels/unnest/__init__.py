"""UNNEST: a row for every element of an array."""
