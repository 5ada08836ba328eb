"""Benchmarks: rivals side by side in one run, ratios beside absolute rates. They are no tests."""
