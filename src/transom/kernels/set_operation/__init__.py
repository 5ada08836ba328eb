"""DISTINCT, EXCEPT and INTERSECT: rows by how often they are there."""
