"""One join for many queries (paper 2): `join.py` makes the pairs of the widest windows, `narrow.py` and
`narrow_rows.py` are what one query sees of them."""
