"""A sink taken through epochs, as a runtime does it."""

from __future__ import annotations

from transom.connectors.connector import Sink


def prepare(sink: Sink) -> int:
    """How many parts there will be."""
    parts: int = sink.prepare(0)["parts"]
    return parts


def commit(sink: Sink) -> int:
    """What was written is seen; how many parts there are then."""
    token = sink.prepare(0)
    for _ in range(2):  # the second time nothing happens
        sink.commit(0, token)
    parts: int = token["parts"]
    return parts
