"""Columns that a text does not declare: taken from files once, and from the checkpoint ever after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from transom.connectors.file_columns import columns_of_files
from transom.connectors.properties import taken_properties
from transom.core.location import Within, real_path, storage_path
from transom.core.schema import Schema
from transom.plan.catalogue import ColumnsOf


@dataclass(frozen=True)
class TakenColumns:
    """What the files at a path had when it was looked at."""

    path: str
    columns: Schema


NONE: Final[Mapping[str, TakenColumns]] = MappingProxyType({})


def looking(within: Within | None, kept: Mapping[str, TakenColumns] = NONE) -> ColumnsOf:
    """Looks at the files of an input once for all of a text, unless it is known what they had."""
    seen: dict[tuple[str, str], Schema] = {}

    def columns_of(name: str, properties: dict[str, str]) -> Schema:
        before, taken = kept.get(name.lower()), taken_properties(properties)
        if before is not None and before.path == real_path(storage_path(taken.get("path", ""))):
            return before.columns
        key = (name.lower(), repr(sorted(taken.items())))
        if key not in seen:
            seen[key] = columns_of_files(name, taken, within)
        return seen[key]

    return columns_of
