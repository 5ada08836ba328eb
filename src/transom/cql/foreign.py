"""What people write who come from other systems, and what to write here instead: each is rejected by its own name.

Words are looked up where reading has stopped, calls where no function is known.
"""

from __future__ import annotations

from typing import Final

from transom.cql.reader import Reader

_WINDOW: Final = "write a window behind the stream: FROM s [RANGE 1 HOUR], or [RANGE 1 HOUR SLIDE 10 MINUTES]"
_LISTS: Final = "write FROM s [..], UNNEST(s.a) AS u(x) for the elements of an array, a[1] and len(a) for parts of it"
_CHANGES: Final = "leave it out: an answer is kept up to date anyway; WITH (emit = ..) of a sink says how it is written"
_BOTH: Final = "join the inputs, and write the condition in WHERE"
_PIECES: Final = "write SUM(CASE WHEN k = 'a' THEN value END) for each column"
_NO_OVER: Final = "write a window behind the stream, such as [PARTITION BY k ROWS 10], and GROUP BY k"

CLAUSES: Final[dict[tuple[str, ...], tuple[str, str]]] = {
    ("MATCH_RECOGNIZE",): ("MATCH_RECOGNIZE", "join the stream with itself, with conditions on the times"),
    ("PIVOT",): ("PIVOT", _PIECES),
    ("UNPIVOT",): ("UNPIVOT", "write a SELECT for each column, with UNION ALL between them"),
    ("TABLESAMPLE",): ("TABLESAMPLE", "write WHERE id % 10 = 0, which is the same whenever it runs"),
    ("USING", "SAMPLE"): ("USING SAMPLE", "write WHERE id % 10 = 0, which is the same whenever it runs"),
    ("FOR", "UPDATE"): ("FOR UPDATE", "leave it out: nothing is locked"),
    ("LATERAL", "VIEW"): ("LATERAL VIEW", _LISTS),
    ("WINDOW", "TUMBLING"): ("WINDOW TUMBLING", "write FROM s [RANGE 1 HOUR SLIDE 1 HOUR]"),
    ("WINDOW", "HOPPING"): ("WINDOW HOPPING", "write FROM s [RANGE 1 HOUR SLIDE 10 MINUTES]"),
    ("WINDOW", "SESSION"): ("WINDOW SESSION", _WINDOW),
    ("WINDOW",): ("the WINDOW clause", _NO_OVER),
    ("EMIT", "FINAL"): ("EMIT FINAL", _CHANGES),
    ("EMIT", "ON"): ("EMIT ON WINDOW CLOSE", "write [RANGE .. SLIDE ..], whose answer changes when a window closes"),
    ("PARTITION", "BY"): ("PARTITION BY behind FROM", "write it in the window: FROM s [PARTITION BY k ROWS 10]"),
    ("WITHIN",): ("WITHIN", "write windows: a [RANGE 1 HOUR] JOIN b [RANGE 1 HOUR] ON .., or a condition on the times"),
    ("WITH", "TIES"): ("WITH TIES", "leave it out"),
    ("WITH", "("): ("WITH behind FROM", "leave it out: options are in CREATE STREAM .. WITH (..) and in SET"),
    ("START", "WITH"): ("START WITH", "write the steps out as named queries"),
    ("CONNECT", "BY"): ("CONNECT BY", "write the steps out as named queries"),
    ("CLUSTER", "BY"): ("CLUSTER BY", "leave it out: the planner spreads the work"),
    ("DISTRIBUTE", "BY"): ("DISTRIBUTE BY", "leave it out: the planner spreads the work"),
    ("SORT", "BY"): ("SORT BY", "leave it out: a relation has no order; sort what comes out of the sink"),
    ("SETTINGS",): ("SETTINGS", "write SET option = value before the query"),
    ("RLIKE",): ("RLIKE", "write regexp_matches(text, 'pattern')"),
    ("REGEXP",): ("REGEXP", "write regexp_matches(text, 'pattern')"),
    ("SIMILAR", "TO"): ("SIMILAR TO", "write regexp_full_match(text, 'pattern')"),
    ("ALL", "("): ("ALL", "compare with MAX or MIN: a > (every b) is a > MAX(b)"),
    ("TOP",): ("TOP", "write ORDER BY a LIMIT 10 behind the query"),
    ("MINUS", "SELECT"): ("MINUS", "write EXCEPT"),
    ("OVERLAPS",): ("OVERLAPS", "write a.start < b.stop AND b.start < a.stop"),
    ("STREAM", "*"): ("SELECT STREAM", "write SELECT ISTREAM *, or leave STREAM out"),
    ("CROSS", "APPLY"): ("CROSS APPLY", "write CROSS JOIN LATERAL (SELECT ..) AS b"),
    ("OUTER", "APPLY"): ("OUTER APPLY", "write LEFT JOIN LATERAL (SELECT ..) AS b ON TRUE"),
    ("GLOB",): ("GLOB", "write text LIKE 'a%'"),
    ("NOT", "ENFORCED"): ("NOT ENFORCED", "leave it out"),
    ("GENERATED",): ("GENERATED", "compute it in a view: CREATE VIEW v AS SELECT *, a + 1 AS b FROM s"),
    ("KEY",): ("KEY behind a column", "write PRIMARY KEY, for a TABLE; a stream has none"),
    ("SESSION", "WITH"): ("SESSION WITH GAP", "write FROM SESSION(s PARTITION BY k, ts, INTERVAL '10' MINUTE)"),
    ("PLACING",): ("PLACING", "write concat(left(text, 2), 'new', substring(text, 4))"),
    ("@",): ("@", "write list_contains(array, a) for each of the elements"),
    ("#",): ("#", "write json -> '$.a.b', or json ->> '$.a.b' for a text"),
    (":",): (":", "write CAST(a AS type) for a cast, and the name of a function alone"),
    ("~",): ("~", "write regexp_matches(text, 'pattern')"),
    ("`",): ("`", 'names stand in "double quotes"'),
}
"""Words that may stand where something else is expected: what they are, and what to write."""

