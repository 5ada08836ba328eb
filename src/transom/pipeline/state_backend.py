"""The state backend of a partition: its state from batch to batch, in a log that survives everything and in a cache.

**The log.** A batch appends what came for the partition. When the log has grown as large as the memory itself, the
memory is written instead and the log before it dropped: so what is written stays in proportion to what comes, however
large the windows are; and where little is alive after a batch, just that little is written. Memory is made again by
reading the last one written and taking the steps since then once more: steps depend on nothing but memory and frames,
and on what was decided in them by a clock or a budget, which is written down beside the frames.

**Cached state** is what a worker holds ready to use. It is used only if its token is that of the log's header: a new
one is drawn for every step, so what a step left behind that was never committed is recognised and not trusted.
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
from transom.pipeline.fragment_partition import FragmentPartition
from transom.pipeline.frames import FRAMES, Buffer, Message
from transom.pipeline.layout import SINK
from transom.pipeline.partition_state import PARTITION_CLASSES, PartitionState
from transom.planner.fingerprint import of_another_plan
from transom.state import codec

LEAST_BYTES: Final = 1 << 16
"""An entry counts for so much at least: to take many small steps again takes time, too."""


class WrittenLog(Protocol):
    """A log as it was left."""

    def header(self) -> str | None: ...

    def read(self, entry: int, part: int) -> bytes: ...


class WrittenEntry(NamedTuple):
    """In how many parts an entry was written, and how many bytes that were."""

    parts: int
    bytes: int


class Log(WrittenLog, Protocol):
    """Where the log lies. Everything written in a batch becomes valid together or not at all."""

    def write_header(self, header: str) -> None: ...

    def write(self, entry: int, buffers: Iterable[Buffer]) -> WrittenEntry:
        """An entry, the pieces one after the other."""
        ...

    def remove(self, entry: int, part: int) -> None: ...


class StateCache(Protocol):
    """State that a worker holds ready to use."""

    def take(self, token: str) -> PartitionState | None:
        """The memory with this token, if it is here; from then on it counts as used up."""
        ...

    def put(self, token: str, state: PartitionState) -> None: ...


@dataclass
class Header:
    """`parts[i]` is how many parts entry `first + i` has. The first entry is a snapshot, or all are log.

    `reached_times` is how far time had come: state that is made again must come to the same.
    """

    plan: str
    fragment: int
    partition: int
    token: str = ""
    first: int = 0
    parts: list[int] = field(default_factory=list)
    log_bytes: int = 0
    snapshot: bool = False
    reached_times: dict[str, int | None] = field(default_factory=dict)

    def entries(self) -> Iterator[tuple[int, int]]:
        """All parts of all entries."""
        return ((self.first + i, part) for i, count in enumerate(self.parts) for part in range(count))

    def text(self) -> str:
        return json.dumps(list(vars(self).values()))

    @staticmethod
    def of(text: str) -> Header:
        return Header(*json.loads(text))


@dataclass(frozen=True)
class KeptStep:
    """What a step gave, and what it cost to keep: bytes written, and whether the memory had to be made again."""

    messages: list[Message]
    written: int
    rebuilt: bool


Start = Callable[[], bytes | None]
"""The memory that a partition begins with, as it was written; None: it knows nothing yet."""


def step(
    partition: FragmentPartition,
    log: Log,
    cache: StateCache,
    came: Sequence[Message],
    start: Start = lambda: None,
    send: Callable[[Sequence[Message]], Iterable[Message]] = lambda messages: messages,
) -> KeptStep:
    """Take a step with the partition's memory and keep what became of it.

    `send` may take rows out of what goes on from here, as they are. What is left of it is packed: rows may lie where
    cached state was, whose room is given to others as soon as it is put down again.
    """
    plan = partition.layout.fingerprint
    text = log.header()
    header = Header(plan, partition.fragment.number, partition.partition) if text is None else Header.of(text)
    if header.plan != plan:
        raise of_another_plan()
    state = cache.take(header.token) if header.token else None
    rebuilt = state is None and bool(header.token)
    partition.state = state or _rebuilt(partition, log, header, start)
    gone = [*partition.step(came), partition.status()]
    # Where rows are written that leave, and where the log is, has nothing to do with each other.
    with ThreadPoolExecutor(1, "transom-answer") as beside:
        sent = beside.submit(lambda: [message.closed() for message in send(gone)])
        written = _append(partition, log, header, came)
        messages = sent.result()
    header.token = secrets.token_hex(8)
    header.reached_times = partition.reached_times
    partition.give_back()
    log.write_header(header.text())
    if not partition.ended:  # else nobody comes for it, and who does finds it in the log
        cache.put(header.token, partition.state)
    return KeptStep(messages, written, rebuilt)


def recovered(partition: FragmentPartition, log: WrittenLog, start: Start = lambda: None) -> PartitionState:
    """The memory of a partition that has taken a step, by its log alone."""
    return _rebuilt(partition, log, Header.of(log.header() or ""), start)


def _rebuilt(partition: FragmentPartition, log: WrittenLog, header: Header, start: Start) -> PartitionState:
    """The memory as of the header."""
    saved = None if header.snapshot else start()
    partition.state = partition.start() if saved is None else partition.restored(saved, PARTITION_CLASSES)
    for i, count in enumerate(header.parts):
        entry = header.first + i
        data = b"".join(log.read(entry, part) for part in range(count))
        if i == 0 and header.snapshot:
            partition.state = partition.restored(data, PARTITION_CLASSES)
        else:
            partition.step(*_apart(data))
    _reject_another_past(partition, header)
    return partition.state


def _reject_another_past(partition: FragmentPartition, header: Header) -> None:
    """What was emitted rests on the time that had been reached: under another law rows would be emitted twice, or
    never."""
    reached = partition.reached_times
    other = next((name for name, at in header.reached_times.items() if reached.get(name) != at), None)
    if other is not None:
        came, had = (_instant(at) for at in (reached.get(other), header.reached_times[other]))
        raise CheckpointError(
            f"memory was made again from its log, and the time of {other} came to {came}, where it had come to {had}",
            remedy="declare streams as they were, put the checkpoint back from a copy, or start with an empty folder",
        )


def _instant(at: int | None) -> str:
    return "nothing" if at is None else format_instant(at)


def _append(partition: FragmentPartition, log: Log, header: Header, came: Sequence[Message]) -> int:
    size = sum(message.size for message in came)
    entry = header.first + len(header.parts)
    size = max(size, LEAST_BYTES)
    if header.log_bytes + size > codec.saved_bytes(partition.state):
        for old_entry, part in header.entries():
            log.remove(old_entry, part)
        written = log.write(entry, codec.buffers(partition.state))
        header.first, header.parts, header.log_bytes, header.snapshot = entry, [], 0, True
    else:
        written = log.write(entry, _together(came, partition.decisions.made))
        header.log_bytes += size
    header.parts.append(written.parts)
    return written.bytes


def _together(came: Sequence[Message], decided: Sequence[Any]) -> Iterator[Buffer]:
    """All that came, and behind it how long each message is: they are packed one by one as they are written."""
    sizes = []
    for message in came:
        sizes.append(0)
        for buffer in message.buffers():
            sizes[-1] += len(buffer)
            yield buffer
    tail = json.dumps([sizes, decided]).encode()
    yield tail
    yield len(tail).to_bytes(4, "little")


def _apart(data: bytes) -> tuple[list[Message], list[Any]]:
    buffer, end = pa.py_buffer(data), len(data) - 4
    sizes, decided = json.loads(data[end - int.from_bytes(data[end:], "little") : end])
    messages: list[Message] = []
    at = 0
    for size in sizes:
        messages.append(Message(SINK, 0, FRAMES, buffer[at : at + size]))  # whose they are, is known
        at += size
    return messages, decided
