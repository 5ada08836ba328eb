"""How running queries are doing, for those who look from outside: snapshots, metrics, logs, and the last hours."""
