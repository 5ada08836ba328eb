"""Windows by their definition: the table of semantics.md, literally."""

from __future__ import annotations

from collections.abc import Sequence

from transom.core.time import BEGINNING, FOREVER, to_datetime
from transom.plan.algebra import WindowSpec, WindowTableSpec
from transom.runtimes.reference.admission import Lifetime, TimedRow
from transom.runtimes.reference.history import Row, grouped


def lifetimes(rows: Sequence[TimedRow], spec: WindowSpec, tick: int) -> list[Lifetime]:
    """The lifetime of each row of a stream (given in stream order); rows that are in no snapshot are left out."""
    if spec.session is not None:
        lives = _by_sessions(rows, spec)
    elif spec.slide is not None:
        lives = _slide_by_rows(rows, spec) if spec.range is None else _slide_by_time(rows, spec)
    else:
        lives = _plain(rows, spec, tick)
    return [life for life in lives if life.ta < FOREVER and (life.te is None or life.ta < life.te)]


def _plain(rows: Sequence[TimedRow], spec: WindowSpec, tick: int) -> list[Lifetime]:
    successors = _successors(rows, spec)
    lives = []
    for i, row in enumerate(rows):
        if spec.now:
            end: int | None = min(row.t + tick, FOREVER)
        elif spec.unbounded:
            end = FOREVER
        else:
            by_time = None if spec.range is None else min(row.t + spec.range, FOREVER)
            ends = [end for end in (by_time, successors[i]) if end is not None]
            end = min(ends) if ends else None
        lives.append(Lifetime(row.values, row.t, end))
    return lives


def _by_sessions(rows: Sequence[TimedRow], spec: WindowSpec) -> list[Lifetime]:
    """[t, last + G)."""
    assert spec.session is not None
    return [
        Lifetime(row.values, row.t, min(session[-1].t + spec.session, FOREVER))
        for session in sessions(rows, spec.partition or (), spec.session)
        for row in session
    ]


def without_repeats(rows: Sequence[TimedRow], partition: Sequence[int], length: int) -> list[TimedRow]:
    """A row passes if none of its key passed in (t - T, t]."""
    passed: list[TimedRow] = []
    for row in rows:
        key = grouped(row.values[k] for k in partition)
        if not any(row.t - length < p.t and grouped(p.values[k] for k in partition) == key for p in passed):
            passed.append(row)
    return passed


def _successors(rows: Sequence[TimedRow], spec: WindowSpec) -> list[int | None]:
    """For each row the time of the N-th next row of its partition, None while that has not arrived."""
    if spec.rows is None:
        return [None] * len(rows)
    partitions: dict[Row, list[int]] = {}
    for i, row in enumerate(rows):
        partitions.setdefault(grouped(row.values[k] for k in spec.partition or ()), []).append(i)
    successors: list[int | None] = [None] * len(rows)
    for members in partitions.values():
        for index, i in enumerate(members):
            if index + spec.rows < len(members):
                successors[i] = rows[members[index + spec.rows]].t
    return successors


def _slide_by_time(rows: Sequence[TimedRow], spec: WindowSpec) -> list[Lifetime]:
    """Sampled at the multiples of S since the epoch and held: [ceil(t/S)S, ceil((t+T)/S)S)."""
    assert spec.range is not None and spec.slide is not None and spec.rows is None
    return [
        Lifetime(
            row.values,
            _ceiling(row.t, spec.slide),
            min(_ceiling(row.t + spec.range, spec.slide), FOREVER),
        )
        for row in rows
    ]


def _slide_by_rows(rows: Sequence[TimedRow], spec: WindowSpec) -> list[Lifetime]:
    """Row i (from 1) lives from row ceil(i/M)M to row ceil((i+N)/M)M; a last partial step never shows."""
    assert spec.rows is not None and spec.slide is not None
    lives = []
    for i, row in enumerate(rows, start=1):
        first = _ceiling(i, spec.slide)
        last = _ceiling(i + spec.rows, spec.slide)
        if first <= len(rows):
            lives.append(Lifetime(row.values, rows[first - 1].t, rows[last - 1].t if last <= len(rows) else None))
    return lives


def _ceiling(number: int, step: int) -> int:
    """The least multiple of the step that is not below the number.

    >>> _ceiling(7, 5), _ceiling(10, 5), _ceiling(-7, 5)
    (10, 10, -5)
    """
    return -(-number // step) * step


def in_windows(rows: Sequence[TimedRow], spec: WindowTableSpec, tick: int) -> list[Lifetime]:
    """The lifetimes of each row, one for every window that holds it, from the instant at which the window is over."""
    if spec.slide is None:
        return _in_sessions(rows, spec, tick)
    lives = []
    for row in rows:
        start = (row.t - spec.offset) // spec.slide * spec.slide + spec.offset
        while start + spec.size > row.t:
            lives += _entering(row, start, start + spec.size, start + spec.size - tick)
            start -= spec.slide
    return lives


def _in_sessions(rows: Sequence[TimedRow], spec: WindowTableSpec, tick: int) -> list[Lifetime]:
    lives = []
    for session in sessions(rows, spec.partition or (), spec.size):
        end = session[-1].t + spec.size
        for row in session:
            lives += _entering(row, session[0].t, end, end)
    return lives


def sessions(rows: Sequence[TimedRow], partition: Sequence[int], gap: int) -> list[list[TimedRow]]:
    """The rows of a key, each at most the gap after the one before; exactly so much is the same session."""
    in_order: list[list[TimedRow]] = []
    latest: dict[Row, list[TimedRow]] = {}
    for row in rows:
        key = grouped(row.values[k] for k in partition)
        session = latest.get(key)
        if session is None or row.t - session[-1].t > gap:
            session = latest[key] = []
            in_order.append(session)
        session.append(row)
    return in_order


def _entering(row: TimedRow, start: int, end: int, at: int) -> list[Lifetime]:
    """The row with its window; none where the window is not within the time domain."""
    if start < BEGINNING or end > FOREVER or at >= FOREVER:
        return []
    bounds = (to_datetime(start), to_datetime(end), to_datetime(at))
    return [Lifetime((*row.values, *bounds), at, FOREVER)]