STATEMENTS: Final[dict[str, str]] = {
    "UPDATE": "rows change by what comes in: declare a table with a PRIMARY KEY, or with changes = 'op'",
    "DELETE": "rows go by what comes in: declare a table with changes = 'op', and send rows with '-'",
    "MERGE": "declare a table with a PRIMARY KEY: rows replace each other on it",
    "UPSERT": "declare a table with a PRIMARY KEY: rows replace each other on it",
    "ALTER": "write CREATE OR REPLACE with the columns as they are to be",
    "TRUNCATE": "write CREATE OR REPLACE, which begins anew",
    "COPY": "write CREATE SINK out WITH (path = 'out.csv'); INSERT INTO out SELECT ..",
    "LOAD": "write CREATE TABLE t (..) WITH (path = 'rows.csv')",
    "USE": "leave it out: names have one part",
    "PIVOT": _PIECES,
    "PREPARE": "write the query with $name for a parameter, and give it where the query runs",
    "EXECUTE": "leave it out: all queries of a text run together",
    "BEGIN": "leave it out: all queries of a text run together",
    "COMMIT": "leave it out: all queries of a text run together",
    "END": "leave it out: all queries of a text run together",
    "STOP": "stop a query where it runs: query.stop() in Python, STOP in the shell",
    "TERMINATE": "stop a query where it runs: query.stop() in Python, STOP in the shell",
    "PRINT": "write SELECT * FROM name",
    "SUBSCRIBE": "write SELECT: an answer is kept up to date",
    "TAIL": "write SELECT: an answer is kept up to date",
    "DECLARE": "write SELECT: an answer is kept up to date",
    "FETCH": "write SELECT: an answer is kept up to date",
    "ANALYZE": "leave it out: the planner looks at the first rows of each input by itself",
    "REFRESH": "leave it out: views are up to date always",
    "CACHE": "leave it out: what two parts of a query share is computed once",
    "PRAGMA": "write SET option = value",
    "RESET": "write SET option = value",
    "ATTACH": "write CREATE TABLE t (..) WITH (path = '..') for each file",
    "INSTALL": "leave it out: connectors are registered in Python",
    "ADD": "leave it out: connectors are registered in Python",
    "GRANT": "leave it out: there are no users",
    "CALL": "write a query that begins with SELECT",
    "WITH": "write WITH name AS (query) SELECT ..",
}
"""First words of statements of others."""

