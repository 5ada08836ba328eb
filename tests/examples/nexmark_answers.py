"""What DuckDB says to the queries of examples/nexmark, over all events; as in the benchmark if that asks the same."""

from __future__ import annotations

from typing import Final

from benchmarks.nexmark.queries import QUERIES

_VALID: Final = "FROM auction AS a JOIN bid AS b ON a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires"
_WIN: Final = "QUALIFY ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time) = 1"
_DAY: Final = "strftime(date_time, '%Y-%m-%d')"
_TEN: Final = "time_bucket(INTERVAL 10 SECONDS, date_time)"
_SESSIONS: Final = """
    SELECT bidder, date_time, SUM(fresh) OVER (PARTITION BY bidder ORDER BY date_time) AS session FROM (
        SELECT bidder, date_time, CASE WHEN date_time - INTERVAL 10 SECONDS
            <= LAG(date_time) OVER (PARTITION BY bidder ORDER BY date_time) THEN 0 ELSE 1 END AS fresh FROM bid)"""


def _columns(names: str, name: str) -> str:
    return f"SELECT {names} FROM ({QUERIES[name].sql})"


def _days_as_texts(name: str) -> str:
    return f"SELECT * REPLACE (strftime(day, '%Y-%m-%d') AS day) FROM ({QUERIES[name].sql})"


ANSWERS: Final = {
    **{name: QUERIES[name].sql for name in ("q0", "q1", "q2", "q3", "q4", "q14", "q18", "q19", "q20", "q21", "q22")},
    "q5": _columns("auction, num", "q5"),
    "q6": f"""SELECT seller, AVG(price) FROM (
                  SELECT seller, price FROM (SELECT a.seller, b.price, b.date_time {_VALID} {_WIN})
                  QUALIFY ROW_NUMBER() OVER (PARTITION BY seller ORDER BY date_time DESC) <= 10)
              GROUP BY seller""",
    "q7": f"""SELECT auction, bidder, price, date_time, extra FROM bid
              QUALIFY price = MAX(price) OVER (PARTITION BY {_TEN})""",
    "q8": _columns("""id, name, "at" - INTERVAL 10 SECONDS""", "q8"),
    "q9": f"SELECT a.*, b.auction, b.bidder, b.price, b.date_time, b.extra {_VALID} {_WIN}",
    "q10": f"SELECT auction, bidder, price, date_time, extra, {_DAY}, strftime(date_time, '%H:%M') FROM bid",
    "q11": f"""SELECT bidder, COUNT(*), MIN(date_time), MAX(date_time) + INTERVAL 10 SECONDS FROM ({_SESSIONS})
               GROUP BY bidder, session""",
    "q12": f"SELECT bidder, COUNT(*), {_TEN}, {_TEN} + INTERVAL 10 SECONDS FROM bid GROUP BY ALL",
    "q13": _columns("auction, bidder, price, date_time, value", "q13"),
    "q15": _days_as_texts("q15"),
    "q16": f"""SELECT q.channel, strftime(q.day, '%Y-%m-%d'), m.minute, q.* EXCLUDE (channel, day)
               FROM ({QUERIES["q16"].sql}) AS q
               JOIN (SELECT channel, CAST(date_time AS DATE) AS day, MAX(strftime(date_time, '%H:%M')) AS minute
                     FROM bid GROUP BY ALL) AS m ON q.channel = m.channel AND q.day = m.day""",
    "q17": _days_as_texts("q17"),
}
"""By name; columns by their place."""
