"""Joins of windows that slide, told slide by slide within a memory budget (paper 4)."""