_TIMES: Final = "write FROM s [RANGE 10 MINUTES SLIDE 5 MINUTES]: the window is behind the stream, not in the list"
_CLOCK: Final = "write FROM s [RANGE 1 HOUR] for the rows of the last hour; its time column has the time of a row"
_ARRIVAL: Final = "declare the stream WITH (time = 'arrival'), and use arrival_time"
_JSON: Final = "write CAST(text AS JSON), and json -> '$.a' or json ->> '$.a' for what is in it"
_ELEMENTS: Final = "declare an array, and write FROM s [..], UNNEST(s.a) AS u(x), with SUM(x), MIN(x) and the like"
_ONE_EACH: Final = "write ARRAY_AGG(a ORDER BY b), or ARRAY_AGG(DISTINCT a)"
_ENDS: Final = ("start", "end", "rowtime", "proctime")


def _same(remedy: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), remedy)


CALLS: Final[dict[str, str]] = {
    **_same(_TIMES, "window session_window window_time tumble hop session cumulate"),
    **{f"{window}_{end}": _TIMES for window in ("tumble", "hop", "session") for end in _ENDS},
    **_same(
        _LISTS,
        """explode posexplode unnest flatten array map struct element_at list_transform transform""",
    ),
    **_same("write string_split(text, ', '), with the separator as it is", "split regexp_split_to_array"),
    **_same(
        "write ARRAY_AGG(a ORDER BY b), which JSON lines hold as an array",
        "jsonb_agg json_agg json_group_array json_arrayagg jsonb_object_agg json_object_agg json_objectagg",
    ),
    **_same("write json_type(json), which is OBJECT, ARRAY, VARCHAR and so on", "jsonb_typeof json_typeof"),
    **_same(_ELEMENTS, "array_sum array_avg list_sum list_avg list_aggregate"),
    **_same(_ELEMENTS, "jsonb_array_elements json_array_elements jsonb_each jsonb_object_keys"),
    **_same("write concat(a, ' is ', b)", "format printf"),
    **_same(_JSON, "json_exists from_json to_json jsonb_extract_path_text json_object parse_json json_each"),
    **_same(
        _CLOCK,
        """unix_timestamp current_watermark mz_now localtimestamp getdate sysdate current_row_timestamp
        current_processing_time""",
    ),
    **_same("write a window [PARTITION BY k ROWS 1] behind the stream", "latest_by_offset earliest_by_offset"),
    **_same("write MAX, or a window [PARTITION BY k ROWS 3] for the last three", "topk topkdistinct"),
    **_same(_ONE_EACH, "collect"),
    **_same("write ts + INTERVAL '1' DAY, or ts + n * INTERVAL '1' DAY", "timestampadd date_add dateadd adddate"),
    **_same("write ts - INTERVAL '1' DAY, or date_diff('day', earlier, later)", "date_sub datesub subdate"),
    **_same("write date_diff('second', earlier, later), or epoch(later - earlier)", "timestampdiff age"),
    "months_between": "write date_diff('month', earlier, later)",
    **_same("write epoch_ms(milliseconds)", "to_timestamp_ltz from_unixtime timestamp_millis"),
    **_same(
        "write ts AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin'",
        "convert_tz convert_timezone from_utc_timestamp to_utc_timestamp",
    ),
    **_same("write regexp_extract(text, 'pattern', 1)", "regexp_match regexp_extract_all regexp_substr"),
    "substring_index": "write split_part(text, '/', 1); for more parts regexp_extract(text, '([^/]*/[^/]*)', 1)",
    "truncate": "write trunc(x), or trunc(x * 100) / 100",
    "try_divide": "write a / nullif(b, 0)",
    **_same("write if(a IS NULL, 0, a)", "zeroifnull"),
    **_same("write array_length(array), which is NULL where that is", "size"),
    **_same(
        "write {'a': x, ..}: a struct is written as an object to JSON lines", "jsonb_build_object json_build_object"
    ),
    "sort_array": "write ARRAY_AGG(a ORDER BY a), whose elements are in order",
    "width_bucket": "write least(greatest(floor((x - low) / width) + 1, 0), n + 1)",
    **_same("write the character itself, in quotes", "chr char unichr"),
    "row": "write (a, b), or {'a': 1} for one field",
    "nvl2": "write CASE WHEN a IS NOT NULL THEN b ELSE c END",
    "isnull": "write a IS NULL, or coalesce(a, b)",
    "decode": "write CASE a WHEN 1 THEN 'x' ELSE 'y' END",
    "convert": "write CAST(value AS type)",
    "try": "write TRY_CAST(value AS type)",
    "initcap": "write upper(left(text, 1)) || lower(substring(text, 2))",
    "hash": "write md5(text)",
    "date_bin": "write time_bucket(INTERVAL '5 minutes', ts)",
    "product": "write exp(SUM(ln(a))) where all are above 0",
    "reverse": "it is not offered: what a letter is differs between systems",
    "columns": "name the columns one by one",
    **_same("write a IN (b, c), a IN (SELECT ..), or list_contains(array, a)", "any some"),
    "table": "write the name of the stream, with a window behind it: FROM s [RANGE 10 MINUTES SLIDE 10 MINUTES]",
    **_same(
        "write FROM 'rows.csv', with the path alone",
        "read_csv read_parquet read_json read_csv_auto parquet_scan",
    ),
}
"""Functions of others."""

