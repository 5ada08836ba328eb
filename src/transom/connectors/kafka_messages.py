"""What is taken over from the messages of a partition, so that the messages themselves can go at once.

A message is an object of the client library with a lock, headers and more around a few bytes. Its value is always
taken; key, timestamp and headers only where a column wants them. Offsets mostly follow each other, and are not asked
for then.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from confluent_kafka import Message

BESIDE: Final = ("timestamp", "headers")
"""What is taken besides keys, by the names of the METADATA."""


class MessageBlock:
    """Some messages of a partition that follow each other. `wanted` may have "key", "timestamp" and "headers"."""

    def __init__(self, wanted: Collection[str]) -> None:
        self.values: list[bytes | None] = []
        self.keys: list[bytes | None] = []
        self.stamps: list[tuple[int, int]] = []
        self.headers: list[Any] = []
        self.bytes = 0
        """Of the values."""
        self._wanted = wanted
        self._offsets: list[Sequence[int]] = []

    def __len__(self) -> int:
        return len(self.values)

    def add(self, messages: Sequence[Message]) -> None:
        values = [message.value() for message in messages]
        self.values += values
        self.bytes += sum(map(len, filter(None, values)))
        if "key" in self._wanted:
            self.keys += [message.key() for message in messages]
        if "timestamp" in self._wanted:
            self.stamps += [message.timestamp() for message in messages]
        if "headers" in self._wanted:
            self.headers += [message.headers() for message in messages]
        first, last = messages[0].offset(), messages[-1].offset()
        if last - first == len(messages) - 1:
            self._offsets.append(range(first, last + 1))
        else:  # some offsets have no message
            self._offsets.append([message.offset() for message in messages])

    @property
    def offsets(self) -> list[int]:
        """Of each message."""
        return [offset for some in self._offsets for offset in some]
