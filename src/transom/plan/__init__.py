"""What a query is: its algebra, its expressions, the catalogue of names, and the rewrites."""
