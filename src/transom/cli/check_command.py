"""`transom check`: whether a query file is right, and what it declares."""

from __future__ import annotations

import argparse
from typing import Final

from transom.cli.query_file import confinement, folder_of, read_query_file, read_settings
from transom.core.text import visible
from transom.plan.catalogue import (
    Catalogue,
    CreateStatement,
    DropStatement,
    ExplainStatement,
    KeptStatement,
    SetStatement,
    ShowStatement,
    SinkDefinition,
    Statement,
    StreamDefinition,
    TableDefinition,
)
from transom.program.growth_notes import growth_notes
from transom.program.planned import Planned, read_program


def main(options: argparse.Namespace) -> int:
    text = read_query_file(options.file)
    fixed, within = read_settings(options.set), confinement(options.within)
    with folder_of(options.file):
        planned = read_program(text, Catalogue(within=within), fixed)
    print(visible(f"ok: {_declared(planned) or 'nothing is declared'}"))
    for note in growth_notes(planned):
        print(visible(note))
    return 0


def _declared(planned: list[Planned]) -> str:
    """
    >>> _declared([])
    ''
    """
    groups: dict[str, list[str]] = {}
    for statement in planned:
        kind, name = _kind(statement.statement)
        if kind == "query" and statement.sink is not None:
            name = f"into {statement.sink.name}"
        groups.setdefault(kind, []).append(name)
    return ", ".join(_counted(kind, names) for kind, names in groups.items())


_KINDS: Final[dict[type[Statement], str]] = {
    SetStatement: "option",
    ExplainStatement: "explanation",
    DropStatement: "removal",
    KeptStatement: "declaration of what there is",
    ShowStatement: "question",
}


def _kind(statement: Statement) -> tuple[str, str]:
    if isinstance(statement, CreateStatement):
        definition = statement.definition
        if isinstance(definition, StreamDefinition):
            return "stream", definition.name
        if isinstance(definition, TableDefinition):
            return "table", definition.name
        return "sink" if isinstance(definition, SinkDefinition) else "view", definition.name
    return _KINDS.get(type(statement), "query"), ""


def _counted(kind: str, names: list[str]) -> str:
    """
    >>> _counted("query", ["", ""]), _counted("sink", ["out"])
    ('2 queries', '1 sink (out)')
    """
    plural = kind if len(names) == 1 else "queries" if kind == "query" else f"{kind}s"
    named = ", ".join(name for name in names if name)
    return f"{len(names)} {plural}" + (f" ({named})" if named else "")
