"""What a program may hand over: rows, and the values of options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OptionValue = str | int | float | bool | timedelta
"""The value of an option of SET."""


class ArrowStream(Protocol):
    """Whatever gives its rows to Arrow: its own tables, batches and readers, data frames of pandas and Polars, .."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


class Collected(Protocol):
    """A frame that has no rows until it is collected, as Polars has it."""

    def collect(self) -> ArrowStream: ...


RowsOrBatches: TypeAlias = Iterable[Mapping[str, object] | ArrowStream]

Data: TypeAlias = "ArrowStream | Collected | RowsOrBatches | Callable[[], RowsOrBatches] | DataFrame"
"""Rows: of Arrow, a data frame, dictionaries, a function that makes an iterable of them; on Spark a DataFrame."""


def option_text(value: OptionValue) -> str:
    """How a value is written in SET.

    >>> option_text(timedelta(seconds=1.5)), option_text(3), option_text(True)
    ('1500000 microseconds', '3', 'true')
    """
    if isinstance(value, timedelta):
        return f"{value // timedelta(microseconds=1)} microseconds"
    return str(value).lower() if isinstance(value, bool) else str(value)
