"""The queries of NEXMark: what each asks, how it is written here, and what its answer is in plain SQL over all events.

Some ask a little else than the suite of Flink, and say what; all contestants are asked the same. `WINDOWED` answers
have the end of their window in `at`, and count up to the last window that the input closes: at the end of its input
Spark leaves the others open.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from benchmarks.nexmark.data import AUCTION, BID, COLUMNS, PERSON, SIDE


@dataclass(frozen=True)
class Query:
    """`cql` for Transom and `sql` for DuckDB give `columns`, a name and a type each.

    An answer with `keys` is a table that changes, and has one row for a value of them; the others are streams.
    """

    name: str
    meaning: str
    reads: tuple[str, ...]
    columns: dict[str, str]
    cql: str
    sql: str
    keys: tuple[str, ...] = ()
    windowed: bool = False
    instead: str = ""

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(name for name in self.reads if name != SIDE)


UNWRITTEN: Final = {
    "q6": "the last ten auctions of a seller that closed: no row can end at a time that one of its columns says",
}

_BID_COLUMNS: Final = COLUMNS[BID]
_PASSED: Final = {name: _BID_COLUMNS[name] for name in ("auction", "bidder", "price", "date_time", "extra")}
_TEN: Final = "[RANGE 10 SECONDS SLIDE 10 SECONDS]"


def _stream(select: str) -> tuple[str, str]:
    """A query over single bids, for both."""
    return f"ISTREAM({select.replace('FROM bid', 'FROM bid [NOW]')})", select


def _joined(select: str) -> tuple[str, str]:
    """A join of all that ever came."""
    return f"ISTREAM({select})", select


def _table(select: str) -> tuple[str, str]:
    return select, select


def _at(seconds: int, windows: int = 1) -> str:
    """In DuckDB the ends of the windows that a row is in, which slide by so many seconds."""
    slide = seconds * 1_000_000
    first = f"(epoch_us(date_time) // {slide} + 1) * {slide}"
    return f"make_timestamp(unnest([{', '.join(f'{first} + {slide * i}' for i in range(windows))}]))"


_Q0 = "SELECT auction, bidder, price, date_time, extra FROM bid"
_Q1 = "SELECT auction, bidder, 0.908 * price AS price, date_time, extra FROM bid"
_Q2 = "SELECT auction, price FROM bid WHERE auction % 123 = 0"
_Q3 = """SELECT p.name, p.city, p.state, a.id FROM auction AS a JOIN person AS p ON a.seller = p.id
WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')"""
_VALID = "a.id = b.auction AND b.date_time >= a.date_time AND b.date_time <= a.expires"
_Q4 = f"""SELECT category, AVG(final) AS average FROM (
    SELECT a.id, a.category, MAX(b.price) AS final
    FROM auction AS a JOIN bid AS b ON {_VALID}
    GROUP BY a.id, a.category
) AS finals GROUP BY category"""
_Q9 = f"""WITH valid AS (
    SELECT a.id, a.item_name, a.seller, a.category, a.expires, b.bidder, b.price, b.date_time
    FROM auction AS a JOIN bid AS b ON {_VALID}
), best AS (SELECT id, MAX(price) AS price FROM valid GROUP BY id)
SELECT v.id, v.item_name, v.seller, v.category, v.expires, v.bidder, v.price, v.date_time
FROM valid AS v JOIN best AS m ON v.id = m.id AND v.price = m.price"""
_Q10 = """SELECT auction, bidder, price, date_time, extra, CAST(date_time AS DATE) AS day,
    lpad(CAST(hour(date_time) AS VARCHAR), 2, '0') || ':' || lpad(CAST(minute(date_time) AS VARCHAR), 2, '0') AS minute
FROM bid"""
_Q14 = """SELECT auction, bidder, 0.908 * price AS price,
    CASE WHEN hour(date_time) >= 8 AND hour(date_time) <= 18 THEN 'dayTime'
         WHEN hour(date_time) <= 6 OR hour(date_time) >= 20 THEN 'nightTime' ELSE 'otherTime' END AS bid_time,
    date_time, extra, length(extra) - length(replace(extra, 'c', '')) AS c_counts
FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000"""
_RANKS = {"1": "price < 10000", "2": "price >= 10000 AND price < 1000000", "3": "price >= 1000000"}
_COUNTS = ", ".join(
    ["COUNT(*) AS bids", *(f"COUNT(CASE WHEN {which} THEN 1 END) AS rank{i}_bids" for i, which in _RANKS.items())]
)
_DISTINCT = ", ".join(
    f"COUNT(DISTINCT {of}) AS {name}s, "
    + ", ".join(f"COUNT(DISTINCT CASE WHEN {which} THEN {of} END) AS rank{i}_{name}s" for i, which in _RANKS.items())
    for name, of in (("bidder", "bidder"), ("auction", "auction"))
)
_DAY = "CAST(date_time AS DATE)"
_Q15 = f"SELECT {_DAY} AS day, {_COUNTS}, {_DISTINCT} FROM bid GROUP BY {_DAY}"
_Q16 = f"SELECT channel, {_DAY} AS day, {_COUNTS}, {_DISTINCT} FROM bid GROUP BY channel, {_DAY}"
_Q17 = f"""SELECT auction, {_DAY} AS day, {_COUNTS}, MIN(price) AS min_price, MAX(price) AS max_price,
    AVG(price) AS avg_price, SUM(price) AS sum_price
FROM bid GROUP BY auction, {_DAY}"""
_Q20 = """SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.date_time, b.extra, a.item_name, a.description,
    a.initial_bid, a.reserve, a.date_time AS opened, a.expires, a.seller, a.category, a.extra AS auction_extra
FROM bid AS b JOIN auction AS a ON b.auction = a.id WHERE a.category = 10"""
_Q21 = """SELECT auction, bidder, price, channel,
    CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
         ELSE split_part(split_part(url, 'channel_id=', 2), '&', 1) END AS channel_id
FROM bid WHERE contains(url, 'channel_id=') OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')"""
_Q22 = """SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2,
    split_part(url, '/', 6) AS dir3 FROM bid"""

