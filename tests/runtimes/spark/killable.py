"""Queries for tests that kill: a join, an aggregate and a window by rows, with exchanges between them."""

from __future__ import annotations

STREAMS = """
SET batch_rows = 100; SET tasks = {tasks};
CREATE STREAM bids (ts TIMESTAMP, item INTEGER, price INTEGER, WATERMARK FOR ts AS ts - INTERVAL '3' SECOND)
    WITH (connector = 'generator', rows = 500, rate = 10, seed = 5, disorder = '5 seconds', late = 'dead_letter',
          column.item = 'uniform 1 20', column.price = 'uniform 1 9 null 0.1');
CREATE STREAM asks (ts TIMESTAMP, item INTEGER, seller VARCHAR, WATERMARK FOR ts AS ts - INTERVAL '3' SECOND)
    WITH (connector = 'generator', rows = 500, rate = 10, seed = 6, disorder = '5 seconds', late = 'dead_letter',
          column.item = 'uniform 1 20', column.seller = 'choice ann bob eve');
"""

QUERIES = {
    # The last bids of all come together in one partition, the join is by item, and the counts are by seller.
    "sellers": """
        SELECT asks.seller, COUNT(*) AS n, SUM(bids.price) AS total
        FROM bids [ROWS 50], asks [RANGE 10 SECONDS] WHERE bids.item = asks.item GROUP BY asks.seller""",
    "pairs": """
        ISTREAM(SELECT bids.item, bids.price, asks.seller
        FROM bids [RANGE 5 SECONDS], asks [RANGE 5 SECONDS] WHERE bids.item = asks.item)""",
    "items": """
        SELECT item, COUNT(*) AS n, MAX(price) AS high FROM bids [RANGE 20 SECONDS] GROUP BY item""",
    "totals": """
        SELECT item, COUNT(*) AS n, SUM(price) AS total FROM bids GROUP BY item""",
}


def program(folder: object, sinks: dict[str, str], emit: str = "changes", tasks: int = 2) -> str:
    """The queries of these names, each to this path below the folder `out`; in one task all of a plan is there."""
    text = STREAMS.replace("{tasks}", str(tasks))
    for name, path in sinks.items():
        text += f"""
            CREATE SINK {name} WITH (connector = 'files', path = '{folder}/out/{path}', format = '{_format(path)}',
                                     emit = '{emit}');
            INSERT INTO {name} {QUERIES[name]};
        """
    return text


def _format(path: str) -> str:
    """
    >>> _format("pairs.csv"), _format("items-jsonl/")
    ('csv', 'jsonl')
    """
    return path.rstrip("/").replace("-", ".").rpartition(".")[2]
