"""Where rows come from and where answers go: files, memory, and the terminal.

A source is asked for rows from a position on and answers with rows, rejects and the next position; it remembers nothing
that the answer depends on. A sink takes batches and shows them whole or not at all.
"""
