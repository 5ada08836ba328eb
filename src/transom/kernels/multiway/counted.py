"""What a join of many knows of itself: the statistics that its planner would like to have, counted from its own rows.

Keys are counted as they are among the rows alive of all inputs together, so skew, and keys that one input has and
another has not, show. Of many rows those of some keys are counted, by the hash of the key; which ones changes from time
to time, so that a key that many rows have is among them now and then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from transom.kernels import scalar
from transom.kernels.alive_rows import KeptRows
from transom.kernels.keys import Hashes, encode_keys, hash_words, single_word
from transom.kernels.multiway.graph import JoinGraph
from transom.kernels.multiway.node import MultiwayJoin
from transom.kernels.multiway.statistics import (
    InputStatistics,
    JoinStatistics,
    KeyCounts,
    of,
    predicates_over,
)
from transom.plan.expression import columns_of, remap

COUNTED = 1 << 14
"""Rows of a class of keys that are counted, about, if there are more."""


@dataclass(frozen=True)
class Passed:
    """What has passed since some time: rows by input, and results. `turn` says which keys are counted where not all of
    them are."""

    came: Sequence[int]
    results: int
    turn: int


def counted(node: MultiwayJoin, graph: JoinGraph, kept: Sequence[KeptRows], passed: Passed) -> JoinStatistics:
    """Of the rows alive that are kept, and of what has passed."""
    inputs = tuple(
        InputStatistics(float(rows), float(own.alive), "sampled") for own, rows in zip(kept, passed.came, strict=True)
    )
    classes = _alike(node)
    members = tuple(of(inputs_of_class) for inputs_of_class in classes.values())
    keys = []
    for together, inputs_of_class in classes.items():
        hashes = {i: _hashes(graph, i, together, kept[i]) for i in sorted(inputs_of_class)}
        keys.append(_counts(hashes, graph.count, passed.turn))
    plain = JoinStatistics(inputs, members, tuple(keys))
    over = predicates_over(node)
    if not over:
        return plain
    born = plain.births(plain.all)
    passing = min(1.0, max(float(passed.results), 0.5) / born) if born > 0.5 else 1.0
    return JoinStatistics(inputs, members, tuple(keys), tuple((each, passing ** (1 / len(over))) for each in over))


def _alike(node: MultiwayJoin) -> dict[tuple[int, ...], frozenset[int]]:
    """Classes of keys that the same inputs are in are one key, of several columns; and these inputs."""
    by_inputs: dict[frozenset[int], list[int]] = {}
    for c in range(len(node.keys[0])):
        by_inputs.setdefault(frozenset(i for i, own in enumerate(node.keys) if own[c] is not None), []).append(c)
    return {tuple(together): inputs for inputs, together in by_inputs.items()}


def _counts(hashes: dict[int, Hashes], count: int, turn: int) -> KeyCounts:
    larger = 1 << (sum(map(len, hashes.values())) // COUNTED).bit_length()
    if larger > 1:
        picked = np.uint64(turn % larger)
        hashes = {i: own[(own >> np.uint64(40)) & np.uint64(larger - 1) == picked] for i, own in hashes.items()}
    _, numbers = np.unique(np.concatenate(list(hashes.values())), return_inverse=True)
    now = np.zeros((count, int(numbers.max(initial=-1)) + 1))
    first = 0
    for i, own in hashes.items():
        now[i] = np.bincount(numbers[first : first + len(own)], minlength=now.shape[1])
        first += len(own)
    total = now.sum(1, keepdims=True)
    return KeyCounts(now, now, total, total, growth=1.0, larger=float(larger), least=0.0)


def _hashes(graph: JoinGraph, i: int, together: tuple[int, ...], own: KeptRows) -> Hashes:
    """Of the keys of the rows of an input that have them; equal keys of other inputs have the same."""
    expressions = [key for c in together if (key := graph.keys[i][c]) is not None]
    read = sorted({column for key in expressions for column in columns_of(key)})
    slots = own.used()
    columns = own.rows.gather(slots, [graph.types[i][column] for column in read], read)
    values = pa.RecordBatch.from_arrays(columns, names=[str(column) for column in read])
    where = {column: at for at, column in enumerate(read)}
    keys = [scalar.evaluate(remap(key, where), values) for key in expressions]
    if single_word(keys):
        hashes, null = hash_words(keys)
    else:
        encoded = encode_keys(keys, len(slots))
        hashes, null = encoded.hashes, encoded.null
    return hashes[~null] if null.any() else hashes
