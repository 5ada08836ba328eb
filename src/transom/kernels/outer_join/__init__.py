"""Joins that know which rows have no partner: LEFT, RIGHT and FULL, semi and anti joins."""
