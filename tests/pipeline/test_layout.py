from __future__ import annotations

from tests.pipeline.spread_queries import laid_out
from transom.pipeline.layout import Layout

JOINED = "SELECT m.k FROM s [RANGE 5 SECONDS] AS m, s [RANGE 9 SECONDS] AS o WHERE m.k = o.x"


def sent(layout: Layout) -> dict[str, list[str]]:
    """The columns that travel through every channel of a source."""
    found = {}
    for channel in layout.channels:
        if channel.exchange.source is not None:
            columns = layout.sources[channel.exchange.source.lower()].columns
            found[channel.name] = [columns[i].name for i in channel.columns]
    return found


def test_levels_follow_the_rows() -> None:
    layout = laid_out(
        "SELECT x, COUNT(*) AS n FROM (SELECT x, COUNT(*) AS m FROM s [ROWS 9] GROUP BY x) AS v GROUP BY x"
    )
    assert layout.stage_count == len(layout.fragments) == 2
    assert [layout.partitions_of(fragment.number) for fragment in layout.fragments] == [1, 3]
    grouped = "(SELECT {0}, COUNT(*) AS n FROM {1} [NOW] GROUP BY {0}) AS {2}"
    two = f"{grouped.format('k', 's', 'm')}, {grouped.format('x', 't', 'o')}"
    side_by_side = laid_out(f"SELECT m.k FROM {two} WHERE m.n = o.n")
    assert side_by_side.stage_number == {1: 1, 2: 1, 3: 2, 4: 3}
    assert side_by_side.accountant == 1
    assert [channel.name for channel in side_by_side.channels_from(3)] == ["4.0"]


def test_one_channel_accounts_for_a_source_that_is_read_twice() -> None:
    layout = laid_out(JOINED)
    channels = layout.channels_of("s")
    assert [str(channel.exchange.partitioning) for channel in channels] == ["by (k)", "by (x)"]
    assert [channel.accounts for channel in channels] == [True, False]
    assert layout.channels_into(1) == channels


def test_columns_that_nobody_reads_do_not_travel() -> None:
    assert sent(laid_out("SELECT COUNT(*) AS n FROM d [RANGE 5 SECONDS] WHERE k > 1")) == {"1.0": ["ts", "k"]}
    assert sent(laid_out("SELECT x FROM d [ROWS 2]")) == {"1.0": ["x"]}


def test_where_a_late_row_may_be_shown_and_of_tables_all_columns_travel() -> None:
    assert sent(laid_out("SELECT x FROM t [ROWS 2]")) == {"1.0": ["ts", "k", "x"]}
    assert sent(laid_out("SELECT k FROM r")) == {"1.0": ["ts", "op", "k"]}
    assert sent(laid_out("SELECT m.k FROM d [NOW] AS m, names WHERE m.k = names.k"))["1.1"] == ["k", "label"]


def test_rows_without_an_order_travel_whole_only_where_somebody_counts_them() -> None:
    counted, ranged = (
        laid_out(f"SELECT x FROM d [{window}]", unordered=frozenset({"d"})) for window in ("ROWS 2", "RANGE 2 SECONDS")
    )
    assert sent(counted) == {"1.0": ["ts", "k", "x"]} and sent(ranged) == {"1.0": ["x"]}
    assert counted.by_value("d") and not ranged.by_value("d")


def test_another_number_of_partitions_is_another_layout() -> None:
    one, same = laid_out(JOINED, 2), laid_out(JOINED, 2)
    assert one.fingerprint == same.fingerprint
    others = [laid_out(JOINED, 3), laid_out(JOINED, 2, emit="lifetimes"), laid_out(JOINED, 2, unordered=frozenset("s"))]
    assert len({one.fingerprint, *(other.fingerprint for other in others)}) == 4


def test_only_who_tells_changes_wants_equal_rows_to_meet() -> None:
    text = "SELECT x FROM s [RANGE 5 SECONDS]"
    assert [len(laid_out(text, emit=emit).fragments) for emit in ("changes", "lifetimes", "latest")] == [2, 1, 1]
    assert len(laid_out(f"ISTREAM({text})").fragments) == len(laid_out(f"ISTREAM({text})", emit="latest").fragments)
