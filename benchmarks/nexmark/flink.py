"""NEXMark by Flink's SQL, run as a program of its own by an interpreter that has `apache-flink` and nothing of Transom.

It speaks the protocol of `processes`: jobs as lines of JSON on its input, answered on its output. Flink's
format for Parquet (`flink-sql-parquet`, and the Hadoop classes that it wants) has to be among the jars of PyFlink.
Answers that change are written as Debezium's JSON, since Flink appends only to Parquet; they are netted by its
mini-batches. Its event time counts milliseconds, so windows go by a column of their own.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

ANSWER = "benchmark-answer "
SETTINGS = {
    "parallelism.default": "2",
    "table.local-time-zone": "UTC",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "1 s",
    "table.exec.mini-batch.size": "50000",
    "table.optimizer.agg-phase-strategy": "AUTO",
    "table.optimizer.distinct-agg.split.enabled": "true",
}
SOURCES = {
    "person": "id BIGINT, name STRING, email_address STRING, credit_card STRING, city STRING, state STRING, "
    "date_time TIMESTAMP(6), extra STRING",
    "auction": "id BIGINT, item_name STRING, description STRING, initial_bid BIGINT, reserve BIGINT, "
    "date_time TIMESTAMP(6), expires TIMESTAMP(6), seller BIGINT, category BIGINT, extra STRING",
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, date_time TIMESTAMP(6), "
    "extra STRING",
    "side_input": "key BIGINT, `value` STRING",
}
ROWTIME = ", rt AS CAST(date_time AS TIMESTAMP(3)), WATERMARK FOR rt AS rt"
PASSED = "auction BIGINT, bidder BIGINT, price BIGINT, date_time TIMESTAMP(6), extra STRING"
TEN = "INTERVAL '10' SECOND"
DAY = "CAST(date_time AS DATE)"
RANKS = {"1": "price < 10000", "2": "price >= 10000 AND price < 1000000", "3": "price >= 1000000"}
COUNTS = "COUNT(*), " + ", ".join(f"COUNT(*) FILTER (WHERE {which})" for which in RANKS.values())
DISTINCT = ", ".join(
    f"COUNT(DISTINCT {of}), " + ", ".join(f"COUNT(DISTINCT {of}) FILTER (WHERE {which})" for which in RANKS.values())
    for of in ("bidder", "auction")
)
BIDS_OF = "bids BIGINT, rank1_bids BIGINT, rank2_bids BIGINT, rank3_bids BIGINT"
DISTINCT_OF = ", ".join(
    f"{rank}{of}s BIGINT" for of in ("bidder", "auction") for rank in ("", "rank1_", "rank2_", "rank3_")
)
HOT = (
    "SELECT auction, COUNT(*) AS num, window_start, window_end FROM TABLE(HOP(TABLE bid, DESCRIPTOR(rt), "
    f"INTERVAL '2' SECOND, {TEN})) GROUP BY auction, window_start, window_end"
)
VALID = "a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires"
CHANNEL = (
    "CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'"
)

# By name: the columns of the answer, the query, and whether the answer changes.
QUERIES: dict[str, tuple[str, str, bool]] = {
    "q0": (PASSED, "SELECT auction, bidder, price, date_time, extra FROM bid", False),
    "q1": (
        PASSED.replace("price BIGINT", "price DECIMAL(24, 3)"),
        "SELECT auction, bidder, CAST(0.908 * price AS DECIMAL(24, 3)), date_time, extra FROM bid",
        False,
    ),
    "q2": ("auction BIGINT, price BIGINT", "SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0", False),
    "q3": (
        "name STRING, city STRING, state STRING, id BIGINT",
        "SELECT p.name, p.city, p.state, a.id FROM auction AS a JOIN person AS p ON a.seller = p.id "
        "WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')",
        False,
    ),
    "q4": (
        "category BIGINT, average DOUBLE",
        "SELECT category, AVG(CAST(final AS DOUBLE)) FROM (SELECT a.id, a.category, MAX(b.price) AS final "
        f"FROM auction AS a JOIN bid AS b ON {VALID} GROUP BY a.id, a.category) GROUP BY category",
        True,
    ),
    "q5": (
        "`at` TIMESTAMP(3), auction BIGINT, num BIGINT",
        f"SELECT c.window_end, c.auction, c.num FROM ({HOT}) AS c JOIN (SELECT MAX(num) AS most, window_start, "
        f"window_end FROM ({HOT}) GROUP BY window_start, window_end) AS m "
        "ON c.window_start = m.window_start AND c.window_end = m.window_end AND c.num = m.most",
        False,
    ),
    "q7": (
        "`at` TIMESTAMP(3), auction BIGINT, price BIGINT, bidder BIGINT, date_time TIMESTAMP(6)",
        "SELECT b.window_end, b.auction, b.price, b.bidder, b.date_time "
        f"FROM (SELECT * FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(rt), {TEN}))) AS b JOIN (SELECT MAX(price) AS price, "
        f"window_start, window_end FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(rt), {TEN})) "
        "GROUP BY window_start, window_end) AS m ON b.window_start = m.window_start AND b.window_end = m.window_end "
        "AND b.price = m.price",
        False,
    ),
    "q8": (
        "`at` TIMESTAMP(3), id BIGINT, name STRING",
        "SELECT p.window_end, p.id, p.name FROM (SELECT id, name, window_start, window_end FROM "
        f"TABLE(TUMBLE(TABLE person, DESCRIPTOR(rt), {TEN})) GROUP BY id, name, window_start, window_end) AS p JOIN "
        f"(SELECT seller, window_start, window_end FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(rt), {TEN})) "
        "GROUP BY seller, window_start, window_end) AS a ON p.id = a.seller AND p.window_start = a.window_start "
        "AND p.window_end = a.window_end",
        False,
    ),
    "q9": (
        "id BIGINT, item_name STRING, seller BIGINT, category BIGINT, expires TIMESTAMP(6), bidder BIGINT, "
        "price BIGINT, date_time TIMESTAMP(6)",
        "WITH valid AS (SELECT a.id, a.item_name, a.seller, a.category, a.expires, b.bidder, b.price, b.date_time "
        f"FROM auction AS a JOIN bid AS b ON {VALID}), best AS (SELECT id, MAX(price) AS price FROM valid GROUP BY id) "
        "SELECT v.* FROM valid AS v JOIN best AS m ON v.id = m.id AND v.price = m.price",
        True,
    ),
    "q10": (
        PASSED + ", `day` DATE, `minute` STRING",
        f"SELECT auction, bidder, price, date_time, extra, {DAY}, DATE_FORMAT(date_time, 'HH:mm') FROM bid",
        False,
    ),
    "q11": (
        "`at` TIMESTAMP(6), bidder BIGINT",
        # The bounds of its sessions are whole milliseconds: the end is that of the last bid itself.
        f"SELECT MAX(date_time) + {TEN}, bidder FROM TABLE(SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(rt), "
        f"{TEN})) GROUP BY bidder, window_start, window_end",
        False,
    ),
    "q12": (
        "`at` TIMESTAMP(3), bidder BIGINT, bids BIGINT",
        f"SELECT window_end, bidder, COUNT(*) FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(rt), {TEN})) "
        "GROUP BY bidder, window_start, window_end",
        False,
    ),
    "q13": (
        PASSED + ", `value` STRING",
        "SELECT b.auction, b.bidder, b.price, b.date_time, b.extra, s.`value` FROM bid AS b JOIN side_input AS s "
        "ON MOD(b.auction, 10000) = s.key",
        False,
    ),
    "q14": (
        "auction BIGINT, bidder BIGINT, price DECIMAL(24, 3), bid_time STRING, date_time TIMESTAMP(6), extra STRING, "
        "c_counts BIGINT",
        "SELECT auction, bidder, CAST(0.908 * price AS DECIMAL(24, 3)), CASE WHEN HOUR(date_time) >= 8 AND "
        "HOUR(date_time) <= 18 THEN 'dayTime' WHEN HOUR(date_time) <= 6 OR HOUR(date_time) >= 20 THEN 'nightTime' "
        "ELSE 'otherTime' END, date_time, extra, "
        "CAST(CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', '')) AS BIGINT) "
        "FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000",
        False,
    ),
    "q15": (
        f"`day` DATE, {BIDS_OF}, {DISTINCT_OF}",
        f"SELECT {DAY}, {COUNTS}, {DISTINCT} FROM bid GROUP BY {DAY}",
        True,
    ),
    "q16": (
        f"channel STRING, `day` DATE, {BIDS_OF}, {DISTINCT_OF}",
        f"SELECT channel, {DAY}, {COUNTS}, {DISTINCT} FROM bid GROUP BY channel, {DAY}",
        True,
    ),
    "q17": (
        f"auction BIGINT, `day` DATE, {BIDS_OF}, min_price BIGINT, max_price BIGINT, avg_price DOUBLE, "
        "sum_price BIGINT",
        f"SELECT auction, {DAY}, {COUNTS}, MIN(price), MAX(price), AVG(CAST(price AS DOUBLE)), SUM(price) FROM bid "
        f"GROUP BY auction, {DAY}",
        True,
    ),
    "q18": (
        SOURCES["bid"],
        "SELECT auction, bidder, price, channel, url, date_time, extra FROM (SELECT *, ROW_NUMBER() OVER "
        "(PARTITION BY bidder, auction ORDER BY date_time DESC) AS place FROM bid) WHERE place <= 1",
        True,
    ),
    "q19": (
        f"{SOURCES['bid']}, rank_number BIGINT",
        "SELECT auction, bidder, price, channel, url, date_time, extra, rank_number FROM (SELECT *, ROW_NUMBER() OVER "
        "(PARTITION BY auction ORDER BY price DESC, bidder, channel, url, date_time, extra) AS rank_number FROM bid) "
        "WHERE rank_number <= 10",
        True,
    ),
    "q20": (
        f"{SOURCES['bid']}, item_name STRING, description STRING, initial_bid BIGINT, reserve BIGINT, "
        "opened TIMESTAMP(6), expires TIMESTAMP(6), seller BIGINT, category BIGINT, auction_extra STRING",
        "SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.date_time, b.extra, a.item_name, a.description, "
        "a.initial_bid, a.reserve, a.date_time, a.expires, a.seller, a.category, a.extra "
        "FROM bid AS b JOIN auction AS a ON b.auction = a.id WHERE a.category = 10",
        False,
    ),
    "q21": (
        "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, channel_id STRING",
        f"SELECT auction, bidder, price, channel, {CHANNEL} ELSE REGEXP_EXTRACT(url, 'channel_id=([^&]*)', 1) END "
        "FROM bid WHERE url LIKE '%channel_id=%' OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')",
        False,
    ),
    "q22": (
        "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, dir1 STRING, dir2 STRING, dir3 STRING",
        "SELECT auction, bidder, price, channel, SPLIT_INDEX(url, '/', 3), SPLIT_INDEX(url, '/', 4), "
        "SPLIT_INDEX(url, '/', 5) FROM bid",
        False,
    ),
}


def run(settings: dict[str, str], name: str, source: str, out: str) -> None:
    """A table environment for each query: it is a moment's work, and no name is taken twice."""
    pyflink = import_module("pyflink.table")
    tables: Any = pyflink.TableEnvironment.create(pyflink.EnvironmentSettings.in_streaming_mode())
    for setting, value in (SETTINGS | settings).items():
        tables.get_config().set(setting, value)
    for stream, columns in SOURCES.items():
        time = "" if stream == "side_input" else ROWTIME
        tables.execute_sql(f"CREATE TABLE {stream} ({columns}{time}) WITH ({_files(f'{source}/{stream}', 'parquet')})")
    columns, query, changes = QUERIES[name]
    index = _files(f"{out}/out", "debezium-json" if changes else "parquet")
    tables.execute_sql(f"CREATE TABLE answer ({columns}) WITH ({index})")
    tables.execute_sql(f"INSERT INTO answer {query}").wait()


def _files(path: str, form: str) -> str:
    text = "'connector' = 'filesystem', 'path' = 'file://{}', 'format' = '{}'".format(path.replace("'", "''"), form)
    return text + (", 'parquet.utc-timezone' = 'true'" if form == "parquet" else "")


def main(arguments: list[str]) -> int:
    settings = json.loads(arguments[0])
    import_module("pyflink.table")  # it takes seconds, which are no part of a query

    print(ANSWER + "{}", flush=True)
    for line in sys.stdin:
        message = {}
        try:
            run(settings, *json.loads(line))
        except Exception as error:  # one query of many; what it is has many classes, of Java too
            message = {"failure": str(error)[:1000]}
        print(ANSWER + json.dumps(message), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
