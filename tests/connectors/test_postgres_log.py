"""A table of PostgreSQL by its log, without a server: the messages of pgoutput, and the snapshot of the beginning."""

from __future__ import annotations

import random
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pytest

from transom.connectors.connector import Limits, Source
from transom.connectors.open import open_source
from transom.connectors.pgoutput import PgOutput
from transom.connectors.source import Position
from transom.core.errors import SourceError
from transom.cql.statements import parse_statements
from transom.plan.catalogue import Catalogue

DECLARED = """CREATE TABLE t (id INTEGER, v INTEGER, ts TIMESTAMP METADATA FROM 'timestamp', WATERMARK FOR ts AS ts)
    WITH (connector = 'postgres', url = 'postgresql://nowhere', table = 't', 'slot.name' = 's')"""
EPOCH: Final = 946_684_800_000_000
RELATION: Final = (
    b"R" + struct.pack(">I", 7) + b"public\0t\0f" + struct.pack(">H", 2)
    + b"\0id\0" + struct.pack(">Ii", 23, -1) + b"\0v\0" + struct.pack(">Ii", 23, -1)
)  # fmt: skip

Row = tuple[int | None, ...]


def change(kind: str, old: Row | None = None, new: Row | None = None, how: str = "O") -> bytes:
    """An I, U or D; `how` says whether what was before is the whole row (O) or a key (K)."""
    parts = [kind.encode(), struct.pack(">I", 7)]
    for letter, row in ((how, old), ("N", new)):
        if row is not None:
            parts += [letter.encode(), struct.pack(">H", len(row))]
            texts = [None if value is None else str(value).encode() for value in row]
            parts += [b"n" if text is None else b"t" + struct.pack(">I", len(text)) + text for text in texts]
    return b"".join(parts)


def transaction(xid: int, end: int, time: int, changes: Sequence[bytes]) -> list[tuple[int, bytes]]:
    """It ends at this place in the log; its commit begins 8 before."""
    begins = b"B" + struct.pack(">QQI", end - 8, time - EPOCH, xid)
    commits = b"C" + struct.pack(">BQQQ", 0, end - 8, end, time - EPOCH)
    return [(xid, message) for message in (begins, RELATION, *changes, commits)]


class Log:
    """A database with the table and a slot: as much of its SQL as the source speaks."""

    def __init__(self) -> None:
        self.table: dict[int, int] = {}
        self.clock = EPOCH + 1_000
        self.end = self.confirmed = 0x100
        self.next_xid = 2**32 - 20  # so that the lower half begins anew on the way
        self.open: list[int] = []
        self.committed: list[tuple[int, list[tuple[int, bytes]]]] = []

    def begin(self) -> int:
        self.next_xid += 1
        self.open.append(self.next_xid - 1)
        return self.open[-1]

    def commit(self, xid: int, changes: Sequence[bytes]) -> None:
        self.open.remove(xid)
        self.end += 16
        messages = transaction(xid & 0xFFFFFFFF, self.end, self.clock, changes)
        self.committed.append((self.end, messages))

    def transaction(self, work: Callable[[Any], Any], patience: float = 0) -> Any:
        return work(self)

    def execute(self, text: str, parameters: object = None) -> None:
        self.found = self._answer(text)

    def fetchall(self) -> Any:
        return self.found

    fetch_arrow_table = fetchall

    def _answer(self, text: str) -> Any:
        place = f"0/{self.end:X}"
        if (peeked := re.search(r"peek_binary_changes\('s', '0/(\w+)', (\d+),", text)) is not None:
            return self._peek(int(peeked[1], 16), int(peeked[2]))
        if (advanced := re.search(r"advance\(slot_name, '0/(\w+)'\)", text)) is not None:
            self.confirmed = max(self.confirmed, int(advanced[1], 16))
            return []
        if "pg_current_snapshot" in text:
            still = ",".join(map(str, sorted(self.open)))
            return [(f"{min(self.open, default=self.next_xid)}:{self.next_xid}:{still}", self.clock)]
        answers: dict[str, Any] = {
            "relreplident": [("f",)],
            "FROM pg_publication": [(1,)],
            "SELECT plugin": [("pgoutput",)],
            "relname": [("public", "t")],
            "attname": [("id",), ("v",)],
            "SELECT pg_current_wal_flush_lsn": [(place,)],
            "SELECT pg_current_wal_insert_lsn": [(place, f"0/{self.confirmed:X}")],
            "SELECT confirmed_flush_lsn": [(f"0/{self.confirmed:X}",)],
            '"id"::text': [(str(id_), str(v)) for id_, v in self.table.items()],
        }
        return next((answer for part, answer in answers.items() if part in text), [])

    def _peek(self, until: int, most: int) -> pa.Table:
        rows: list[tuple[int, bytes]] = []
        for end, messages in self.committed:
            if end - 8 >= self.confirmed:
                rows += messages
            if end >= until or len(rows) >= most:
                break
        xids, data = zip(*rows, strict=True) if rows else ((), ())
        return pa.table({"xid": pa.array(xids, pa.int64()), "data": pa.array(data, pa.binary())})


