"""Joins of windows that slide, emitted slide by slide within a memory budget (paper 4)."""
