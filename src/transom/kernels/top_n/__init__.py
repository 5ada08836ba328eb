"""ORDER BY .. LIMIT, ROW_NUMBER, RANK and DENSE_RANK: rows by their place in an order."""
