"""What is taken over from messages, which need no broker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from transom.connectors.kafka_messages import MessageBlock


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
    block.add([Given(at) for at in (3, 4, 5)])  # type: ignore[misc]
    block.add([Given(at, None if at == 8 else b"longer") for at in (6, 8, 9)])  # type: ignore[misc]
    assert block.offsets == [3, 4, 5, 6, 8, 9]
    assert block.values == [b"v", b"v", b"v", b"longer", None, b"longer"]
    assert block.keys == [b"k%d" % at for at in block.offsets]
    assert block.stamps == [(1, 1000 * at) for at in block.offsets]
    assert (len(block), block.bytes) == (6, 15)
