"""What is known of the inputs of a join before it runs: what is declared, and what their first rows show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transom.core.delta import Int64s
from transom.core.time import FOREVER
from transom.kernels import scalar
from transom.kernels.multiway.node import MultiwayJoin
from transom.kernels.multiway.statistics import (
    PASSING,
    SEEN,
    Floats,
    InputStatistics,
    JoinStatistics,
    KeyCounts,
    Machine,
    bits,
    predicates_over,
)
from transom.kernels.worker_pool import measured_handover, processors
from transom.plan.catalogue import Catalogue
from transom.plan.expression import Expression, columns_of, remap
from transom.plan.options import partitions_of, time_settings
from transom.planner.statistics import RATE, DeclaredStatistics, declared_rate, input_of, members_of
from transom.program.sample import Peek, Sample, Samples

_INSTANTS: Final = (0.0, 0.15, 0.3, 0.45)
"""Where the windows are looked into: so much of the time that all samples cover before its end."""

_TUPLES: Final = 256
"""So many tuples of sampled rows are asked whether they pass a predicate."""

_Bools = npt.NDArray[np.bool_]


class SampledStatistics:
    """The statistics of one query. `peek` opens the sources that may be looked at, `where` describes the machine."""

    def __init__(self, catalogue: Catalogue, peek: Peek, where: Callable[[], Machine]) -> None:
        self._catalogue = catalogue
        self._samples = Samples(catalogue, peek, time_settings(catalogue).tick)
        self._where = where

    @property
    def machine(self) -> Machine:
        """The machine as one partition has it: the cores are busy with the others."""
        machine = self._where()
        return replace(machine, cores=max(1, machine.cores // partitions_of(self._catalogue)))

    def join(self, node: MultiwayJoin) -> JoinStatistics:
        try:
            return self._join(node)
        except Exception:  # whatever is wrong with a source is reported when it is read, and not by a guess at its size
            return DeclaredStatistics(self._catalogue).join(node)

    def _join(self, node: MultiwayJoin) -> JoinStatistics:
        declared = [declared_rate(relation, self._catalogue) for relation in node.relations]
        rates = [rate for rate in declared if rate is not None]
        samples = [self._samples.of(relation, _mean(rates)) for relation in node.relations]
        rates += [
            sample.rate
            for sample, rate in zip(samples, declared, strict=True)
            if sample is not None and sample.rate and rate is None
        ]
        usual = _mean(rates)
        inputs = tuple(
            _input(sample, rate) or input_of(relation, rate, usual)
            for relation, rate, sample in zip(node.relations, declared, samples, strict=True)
        )
        members = members_of(node)
        keys = tuple(_key_counts(node, c, samples, inputs) for c in range(len(members)))
        parts = (*node.residual, *(() if node.last is None else (node.last,)))
        residual = tuple(
            (over, _passing(part, over, node, samples)) for over, part in zip(predicates_over(node), parts, strict=True)
        )
        return JoinStatistics(inputs, members, keys, residual)


def _mean(rates: Sequence[float]) -> float:
    return sum(rates) / len(rates) if rates else RATE


def _input(sample: Sample | None, declared: float | None) -> InputStatistics | None:
    if sample is None or sample.rate is None:
        return None
    return InputStatistics(sample.rate, max(sample.alive, 1e-3), "sampled" if declared is None else "declared")


# --- keys ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _SampledKey:
    """The sample of an input that has a key: its values as numbers, -1 for those that nobody else has."""

    index: int
    values: Int64s
    ta: Int64s
    te: Int64s
    moving: bool
    """Whether rows come and go; otherwise all are there all the time."""

    def there(self, instant: int, since: int) -> _Bools:
        are_there: _Bools = (self.ta <= since) & (self.te > instant)
        return are_there


def _key_counts(
    node: MultiwayJoin, c: int, samples: Sequence[Sample | None], inputs: Sequence[InputStatistics]
) -> KeyCounts | None:
    """How often values are among the rows alive, at some instants that all samples cover."""
    members = _members(node, c, samples)
    if members is None:
        return None
    moving = [each for each in members if each.moving]
    first = max((int(each.ta[0]) for each in moving), default=0)
    last = min((int(each.ta[-1]) for each in moving), default=0)
    instants = [int(last - back * (last - first)) for back in _INSTANTS]
    lives = [float(np.median(each.te.astype(np.float64) - each.ta)) for each in moving]
    step = max(1, int(min([float(last - first), *lives]) / 8))
    now, alive = _counted(members, [(instant, instant) for instant in instants], len(inputs))
    before, alive_before = _counted(members, [(instant, instant - step) for instant in instants], len(inputs))
    shared = (now[[each.index for each in members]] > 0).sum(axis=0) > 1
    sizes = [inputs[each.index].alive / max(float(alive[each.index].mean()), 1.0) for each in moving]
    larger = max([1.0, *sizes])
    growth = 0.0 if larger < 2 else _growth(members, instants[0], first)
    return KeyCounts(now[:, shared], before[:, shared], alive, alive_before, growth, larger)


def _members(node: MultiwayJoin, c: int, samples: Sequence[Sample | None]) -> list[_SampledKey] | None:
    indexes, sampled, values = [], [], []
    for i, (own, sample) in enumerate(zip(node.keys, samples, strict=True)):
        key = own[c]
        if key is not None:
            if sample is None or not len(sample):
                return None
            indexes.append(i)
            sampled.append(sample)
            values.append(scalar.evaluate(key, sample.rows))
    numbers = _numbers(values)
    if numbers is None:
        return None
    return [
        _SampledKey(
            index,
            number,
            np.maximum(sample.ta, -FOREVER + shift) - shift,
            np.minimum(sample.te - shift, FOREVER),
            sample.rate != 0.0,
        )
        for index, number, sample, shift in zip(indexes, numbers, sampled, _shifts(sampled), strict=True)
    ]


def _numbers(values: list[pa.Array]) -> list[Int64s] | None:
    """Equal values of all inputs as equal numbers; those that one input alone has, and NULL, as -1."""
    if all(pa.types.is_integer(each.type) for each in values):
        values = [each.cast(pa.int64()) for each in values]
    if len({each.type for each in values}) > 1:
        return None
    together = pa.chunked_array(values).combine_chunks().dictionary_encode()
    numbers = together.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    by_input = np.split(numbers, np.cumsum([len(each) for each in values])[:-1])
    having = np.zeros(len(together.dictionary) + 1, np.int64)  # the last one is for -1
    for each in by_input:
        having[np.unique(each[each >= 0])] += 1
    return [np.where(having[each] > 1, each, -1) for each in by_input]


def _shifts(samples: Sequence[Sample]) -> list[int]:
    """How far each sample is moved: not where they cover much of the same time, otherwise to begin at one instant."""
    spans = [(int(each.ta[0]), int(each.ta[-1])) for each in samples if each.rate != 0.0]
    if not spans:
        return [0] * len(samples)
    both = min(last for _, last in spans) - max(first for first, _ in spans)
    if both >= 0.2 * min(last - first for first, last in spans) and both > 0:
        return [0] * len(samples)
    return [0 if each.rate == 0.0 else int(each.ta[0]) for each in samples]


def _counted(members: Sequence[_SampledKey], at: Sequence[tuple[int, int]], inputs: int) -> tuple[Floats, Floats]:
    """Rows by input and value, and by input alone, that are there at an instant and were since another."""
    width = max(int(each.values.max(initial=-1)) for each in members) + 1
    counted, alive = np.ones((inputs, len(at) * width)), np.ones((inputs, len(at)))
    for each in members:
        for m, (instant, since) in enumerate(at):
            there = each.there(instant, since)
            alive[each.index, m] = there.sum()
            values = each.values[there & (each.values >= 0)]
            counted[each.index, m * width : (m + 1) * width] = np.bincount(values, minlength=width)
    return counted, alive


def _growth(members: list[_SampledKey], instant: int, first: int) -> float:
    """What becomes of the share of pairs that match when there are twice as many rows: 0 nothing, 1 it halves."""
    middle = (instant + first) // 2
    young = [
        replace(each, te=np.where(each.ta > middle, each.te, -FOREVER)) if each.moving else each for each in members
    ]
    shares = []
    for some in (young, members):
        counted, alive = _counted(
            [replace(each, index=i) for i, each in enumerate(some)], [(instant, instant)], len(some)
        )
        pairs = [(i, j) for j in range(len(some)) for i in range(j)]
        matched = sum(float(counted[i] @ counted[j]) for i, j in pairs)
        if matched < SEEN:
            return 0.0
        shares.append(matched / sum(float(alive[i, 0] * alive[j, 0]) for i, j in pairs))
    return float(np.clip(np.log2(shares[0] / shares[1]), 0.0, 1.0))


# --- other predicates ------------------------------------------------------------------------------------------------


def _passing(part: Expression, over: int, node: MultiwayJoin, samples: Sequence[Sample | None]) -> float:
    """The share of tuples of sampled rows that pass; it is not told which of them have equal keys."""
    bounds = np.cumsum([0, *(len(relation.schema) for relation in node.relations)])
    random = np.random.default_rng(0)
    columns: dict[int, pa.Array] = {}
    for i in bits(over):
        sample = samples[i]
        if sample is None or not len(sample):
            return PASSING
        rows = pa.array(random.integers(0, len(sample), _TUPLES))
        for at in columns_of(part):
            if bounds[i] <= at < bounds[i + 1]:
                columns[at] = sample.rows.column(int(at - bounds[i])).take(rows)
    try:
        tuples = pa.RecordBatch.from_arrays(list(columns.values()), [str(at) for at in columns])
        passed = scalar.keep(remap(part, {at: k for k, at in enumerate(columns)}), tuples)
    except Exception:  # it can fail, and some of these tuples it is never asked of
        return PASSING
    return max(1.0 if passed is None else len(passed) / _TUPLES, 0.5 / _TUPLES)


# --- who brings them -------------------------------------------------------------------------------------------------


def sampling(peek: Peek, where: Callable[[], Machine]) -> Callable[[Catalogue], SampledStatistics]:
    """Makes the statistics of queries over a catalogue."""
    return partial(SampledStatistics, peek=peek, where=where)


def this_machine() -> Machine:
    """The machine of this process, which takes the rows of a stream as they come."""
    cores = processors()
    # To five microseconds: a plan is not to hang on chance.
    handover = max(5.0, 5.0 * round(measured_handover() / 5.0)) if cores > 1 else Machine.handover_us
    return Machine(cores, handover)


def in_partitions(partitions: int) -> Machine:
    """Spark: the cores are busy with other partitions, and rows come in batches."""
    return Machine(partitions=partitions, one_by_one=False)
