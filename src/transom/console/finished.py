"""The queries of a checkpoint, as far as it tells: nothing runs, and nothing is written."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from transom.connectors.connector import Opening
from transom.connectors.tapped import AnswerTap
from transom.console.board import ShownQuery
from transom.core.errors import CheckpointError, TransomError
from transom.monitoring.snapshot import iso
from transom.program.checkpoint_folder import MANIFEST, STATE, put, read
from transom.program.checkpoint_manifest import Manifest
from transom.program.explained import Explained
from transom.program.live_answer import LiveView
from transom.runtimes.local.intake import InputReading
from transom.state import codec

if TYPE_CHECKING:
    from transom.console.feed import Feed

_LEDGER: Final = ("rows_in", "used", "late", "rejected", "waiting")
_SPARK_STATUS: Final = "status.json"

HISTORY: Final = "history.json"
"""The file of a checkpoint with what a console knew of the last run when that ended."""

Json = dict[str, Any]


class CheckpointBoard:
    """The board of a run that is over, or that another process goes on with: its checkpoint is read once."""

    over = True

    def __init__(self, folder: str) -> None:
        data = read(os.path.join(folder, MANIFEST))
        if data is None:
            raise CheckpointError(
                f"there is no checkpoint in '{folder}'", remedy="give the folder that --checkpoint was given"
            )
        self._folder = folder
        self._manifest = Manifest.read(data.decode(errors="replace"), folder)
        self._remembered = _remembered_of(folder)
        jobs = self._jobs() if self._manifest.runtime == "local" else []
        self._queries = [self._shown(name, about, jobs) for name, about in self._manifest.queries.items()]

    @property
    def about(self) -> str:
        return f"a checkpoint of the {self._manifest.runtime} runtime"

    def queries(self) -> Sequence[ShownQuery]:
        return self._queries

    def dead_letters(self) -> None:
        """None: dead letters are not in a checkpoint."""

    def _shown(self, name: str, about: Mapping[str, Json], jobs: Sequence[Json]) -> ShownQuery:
        facts = about[f"query '{name}'"]
        inputs = [fact.partition(" ")[2].strip("'") for fact in about if fact.startswith(("stream ", "table "))]
        job = next((job for job in jobs if name in job["sinks"]), None)
        status = self._status(name, inputs, job)
        latest = None if job is None else job["latest"].get(name)
        remembered = self._remembered.get(name, {})
        status |= {"operators": remembered.get("operators", []), "partitions": remembered.get("partitions", [])}
        plans = remembered.get("plans")
        return ShownQuery(
            name,
            str(facts["text"]),
            lambda: dict(status),
            lambda: Explained.of(remembered.get("explain") or "", plans) if plans else None,
            _kept(latest),
            over=True,
            past=remembered.get("series", {}),
        )

    def _status(self, name: str, inputs: Sequence[str], job: Json | None) -> Json:
        readings: Mapping[str, InputReading] = {} if job is None else job["readings"]
        ended = bool(readings) and all(reading.complete for reading in readings.values())
        input_of = {each: _input(each, readings.get(each)) for each in inputs}
        progress, rows_out = None, 0
        if job is not None and (shown := json.loads(job.get("shown", "{}")).get(name)):
            progress, rows_out = iso(shown["progress"]), shown["rows_out"]
            for each, (*counts, watermark) in shown["inputs"].items():
                ledger = zip(_LEDGER, counts, strict=True)
                input_of[each.lower()] |= {**dict(ledger), "name": each, "watermark": iso(watermark)}
        if self._manifest.runtime == "spark":
            progress, rows_out = self._read_spark(name, input_of)
            ended = bool(input_of) and all(each["ended"] for each in input_of.values())
        return {
            "name": name,
            "runtime": self._manifest.runtime,
            "state": "finished" if ended else "stopped",
            "progress": progress,
            "lag_seconds": None,
            "held_back_by": None,
            "rows_in": sum(each["rows_in"] for each in input_of.values()),
            "rows_out": rows_out,
            "batches": 0 if job is None else int(job["steps"]),
            "inputs": list(input_of.values()),
            "operators": [],
            "overload": None,
            "error": None,
        }

    def _jobs(self) -> list[Json]:
        """What each of the queries that run together keeps, of the runtime in one process."""
        data = read(os.path.join(self._folder, STATE))
        if data is None:
            return []
        return [codec.decode(part.tobytes(), (InputReading,)) for part in codec.decode(data, ())]

    def _read_spark(self, name: str, inputs: dict[str, Json]) -> tuple[str | None, int]:
        """What the partitions reported last: where the rows of every input went, how far the answer is out, and how
        many rows it had."""
        reported = self._reported_of(name)
        for of_partition in reported:
            for each, (rows_in, late, rejected, *_) in of_partition["seen"].items():
                inputs[each]["rows_in"] += rows_in
                inputs[each]["late"] += late
                inputs[each]["rejected"] += rejected
            for each, (used, late, rejected) in of_partition["inputs"].items():
                inputs[each]["used"] += used
                inputs[each]["late"] += late
                inputs[each]["rejected"] += rejected
            for each, reasons in of_partition["reasons"].items():
                for reason, count in reasons.items():
                    inputs[each]["reasons"][reason] = inputs[each]["reasons"].get(reason, 0) + count
        for each in inputs.values():
            each["waiting"] = each["rows_in"] - each["used"] - each["late"] - each["rejected"]
            each["ended"] = any(of_partition["seen"].get(each["name"], [0] * 4)[3] for of_partition in reported)
        own = [of_partition["queries"].get(name, of_partition) for of_partition in reported]
        progress = min((of_partition["progress"] for of_partition in reported), default=None)
        return iso(progress), sum(of_partition["rows_out"] for of_partition in own)

    def _reported_of(self, name: str) -> list[Json]:
        """What was reported of a query by itself, or of all that share a join with it, in the folder of the first."""
        reported = self._reported_in(name)
        for other in self._manifest.queries if not reported else ():
            shared = self._reported_in(f"shared-{other}")
            if any(name in of_partition["queries"] for of_partition in shared):
                return shared
        return reported

    def _reported_in(self, folder: str) -> list[Json]:
        return _reported_by_partitions(os.path.join(self._folder, folder, _SPARK_STATUS))


def remember(folder: str, feed: Feed) -> None:
    """Leave what a console knows of a run that is over in its checkpoint. Nobody needs it to go on."""
    with suppress(TransomError, OSError):
        put(os.path.join(folder, HISTORY), feed.saved(), durable=False)


def _remembered_of(folder: str) -> dict[str, Json]:
    """What `remember` left; of a damaged file nothing."""
    try:
        written = json.loads(read(os.path.join(folder, HISTORY)) or b"{}")
        return {str(name): dict(of_query) for name, of_query in written.items()}
    except (AttributeError, TypeError, ValueError):
        return {}


def _reported_by_partitions(path: str) -> list[Json]:
    """What a run on Spark wrote down for whoever looks; damaged, it says nothing."""
    try:
        written = json.loads(read(path) or b"[]")
    except ValueError:
        return []
    return written if isinstance(written, list) else []


def _input(name: str, reading: InputReading | None) -> Json:
    reasons = {} if reading is None else dict(reading.reasons)
    counts = dict.fromkeys(_LEDGER, 0)
    ended = reading is not None and reading.complete
    return {
        "name": name, **counts, "watermark": None, "lag_seconds": None, "ended": ended, "reasons": reasons,
        "leap": None if reading is None else f"read up to {reading.position}",
    }  # fmt: skip


def _kept(latest: pa.RecordBatch | None) -> LiveView | None:
    """The last snapshot of an answer that is shown whole."""
    if latest is None:
        return None
    tap = AnswerTap()
    view = LiveView(tap)
    tap.opened(Opening(latest.schema, snapshots=True, form="latest"))
    tap.replace(latest)
    return view
