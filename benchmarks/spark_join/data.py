"""What the join on Spark is measured on: the cells, their Parquet files, and the exact answer as a digest.

Row number i of a stream carries the instant START + i milliseconds, so every row is known by its instant, and a digest
over the instants of a result says whether these are the right pairs. It does not depend on the order of the rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

START: Final = 1_704_067_200_000_000  # 2024-01-01, in microseconds; Spark's own join drops rows at the epoch
SEED: Final = 7
STREAMS: Final = ("a", "b")
COLUMNS: Final = ("a_ts", "b_ts", "k", "a_v", "b_v", "a_s", "b_s")
"""Of a result."""
MILLISECOND: Final = 1_000
TEXT_BYTES: Final = 16

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Cell:
    """One size of the question. A window of n rows is one of n milliseconds: each stream brings one a millisecond."""

    name: str
    batch_rows: int
    window_rows: int
    keys: int
    batches: int
    settling: int = 1

    @property
    def window_ms(self) -> int:
        return self.window_rows

    @property
    def unsteady(self) -> int:
        """How many batches do not count: the first or more, and those before the window is full."""
        return max(self.settling, -(-self.window_rows // self.batch_rows))


@dataclass(frozen=True)
class Measured:
    """What a contestant reports of a run: of each of its batches the seconds, the input rows of both streams, and the
    bytes of state written, where it knows them. `start_s` is what went before the query: the session, for the first.
    """

    settings: Mapping[str, str]
    start_s: float
    batch_s: tuple[float, ...]
    batch_rows: tuple[int, ...]
    state_bytes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Digest:
    """Rows, and sums modulo 2^64 over them: equal for equal results, in whatever order."""

    rows: int
    pairs: int
    payload: int


def write_cell(cell: Cell, folder: Path) -> None:
    """A folder for each stream with a file for each batch, whose ages stand in their order."""
    for number, stream in enumerate(STREAMS):
        random = np.random.default_rng((SEED, number))
        into = folder / stream
        into.mkdir(parents=True)
        for batch in range(cell.batches):
            path = into / f"batch-{batch:04d}.parquet"
            pq.write_table(_rows(cell, batch, random), path, use_dictionary=False, row_group_size=cell.batch_rows)
            age = START // 1_000_000 + batch  # Spark takes files by their age
            os.utime(path, (age, age))


def _rows(cell: Cell, batch: int, random: np.random.Generator) -> pa.Table:
    n = cell.batch_rows
    instants = START + np.arange(batch * n, (batch + 1) * n, dtype=np.int64) * MILLISECOND
    letters = np.frombuffer(b"abcdefghijklmnop", dtype=np.uint8)[random.integers(0, 16, n * TEXT_BYTES, dtype=np.uint8)]
    offsets = np.arange(n + 1, dtype=np.int32) * TEXT_BYTES
    return pa.table(
        {
            "ts": pa.array(instants).cast(pa.timestamp("us", "UTC")),
            "k": random.integers(0, cell.keys, n),
            "v": random.integers(0, 1_000, n),
            "s": pa.StringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(letters)),
        }
    )


def files_of(folder: Path, batches: int) -> dict[str, list[Path]]:
    """The first so many files of each stream."""
    return {stream: sorted((folder / stream).glob("*.parquet"))[:batches] for stream in STREAMS}


def exact_answer(cell: Cell, folder: Path, batches: int) -> Digest:
    """The arbiter: the join of the first so many batches, batch by batch of b, by binary search among sorted rows of a.

    It reads the same files as the contestants, and has neither windows nor state.
    """
    files = files_of(folder, batches)
    a = pq.read_table(files["a"])
    total = len(a)
    # One number holds key and row number, so that a key and a stretch of time are one stretch of sorted numbers.
    codes = _integers(a["k"]) * total + _row_numbers(a["ts"])
    order = np.argsort(codes)
    codes = codes[order]
    digests = []
    for path in files["b"]:
        b = pq.read_table(path)
        rows, keys = _row_numbers(b["ts"]), _integers(b["k"]) * total
        first = np.searchsorted(codes, keys + np.maximum(rows - cell.window_rows + 1, 0), "left")
        last = np.searchsorted(codes, keys + np.minimum(rows + cell.window_rows - 1, total - 1), "right")
        counts = last - first
        of_b = np.repeat(np.arange(len(b)), counts)
        within = np.arange(len(of_b)) - np.repeat(np.cumsum(counts) - counts, counts)
        matched_a, matched_b = a.take(order[first[of_b] + within]), b.take(of_b)
        columns = [
            matched_a["ts"],
            matched_b["ts"],
            matched_a["k"],
            matched_a["v"],
            matched_b["v"],
            matched_a["s"],
            matched_b["s"],
        ]
        digests.append(digest(pa.table(dict(zip(COLUMNS, columns, strict=True)))))
    return _together(digests)


def written_answer(folder: Path) -> Digest:
    """Of the Parquet files that a contestant left, whichever columns they have besides."""
    parts: Iterator[pa.Table] = (
        pa.Table.from_batches([batch])
        for path in sorted(folder.rglob("*.parquet"))
        for batch in pq.ParquetFile(path).iter_batches(500_000, columns=list(COLUMNS))
    )
    return _together([digest(part) for part in parts])


def digest(result: pa.Table) -> Digest:
    if not len(result):
        return Digest(0, 0, 0)
    a, b = (_row_numbers(result[name]).astype(np.uint64) for name in ("a_ts", "b_ts"))
    payload = _integers(result["k"]).astype(np.uint64)
    for factor, name in ((3, "a_v"), (5, "b_v")):
        payload = payload + np.uint64(factor) * _integers(result[name]).astype(np.uint64)
    for factor, name in ((7, "a_s"), (11, "b_s")):
        payload = payload + np.uint64(factor) * _text_words(result[name])
    pair = _mixed(_mixed(a) + b)
    return Digest(len(result), _sum(pair), _sum(_mixed(payload + pair)))


def _row_numbers(instants: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    return (_integers(instants.cast(pa.timestamp("us", instants.type.tz)).cast(pa.int64())) - START) // MILLISECOND


def _integers(values: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    numbers: npt.NDArray[np.int64] = values.to_numpy()
    return numbers


def _text_words(texts: pa.ChunkedArray) -> Words:
    """The letters of each text as one number."""
    whole: Any = texts.cast(pa.binary()).cast(pa.binary(TEXT_BYTES)).combine_chunks()
    letters = np.frombuffer(whole.buffers()[1], dtype=np.uint64)
    start = whole.offset * TEXT_BYTES // 8
    words = letters[start : start + len(texts) * TEXT_BYTES // 8].reshape(-1, 2)
    return words[:, 0] + np.uint64(13) * words[:, 1]


def _mixed(numbers: Words) -> Words:
    """The finishing steps of SplitMix64: close numbers become far ones."""
    mixed = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _sum(numbers: Words) -> int:
    return int(np.add.reduce(numbers, dtype=np.uint64))


def _together(digests: Sequence[Digest]) -> Digest:
    return Digest(
        sum(digest.rows for digest in digests),
        sum(digest.pairs for digest in digests) % 2**64,
        sum(digest.payload for digest in digests) % 2**64,
    )
