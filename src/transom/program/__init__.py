"""A text of statements read and planned, and what any run of it reports: the part that all runtimes share."""