_NESTED: Final = "declare JSON, or a STRUCT(a INTEGER, ..)"
TYPES: Final[dict[str, str]] = {
    "MULTISET": "declare an array, as in INTEGER[]",
    **dict.fromkeys(("MAP", "VARIANT", "SUPER"), _NESTED),
    **dict.fromkeys(
        ("BYTES", "BINARY", "VARBINARY", "BYTEA", "BLOB"), "declare VARCHAR, with the bytes as hexadecimal digits"
    ),
    "UUID": "declare VARCHAR",
    "TIME": "declare TIMESTAMP, or INTEGER for the seconds of a day",
    **dict.fromkeys(("SERIAL", "BIGSERIAL", "IDENTITY"), "declare BIGINT, and number the rows before they come in"),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"), "declare BIGINT or HUGEINT"),
    "MONEY": "declare DECIMAL(18, 2)",
    "NUMBER": "declare DECIMAL(18, 3), BIGINT or DOUBLE",
    "ENUM": "declare VARCHAR",
}
"""Types of others."""


def reject_clause(reader: Reader, behind: int = 0) -> None:
    """Rejects what others write where reading has come to; `behind` words back for what was taken for a name."""
    if reader.word(-behind).capitals not in _FIRST_WORDS:  # as nearly always: it is called at each name
        return
    for words, (what, remedy) in CLAUSES.items():
        if all(reader.word(i - behind).capitals == word for i, word in enumerate(words)):
            start = reader.word(-behind)
            if start.kind == "name" and len(words) == 1 and words[0] not in _ALONE and not _goes_on(reader, behind):
                continue  # it may be a name like any other
            reader.reject(f"{what} is not supported", remedy, start)


_FIRST_WORDS: Final = frozenset(words[0] for words in CLAUSES)
_ALONE: Final = ("RLIKE", "REGEXP", "GLOB", "GENERATED", "KEY")
"""Words that are no names where they are looked up."""


def _goes_on(reader: Reader, behind: int) -> bool:
    """Whether something follows that follows no name."""
    follower = reader.word(1 - behind)
    return follower.text == "(" or follower.kind in ("number", "text") or follower.kind == "name"


COLUMNS: Final[dict[str, str]] = {
    "rowtime": "the time of a row is a column that CREATE STREAM declares: WATERMARK FOR ts AS ts",
    "proctime": _ARRIVAL,
    **dict.fromkeys(("windowstart", "windowend", "window_start", "window_end"), _TIMES),
}
"""Columns that others have without declaring them."""

LITERALS: Final[dict[str, str]] = {
    "TIME": "write TIMESTAMP '..', or the hour(ts) of one",
    **dict.fromkeys(("X", "B", "E", "U", "N"), "write a text in 'quotes', with no letter before it"),
}
"""Words before a text in quotes."""