def opened(log: Log) -> Source:
    catalogue = Catalogue()
    parse_statements(DECLARED, catalogue)
    definition: Any = catalogue.relations["t"]
    source: Any = open_source(definition)
    source._database = log
    assert isinstance(source, Source)
    return source


def work(log: Log, chance: random.Random) -> None:
    """A transaction: some rows come, change and go, more than once in it. Others are in progress meanwhile."""
    while len(log.open) < 3:
        log.begin()
    log.clock += chance.choice([-5, 0, 0, 1, 7])
    changes = []
    for _ in range(chance.randrange(5)):
        id_, v = chance.randrange(6), chance.randrange(3)
        if id_ not in log.table:
            changes.append(change("I", None, (id_, v)))
            log.table[id_] = v
        elif chance.random() < 0.5:
            changes.append(change("U", (id_, log.table[id_]), (id_, v)))
            log.table[id_] = v
        else:
            changes.append(change("D", (id_, log.table.pop(id_))))
    xid = chance.choice(log.open)
    if chance.random() < 0.2:
        log.open.remove(log.begin())  # rolled back
    log.commit(xid, changes)


def rows_of(source: Source, plan: Any) -> Iterator[dict[str, Any]]:
    for split in plan.splits:
        for part in source.read_split(split):
            assert not part.rejected
            yield from part.rows.to_pylist()


@pytest.mark.parametrize("seed", range(20))
def test_the_changes_lead_to_the_table(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the batches are, whoever asks twice or begins anew, whether the slot is moved on or goes back."""
    chance = random.Random(seed)
    monkeypatch.setattr("transom.connectors.postgres_changes._AT_ONCE", chance.choice([1, 20, 1000]))
    monkeypatch.setattr("transom.connectors.postgres_changes._SETTLE_EVERY", 0.0)
    log = Log()
    for _ in range(10):
        work(log, chance)
    source, position, settled = opened(log), Position(), log.confirmed
    times: list[int] = []
    net: Counter[tuple[int, int]] = Counter()
    left, ended = 60, False
    while left > 0 or not ended:
        left -= 1
        for _ in range(chance.randrange(4) if left > 20 else 0):
            work(log, chance)
        limits = Limits(chance.choice([1, 3, 10]))
        if position and chance.random() < 0.3:
            source.plan(position, limits)  # and nobody reads it
        plan = source.plan(position, limits)
        found = list(rows_of(source, plan))
        assert found == list(rows_of(opened(log) if position and chance.random() < 0.3 else source, plan))
        for row in found:
            net[row["id"], row["v"]] += 1 if row["change"] == "+" else -1
            assert net[row["id"], row["v"]] >= 0, "a row went that was not there"
            times.append(row["ts"])
        position, ended = plan.position, plan.ended
        if chance.random() < 0.3:
            source.settle(position)
        if chance.random() < 0.2:
            source = opened(log)
        if chance.random() < 0.1:  # a server that crashes may forget how far the slot was moved on
            log.confirmed = settled
    assert +net == Counter(log.table.items())
    assert times == sorted(times)


def test_a_slot_that_was_moved_on_is_an_error() -> None:
    log = Log()
    source = opened(log)
    first = source.plan({}, Limits()).position
    for v in (1, 2):
        log.commit(log.begin(), [change("I", None, (v, v))])
    log.confirmed = log.end - 16
    with pytest.raises(SourceError, match="moved on by somebody else"):
        source.plan(first, Limits())


def test_a_clock_that_is_set_back_makes_no_change_late() -> None:
    log = Log()
    source = opened(log)
    position = source.plan({}, Limits()).position
    for v, clock in enumerate((EPOCH + 2050, EPOCH + 2030, EPOCH + 2060)):
        log.clock = clock
        log.commit(log.begin(), [change("I", None, (v, v))])
    times = []
    while not (plan := source.plan(position, Limits(1))).ended or plan.splits:
        times += [row["ts"].microsecond for row in rows_of(source, plan)]
        position = plan.position
    assert times == [2050, 2050, 2060]


def test_with_a_key_what_comes_and_goes_in_a_transaction_replaces_what_was_there() -> None:
    """A '-' has the key alone then, and may look like a row that came before it."""
    changes = [change("U", None, (5, None)), change("D", (5, None), how="K")]
    (found,) = PgOutput(("public", "t"), ["id", "v"], True).transactions(transaction(1, 100, EPOCH, changes))
    assert (found.signs, found.rows) == (["+", "-"], [["5", None], ["5", None]])
