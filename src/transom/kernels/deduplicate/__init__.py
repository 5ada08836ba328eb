"""DEDUPLICATE: of the rows of a key that come in quick succession, the first."""