_NUMBERS: Final = dict.fromkeys(("bids", "rank1_bids", "rank2_bids", "rank3_bids"), "BIGINT")
_DISTINCTS: Final = {
    f"{rank}{of}s": "BIGINT" for of in ("bidder", "auction") for rank in ("", "rank1_", "rank2_", "rank3_")
}

QUERIES: Final = {
    query.name: query
    for query in (
        Query("q0", "every bid as it is", (BID,), _PASSED, *_stream(_Q0)),
        Query("q1", "every bid with its price in euros", (BID,), _PASSED | {"price": "DECIMAL(24, 3)"}, *_stream(_Q1)),
        Query("q2", "bids on some auctions", (BID,), {"auction": "BIGINT", "price": "BIGINT"}, *_stream(_Q2)),
        Query(
            "q3",
            "who sells in a category in three states",
            (PERSON, AUCTION),
            {"name": "VARCHAR", "city": "VARCHAR", "state": "VARCHAR", "id": "BIGINT"},
            *_joined(_Q3),
        ),
        Query(
            "q4",
            "the average price of winning bids by category",
            (AUCTION, BID),
            {"category": "BIGINT", "average": "DOUBLE"},
            *_table(_Q4),
            keys=("category",),
        ),
        Query(
            "q5",
            "the auctions with most bids in the last ten seconds, every two seconds",
            (BID,),
            {"at": "TIMESTAMP", "auction": "BIGINT", "num": "BIGINT"},
            """RSTREAM(
    WITH counts AS (SELECT auction, COUNT(*) AS num FROM bid [RANGE 10 SECONDS SLIDE 2 SECONDS] GROUP BY auction)
    SELECT c.auction, c.num FROM counts AS c JOIN (SELECT MAX(num) AS num FROM counts) AS m ON c.num = m.num
)""",
            f"""SELECT "at", auction, num FROM (SELECT "at", auction, COUNT(*) AS num
                    FROM (SELECT {_at(2, 5)} AS "at", auction FROM bid) GROUP BY "at", auction)
                QUALIFY num = MAX(num) OVER (PARTITION BY "at")""",
            windowed=True,
        ),
        Query(
            "q7",
            "the highest bids of every ten seconds",
            (BID,),
            {"at": "TIMESTAMP"} | {name: _BID_COLUMNS[name] for name in ("auction", "price", "bidder", "date_time")},
            f"""RSTREAM(
    SELECT b.auction, b.price, b.bidder, b.date_time
    FROM bid {_TEN} AS b JOIN (SELECT MAX(price) AS price FROM bid {_TEN}) AS m ON b.price = m.price
)""",
            f"""SELECT "at", auction, price, bidder, date_time FROM (SELECT {_at(10)} AS "at", * FROM bid)
                QUALIFY price = MAX(price) OVER (PARTITION BY "at")""",
            windowed=True,
        ),
        Query(
            "q8",
            "who came and opened an auction within the same ten seconds",
            (PERSON, AUCTION),
            {"at": "TIMESTAMP", "id": "BIGINT", "name": "VARCHAR"},
            f"""RSTREAM(
    SELECT DISTINCT p.id, p.name FROM person {_TEN} AS p JOIN auction {_TEN} AS a ON p.id = a.seller
)""",
            f"""SELECT DISTINCT p."at", p.id, p.name FROM (SELECT {_at(10)} AS "at", * FROM person) AS p
                JOIN (SELECT {_at(10)} AS "at", seller FROM auction) AS a ON p."at" = a."at" AND p.id = a.seller""",
            windowed=True,
        ),
        Query(
            "q9",
            "the winning bids of every auction",
            (AUCTION, BID),
            {name: COLUMNS[AUCTION][name] for name in ("id", "item_name", "seller", "category", "expires")}
            | {name: _BID_COLUMNS[name] for name in ("bidder", "price", "date_time")},
            *_table(_Q9),
            keys=("id",),
            instead="bids of the same price win together; the suite takes the first of them",
        ),
        Query(
            "q10",
            "every bid with its day and minute",
            (BID,),
            _PASSED | {"day": "DATE", "minute": "VARCHAR"},
            *_stream(_Q10),
            instead="one folder; the suite has a folder for each minute",
        ),
        Query(
            "q11",
            "who has ended a session, which is bids with less than ten seconds between them, and when",
            (BID,),
            {"at": "TIMESTAMP", "bidder": "BIGINT"},
            "DSTREAM(SELECT bidder FROM bid [RANGE 10 SECONDS] GROUP BY bidder)",
            """SELECT MAX(date_time) + INTERVAL 10 SECONDS AS "at", bidder FROM (
                   SELECT bidder, date_time, SUM(fresh) OVER (PARTITION BY bidder ORDER BY date_time) AS session FROM (
                       SELECT bidder, date_time, CASE WHEN date_time - INTERVAL 10 SECONDS
                           <= LAG(date_time) OVER (PARTITION BY bidder ORDER BY date_time) THEN 0 ELSE 1 END AS fresh
                       FROM bid)) GROUP BY bidder, session""",
            windowed=True,
            instead="written with DSTREAM and DISTINCT: the end of a session, without the number of its bids; "
            "with SESSION it is among the examples",
        ),
        Query(
            "q12",
            "the bids of every bidder in every ten seconds",
            (BID,),
            {"at": "TIMESTAMP", "bidder": "BIGINT", "bids": "BIGINT"},
            f"RSTREAM(SELECT bidder, COUNT(*) AS bids FROM bid {_TEN} GROUP BY bidder)",
            f"""SELECT "at", bidder, COUNT(*) AS bids FROM (SELECT {_at(10)} AS "at", bidder FROM bid)
                GROUP BY "at", bidder""",
            windowed=True,
            instead="ten seconds by the time of the bids; the suite goes by the clock, and its answers differ",
        ),
        Query(
            "q13",
            "every bid with what a table says of its auction",
            (BID, SIDE),
            _PASSED | {"value": "VARCHAR"},
            """ISTREAM(SELECT b.auction, b.bidder, b.price, b.date_time, b.extra, s.value
FROM bid [NOW] AS b JOIN side_input AS s ON b.auction % 10000 = s.key)""",
            """SELECT b.auction, b.bidder, b.price, b.date_time, b.extra, s.value
               FROM bid AS b JOIN side_input AS s ON b.auction % 10000 = s.key""",
        ),
        Query(
            "q14",
            "bids of some prices, with a calculation",
            (BID,),
            _PASSED | {"price": "DECIMAL(24, 3)", "bid_time": "VARCHAR", "c_counts": "BIGINT"},
            *_stream(_Q14),
        ),
        Query(
            "q15",
            "bids, bidders and auctions of every day, by price",
            (BID,),
            {"day": "DATE"} | _NUMBERS | _DISTINCTS,
            *_table(_Q15),
            keys=("day",),
        ),
        Query(
            "q16",
            "bids, bidders and auctions of every channel and day, by price",
            (BID,),
            {"channel": "VARCHAR", "day": "DATE"} | _NUMBERS | _DISTINCTS,
            *_table(_Q16),
            keys=("channel", "day"),
            instead="without the minute of the last bid",
        ),
        Query(
            "q17",
            "bids and prices of every auction and day",
            (BID,),
            {"auction": "BIGINT", "day": "DATE"}
            | _NUMBERS
            | {"min_price": "BIGINT", "max_price": "BIGINT", "avg_price": "DOUBLE", "sum_price": "HUGEINT"},
            *_table(_Q17),
            keys=("auction", "day"),
        ),
        Query(
            "q18",
            "the last bid of every bidder on every auction",
            (BID,),
            _BID_COLUMNS,
            "SELECT * FROM bid [PARTITION BY bidder, auction ROWS 1]",
            """SELECT * FROM bid
               QUALIFY ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) = 1""",
            keys=("bidder", "auction"),
        ),
        Query(
            "q19",
            "the ten highest bids of every auction",
            (BID,),
            _BID_COLUMNS | {"rank_number": "BIGINT"},
            """SELECT * FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS rank_number FROM bid
) WHERE rank_number <= 10""",
            f"""SELECT *, ROW_NUMBER() OVER (
                   PARTITION BY auction ORDER BY price DESC, {", ".join(_BID_COLUMNS)}) AS rank_number
               FROM bid QUALIFY rank_number <= 10""",
            keys=("auction", "rank_number"),
            instead="bids of one price by their other columns, where the suite takes any",
        ),
        Query(
            "q20",
            "the bids on auctions of a category, with the auction",
            (AUCTION, BID),
            _BID_COLUMNS
            | {
                {"date_time": "opened", "extra": "auction_extra"}.get(name, name): kind
                for name, kind in COLUMNS[AUCTION].items()
                if name != "id"
            },
            *_joined(_Q20),
        ),
        Query(
            "q21",
            "bids with the number of their channel",
            (BID,),
            {name: _BID_COLUMNS[name] for name in ("auction", "bidder", "price", "channel")}
            | {"channel_id": "VARCHAR"},
            *_stream(_Q21),
            instead="by splitting the address, where the suite has a regular expression",
        ),
        Query(
            "q22",
            "bids with the folders of their address",
            (BID,),
            {name: _BID_COLUMNS[name] for name in ("auction", "bidder", "price", "channel")}
            | {"dir1": "VARCHAR", "dir2": "VARCHAR", "dir3": "VARCHAR"},
            *_stream(_Q22),
        ),
    )
}
"""By name, in the order of the suite."""
