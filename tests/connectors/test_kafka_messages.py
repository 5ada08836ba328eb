"""What is taken over from messages, which need no broker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from transom.connectors.conform import DeclaredRows
from transom.connectors.kafka_messages import MessageBlock
from transom.connectors.message_values import JsonValues
from transom.core.schema import INTEGER, Schema


@dataclass
class Given:
    """As the client library has one."""

    at: int
    text: bytes | None = b"v"

    def offset(self) -> int:
        return self.at

    def value(self) -> bytes | None:
        return self.text

    def key(self) -> bytes | None:
        return b"k%d" % self.at

    def timestamp(self) -> tuple[int, int]:
        return 1, 1000 * self.at

    def headers(self) -> Any:
        raise AssertionError("nobody wants them")


def test_every_message_has_its_own_offset_whatever_lies_between() -> None:
    block = MessageBlock(("key", "timestamp"))
    block.add([Given(at) for at in (3, 4, 5)])
    block.add([Given(at, None if at == 8 else b"longer") for at in (6, 8, 9)])
    assert block.offsets == [3, 4, 5, 6, 8, 9]
    assert block.values == [b"v", b"v", b"v", b"longer", None, b"longer"]
    assert block.keys == [b"k%d" % at for at in block.offsets]
    assert block.stamps == [(1, 1000 * at) for at in block.offsets]
    assert (len(block), block.bytes) == (6, 15)


def test_a_field_that_appears_or_disappears_is_named() -> None:
    declared = DeclaredRows(Schema.of(("a", INTEGER), ("b", INTEGER)), None, None)
    values = [b'{"a": %d, "b": 2}' % number for number in range(40)]
    values[7], values[30], values[31] = b'{"a": 7}', b'{"a": 1, "c": 2, "b": 3}', b'{"a": 1, "B": 5}'
    for complete in (False, True):
        for closed in (False, True):
            parts, wrong = JsonValues(declared, complete, closed).parsed(values)
            expected = {7: "has no field 'b'"} if complete else {}
            assert wrong == expected | ({30: "has a field 'c', which is not declared"} if closed else {})
            assert sorted(at for part in parts for at in part.origin.tolist()) == sorted(set(range(40)) - wrong.keys())
