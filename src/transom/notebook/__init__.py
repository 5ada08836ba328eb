"""What notebooks have beside tables and plans: %%cql, and queries that are seen while they run."""
