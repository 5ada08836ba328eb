"""Keeps the memory of a bucket from batch to batch: in a log that survives everything, and warm beside it.

**The log.** A batch appends what came for the bucket. When the log has grown as large as the memory itself, the memory
is written instead and the log before it dropped: so what is written stays in proportion to what comes, however large
the windows are; and where little is alive after a batch, just that little is written. Memory is made again by reading
the last one written and taking the steps since then once more: steps depend on nothing but memory and cargo, and on
what was decided in them by a clock or a budget, which is written down beside the cargo.

**Warm memory** is what a worker holds ready to use. It is used only if its token is that of the log's header: a new one
is drawn for every step, so what a step left behind that was never committed is recognised and not trusted.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa

from transom.core.errors import CheckpointError
from transom.core.time import format_instant
from transom.pipeline.bucket import Bucket
from transom.pipeline.bucket_state import BUCKET_CLASSES, BucketState
from transom.pipeline.cargo import CARGO, Parcel, Piece
from transom.pipeline.layout import SINK
from transom.planner.fingerprint import of_another_plan
from transom.state import codec

LEAST_BYTES: Final = 1 << 16
"""An entry counts for so much at least: to take many small steps again takes time, too."""


class WrittenLog(Protocol):
    """A log as it was left."""

    def header(self) -> str | None: ...

    def read(self, entry: int, part: int) -> bytes: ...


class Written(NamedTuple):
    """In how many parts an entry was written, and how many bytes that were."""

    parts: int
    bytes: int


class Log(WrittenLog, Protocol):
    """Where the log lies. Everything written in a batch becomes valid together or not at all."""

    def write_header(self, header: str) -> None: ...

    def write(self, entry: int, pieces: Iterable[Piece]) -> Written:
        """An entry, the pieces one after the other."""
        ...

    def remove(self, entry: int, part: int) -> None: ...


class Warm(Protocol):
    """Memory that is ready to use."""

    def take(self, token: str) -> BucketState | None:
        """The memory with this token, if it is here; from then on it counts as used up."""
        ...

    def put(self, token: str, state: BucketState) -> None: ...


@dataclass
class Header:
    """`parts[i]` is how many parts entry `first + i` has. The first entry is a memory, or else all are of the log.

    `frontier` is how far time had come: memory that is made again must come to the same.
    """

    plan: str
    fragment: int
    bucket: int
    token: str = ""
    first: int = 0
    parts: list[int] = field(default_factory=list)
    log_bytes: int = 0
    memory: bool = False
    frontier: dict[str, int | None] = field(default_factory=dict)

    def entries(self) -> Iterator[tuple[int, int]]:
        """All parts of all entries."""
        return ((self.first + i, part) for i, count in enumerate(self.parts) for part in range(count))

    def text(self) -> str:
        return json.dumps(list(vars(self).values()))

    @staticmethod
    def of(text: str) -> Header:
        return Header(*json.loads(text))


@dataclass(frozen=True)
class Kept:
    """What a step gave, and what it cost to keep: bytes written, and whether the memory had to be made again."""

    parcels: list[Parcel]
    written: int
    rebuilt: bool


Start = Callable[[], bytes | None]
"""The memory that a bucket begins with, as it was written; None: it knows nothing yet."""


def step(
    bucket: Bucket,
    log: Log,
    warm: Warm,
    came: Sequence[Parcel],
    start: Start = lambda: None,
    send: Callable[[Sequence[Parcel]], Iterable[Parcel]] = lambda parcels: parcels,
) -> Kept:
    """Take a step with the bucket's memory and keep what became of it.

    `send` may take rows out of what goes on from here, as they are. What is left of it is packed: rows may lie where
    warm memory was, whose room is given to others as soon as it is put down again.
    """
    plan = bucket.layout.fingerprint
    known = log.header()
    header = Header(plan, bucket.fragment.number, bucket.bucket) if known is None else Header.of(known)
    if header.plan != plan:
        raise of_another_plan()
    state = warm.take(header.token) if header.token else None
    rebuilt = state is None and bool(header.token)
    bucket.state = state or _rebuilt(bucket, log, header, start)
    gone = [*bucket.step(came), bucket.status()]
    # Where rows are written that leave, and where the log is, has nothing to do with each other.
    with ThreadPoolExecutor(1, "transom-answer") as beside:
        sent = beside.submit(lambda: [parcel.closed() for parcel in send(gone)])
        written = _append(bucket, log, header, came)
        parcels = sent.result()
    header.token = secrets.token_hex(8)
    header.frontier = bucket.frontier
    log.write_header(header.text())
    if not bucket.ended:  # else nobody comes for it, and who does finds it in the log
        warm.put(header.token, bucket.state)
    return Kept(parcels, written, rebuilt)


def recalled(bucket: Bucket, log: WrittenLog, start: Start = lambda: None) -> BucketState:
    """The memory of a bucket that has taken a step, by its log alone."""
    return _rebuilt(bucket, log, Header.of(log.header() or ""), start)


def _rebuilt(bucket: Bucket, log: WrittenLog, header: Header, start: Start) -> BucketState:
    """The memory as of the header."""
    known = None if header.memory else start()
    bucket.state = bucket.start() if known is None else bucket.restored(known, BUCKET_CLASSES)
    for i, count in enumerate(header.parts):
        entry = header.first + i
        data = b"".join(log.read(entry, part) for part in range(count))
        if i == 0 and header.memory:
            bucket.state = bucket.restored(data, BUCKET_CLASSES)
        else:
            bucket.step(*_apart(data))
    _refuse_another_past(bucket, header)
    return bucket.state


def _refuse_another_past(bucket: Bucket, header: Header) -> None:
    """What was told rests on the time that had been reached: under another law rows would be told twice, or never."""
    found = bucket.frontier
    other = next((name for name, at in header.frontier.items() if found.get(name) != at), None)
    if other is not None:
        came, had = (_instant(at) for at in (found.get(other), header.frontier[other]))
        raise CheckpointError(
            f"memory was made again from its log, and the time of {other} came to {came}, where it had come to {had}",
            remedy="declare streams as they were, put the checkpoint back from a copy, or start with an empty folder",
        )


def _instant(at: int | None) -> str:
    return "nothing" if at is None else format_instant(at)


def _append(bucket: Bucket, log: Log, header: Header, came: Sequence[Parcel]) -> int:
    size = sum(parcel.size for parcel in came)
    entry = header.first + len(header.parts)
    size = max(size, LEAST_BYTES)
    if header.log_bytes + size > codec.saved_bytes(bucket.state):
        for known, part in header.entries():
            log.remove(known, part)
        written = log.write(entry, codec.pieces(bucket.state))
        header.first, header.parts, header.log_bytes, header.memory = entry, [], 0, True
    else:
        written = log.write(entry, _together(came, bucket.decisions.made))
        header.log_bytes += size
    header.parts.append(written.parts)
    return written.bytes


def _together(came: Sequence[Parcel], decided: Sequence[Any]) -> Iterator[Piece]:
    """All that came, and behind it how long each parcel is: they are packed one by one as they are written."""
    sizes = []
    for parcel in came:
        sizes.append(0)
        for piece in parcel.pieces():
            sizes[-1] += len(piece)
            yield piece
    tail = json.dumps([sizes, decided]).encode()
    yield tail
    yield len(tail).to_bytes(4, "little")


def _apart(data: bytes) -> tuple[list[Parcel], list[Any]]:
    buffer, end = pa.py_buffer(data), len(data) - 4
    sizes, decided = json.loads(data[end - int.from_bytes(data[end:], "little") : end])
    found: list[Parcel] = []
    at = 0
    for size in sizes:
        found.append(Parcel(SINK, 0, CARGO, buffer[at : at + size]))  # whose they are, is known
        at += size
    return found, decided
