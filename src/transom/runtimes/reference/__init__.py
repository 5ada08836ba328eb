"""The definition, executed: windows in plain Python, SQL by DuckDB on each snapshot. Slow and trusted."""
