"""NEXMark by Spark's own Structured Streaming, as somebody who knows it would write it.

Where an answer changes (`keys`), the changed rows of every micro-batch are written (update mode, which files take by
`foreachBatch` alone), each with the number of its batch; other answers are appended. Windows are reported when the
watermark has passed them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.spark_join.rival import SETTINGS
from transom.core.errors import UnsupportedError

FILES_A_BATCH: Final = 4
"""A million events, where the files have a quarter of one each."""

RIVAL: Final = SETTINGS | {
    "spark.sql.shuffle.partitions": "2",
    # The watermark of the last rows closes windows, in a batch of its own.
    "spark.sql.streaming.noDataMicroBatches.enabled": "true",
}

_COUNTS: Final = (
    "COUNT(*) AS bids",
    "COUNT(CASE WHEN price < 10000 THEN 1 END) AS rank1_bids",
    "COUNT(CASE WHEN price >= 10000 AND price < 1000000 THEN 1 END) AS rank2_bids",
    "COUNT(CASE WHEN price >= 1000000 THEN 1 END) AS rank3_bids",
)

Read = Callable[[str], Any]


def run_query(
    spark: Any, name: str, keys: Sequence[str], columns: Mapping[str, Mapping[str, str]], source: Path, out: Path
) -> None:
    """To the end of the files; the answer is in `out/out`. `columns` are those of each stream, with their types."""
    if name in UNSUPPORTED:
        raise UnsupportedError(f"Spark's own streaming cannot run {name}: {UNSUPPORTED[name]}")

    def read(stream: str) -> Any:
        schema = ", ".join(f"{column} {kind}" for column, kind in columns[stream].items()).replace("VARCHAR", "STRING")
        reader = spark.read if stream == "side_input" else spark.readStream.option("maxFilesPerTrigger", FILES_A_BATCH)
        return reader.schema(schema).parquet(str(source / stream))

    answer, target = _ANSWERS[name](read), str(out / "out")
    writing = answer.writeStream.option("checkpointLocation", str(out / "checkpoint")).trigger(availableNow=True)
    if keys:
        from pyspark.sql import functions as sql

        def write(rows: Any, batch: int) -> None:
            rows.withColumn("batch", sql.lit(batch)).write.mode("append").parquet(target)

        query = writing.outputMode("update").foreachBatch(write).start()
    else:
        query = writing.format("parquet").option("path", target).start()
    query.awaitTermination()


def _bids(*columns: str, where: str = "TRUE") -> Callable[[Read], Any]:
    return lambda read: read("bid").where(where).selectExpr(*columns)


def _q3(read: Read) -> Any:
    auctions = read("auction").where("category = 10").select("id", "seller")
    people = read("person").where("state IN ('OR', 'ID', 'CA')").selectExpr("id AS person", "name", "city", "state")
    return auctions.join(people, auctions.seller == people.person).select("name", "city", "state", "id")


def _windowed(read: Read, stream: str, size: str, slide: str | None = None) -> Any:
    from pyspark.sql import functions as sql

    return read(stream).withWatermark("date_time", "0 seconds").withColumn("w", sql.window("date_time", size, slide))


def _q5(read: Read) -> Any:
    """The auctions of a window are collected, few thousands of them, since several may have the most bids."""
    from pyspark.sql import functions as sql

    counts = _windowed(read, "bid", "10 seconds", "2 seconds").groupBy("w", "auction").agg(sql.count("*").alias("num"))
    windows = counts.groupBy("w").agg(
        sql.max("num").alias("most"), sql.expr("collect_list(struct(auction, num)) AS all")
    )
    best = windows.selectExpr("w.end AS at", "inline(filter(all, x -> x.num = most))")
    return best.select("at", "auction", "num")


def _q7(read: Read) -> Any:
    """Of several bids of the highest price it takes one."""
    from pyspark.sql import functions as sql

    bids = _windowed(read, "bid", "10 seconds")
    best = bids.groupBy("w").agg(sql.expr("max(struct(price, auction, bidder, date_time)) AS b"))
    return best.selectExpr("w.end AS at", "b.auction", "b.price", "b.bidder", "b.date_time")


def _q8(read: Read) -> Any:
    people = _windowed(read, "person", "10 seconds").select("w", "id", "name")
    sellers = _windowed(read, "auction", "10 seconds").selectExpr("w AS v", "seller")
    pairs = people.join(sellers, (people.w == sellers.v) & (people.id == sellers.seller))
    return pairs.dropDuplicates(["w", "id"]).selectExpr("w.end AS at", "id", "name")


def _q11(read: Read) -> Any:
    from pyspark.sql import functions as sql

    bids = read("bid").withWatermark("date_time", "0 seconds")
    sessions = bids.groupBy(sql.session_window("date_time", "10 seconds").alias("w"), "bidder").agg(sql.count("*"))
    return sessions.selectExpr("w.end AS at", "bidder")


def _q12(read: Read) -> Any:
    from pyspark.sql import functions as sql

    counts = _windowed(read, "bid", "10 seconds").groupBy("w", "bidder").agg(sql.count("*").alias("bids"))
    return counts.selectExpr("w.end AS at", "bidder", "bids")


def _q13(read: Read) -> Any:
    from pyspark.sql import functions as sql

    bids, side = read("bid"), sql.broadcast(read("side_input"))
    joined = bids.join(side, bids.auction % 10_000 == side.key)
    return joined.select("auction", "bidder", "price", "date_time", "extra", "value")


def _q17(read: Read) -> Any:
    from pyspark.sql import functions as sql

    prices = (
        "MIN(price) AS min_price",
        "MAX(price) AS max_price",
        "AVG(price) AS avg_price",
        "SUM(price) AS sum_price",
    )
    bids = read("bid").groupBy("auction", sql.expr("CAST(date_time AS DATE) AS day"))
    return bids.agg(*(sql.expr(aggregate) for aggregate in (*_COUNTS, *prices)))


def _q18(read: Read) -> Any:
    from pyspark.sql import functions as sql

    last = sql.expr("max_by(struct(price, channel, url, date_time, extra), date_time) AS b")
    return read("bid").groupBy("bidder", "auction").agg(last).select("bidder", "auction", "b.*")


def _q20(read: Read) -> Any:
    auctions = read("auction").where("category = 10").selectExpr(
        "id", "item_name", "description", "initial_bid", "reserve", "date_time AS opened", "expires", "seller",
        "category", "extra AS auction_extra",
    )  # fmt: skip
    bids = read("bid")
    return bids.join(auctions, bids.auction == auctions.id).drop("id")


_ANSWERS: Final[dict[str, Callable[[Read], Any]]] = {
    "q0": _bids("auction", "bidder", "price", "date_time", "extra"),
    "q1": _bids("auction", "bidder", "0.908 * price AS price", "date_time", "extra"),
    "q2": _bids("auction", "price", where="auction % 123 = 0"),
    "q3": _q3,
    "q5": _q5,
    "q7": _q7,
    "q8": _q8,
    "q10": _bids(
        "auction", "bidder", "price", "date_time", "extra", "CAST(date_time AS DATE) AS day",
        "date_format(date_time, 'HH:mm') AS minute",
    ),
    "q11": _q11,
    "q12": _q12,
    "q13": _q13,
    "q14": _bids(
        "auction", "bidder", "0.908 * price AS price",
        "CASE WHEN hour(date_time) >= 8 AND hour(date_time) <= 18 THEN 'dayTime' "
        "WHEN hour(date_time) <= 6 OR hour(date_time) >= 20 THEN 'nightTime' ELSE 'otherTime' END AS bid_time",
        "date_time", "extra", "CAST(length(extra) - length(replace(extra, 'c', '')) AS BIGINT) AS c_counts",
        where="0.908 * price > 1000000 AND 0.908 * price < 50000000",
    ),
    "q17": _q17,
    "q18": _q18,
    "q20": _q20,
    "q21": _bids(
        "auction", "bidder", "price", "channel",
        "CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' "
        "WHEN 'baidu' THEN '3' ELSE regexp_extract(url, 'channel_id=([^&]*)', 1) END AS channel_id",
        where="contains(url, 'channel_id=') OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')",
    ),
    "q22": _bids(
        "auction", "bidder", "price", "channel", "split_part(url, '/', 4) AS dir1", "split_part(url, '/', 5) AS dir2",
        "split_part(url, '/', 6) AS dir3",
    ),
}  # fmt: skip

_AFTER_A_JOIN: Final = "an aggregate that changes cannot stand behind a join of streams"
_DISTINCT: Final = "there is no COUNT(DISTINCT ..) over a stream"
_RANKS: Final = "there is no ROW_NUMBER() over a stream"
UNSUPPORTED: Final = {"q4": _AFTER_A_JOIN, "q9": _AFTER_A_JOIN, "q15": _DISTINCT, "q16": _DISTINCT, "q19": _RANKS}
"""What it cannot run, and why."""
