"""The local runtime: a query in one process."""
