"""Notes for whoever is about to follow inputs: what falls due while one is silent waits for its next row."""

from __future__ import annotations

from collections.abc import Sequence

from transom.plan.algebra import Node, StreamScan, TableScan, Window, WindowTable
from transom.plan.catalogue import InsertStatement, QueryStatement, StreamDefinition, TableDefinition
from transom.plan.reads import nodes
from transom.program.planned import Planned


def silence_notes(planned: Sequence[Planned]) -> list[str]:
    """A line for each query with windows that end by time, over inputs whose time goes on with their rows alone."""
    notes = []
    for each in planned:
        if isinstance(each.statement, InsertStatement | QueryStatement):
            names = _silent(each, list(nodes(each.statement.query)))
            if names:
                notes.append(
                    f"note: line {each.statement.span.line}: while no rows of {_listed(names)} come, time stands "
                    "still, and windows end when the next one comes; where times are those of the clock, declare "
                    "heartbeat = '1 SECOND'"
                )
    return notes


def _silent(one: Planned, parts: Sequence[Node]) -> list[str]:
    """The inputs that nothing but a row takes on; one that may fall idle does not hold back the others."""
    if not any(isinstance(node, WindowTable) or (isinstance(node, Window) and _by_time(node)) for node in parts):
        return []
    scans = {node.name.lower() for node in parts if isinstance(node, StreamScan | TableScan)}
    definitions = [one.catalogue.relations[name] for name in sorted(scans)]
    timed = [
        each for each in definitions if isinstance(each, StreamDefinition | TableDefinition) and each.time is not None
    ]
    return [
        each.name
        for each in timed
        if each.heartbeat is None
        and not (isinstance(each, StreamDefinition) and each.arrival_time)
        and (each.idle is None or len(timed) == 1)
    ]


def _by_time(window: Window) -> bool:
    return window.spec.range is not None or window.spec.session is not None


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
