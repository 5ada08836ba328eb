"""The WITH properties of connectors, each checked before anything is opened."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from transom.core.errors import OptionError
from transom.core.location import storage_path
from transom.core.secrets import taken, variable_of

EXTENSIONS: Final[dict[str, str]] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}
COMPRESSIONS: Final[dict[str, str]] = {".gz": "gzip", ".zst": "zstd"}
FORMATS: Final = ("parquet", "csv", "jsonl")
TIME_UNITS: Final[dict[str, int]] = {"s": 1_000_000, "ms": 1_000, "us": 1}

_DELIMITER_WORDS: Final[dict[str, str]] = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}


@dataclass(frozen=True)
class FileProperties:
    """Where the files are and how they are written. `format` None: each file's extension says.

    | property | meaning |
    | --- | --- |
    | path | a file, a folder, or a pattern with `*`, `?`, `[..]` and `**`; also as a `file:` URI, or one of a storage |
    | format | `parquet`, `csv` or `jsonl`; by default what the extension says |
    | delimiter | what stands between the fields of a CSV line; by default a comma, in `.tsv` files a tab |
    | null | the CSV text that means NULL; by default an empty field without quotes |
    | time_unit | `s`, `ms` or `us`: TIMESTAMP columns may hold whole numbers, counted so since 1970 (sources only) |
    """

    path: str
    format: str | None = None
    delimiter: str | None = None
    null: str = ""
    time_unit: int | None = None

    def format_of(self, name: str) -> str | None:
        return self.format or format_by_extension(without_compression(name))

    def delimiter_of(self, name: str) -> str:
        return self.delimiter or ("\t" if without_compression(name).lower().endswith(".tsv") else ",")


@lru_cache(maxsize=1 << 16)
def compression_of(name: str) -> str | None:
    """How a text file is compressed, by its name.

    >>> compression_of("trades.csv.gz"), compression_of("trades.JSONL.zst"), compression_of("trades.csv")
    ('gzip', 'zstd', None)
    """
    return COMPRESSIONS.get(os.path.splitext(name)[1].lower())


def without_compression(name: str) -> str:
    return name if compression_of(name) is None else os.path.splitext(name)[0]


@lru_cache(maxsize=1 << 16)
def format_by_extension(name: str) -> str | None:
    """
    >>> format_by_extension("trades.CSV"), format_by_extension("trades")
    ('csv', None)
    """
    lowered = name.lower()
    return next((format_ for extension, format_ in EXTENSIONS.items() if lowered.endswith(extension)), None)


def taken_properties(properties: dict[str, str]) -> dict[str, str]:
    """The properties with the values of the environment variables that they name: password = '$PGPASSWORD'."""
    values: dict[str, str] = {}
    for name, text in properties.items():
        value = taken(text)
        if value is None:
            raise OptionError(
                f"the property '{name}' names the environment variable '{variable_of(text)}', which is not set",
                remedy=f"set it before you start: export {variable_of(text)}=..",
            )
        values[name] = value
    return values


def reject_unknown(properties: dict[str, str], names: Iterable[str], owner: str) -> None:
    """Raises OptionError for a property that nobody reads: most often a slip of the pen."""
    allowed = sorted(names)
    for name in properties:
        if name not in allowed:
            close = difflib.get_close_matches(name, allowed, n=1, cutoff=0.6)
            raise OptionError(
                f"{owner} has no property '{name}'",
                remedy=f"write {close[0]} instead" if close else f"its properties are {', '.join(allowed)}",
            )


def read_file_properties(properties: dict[str, str], *, source: bool) -> FileProperties:
    """The properties of a files connector, or OptionError with what to write instead."""
    names = ["connector", "path", "format", "delimiter", "null"] + (["time_unit"] if source else [])
    reject_unknown(properties, names, f"a {'source' if source else 'sink'} of connector 'files'")
    path = storage_path(properties.get("path", ""))
    if not path:
        raise OptionError(
            "connector 'files' needs a path",
            remedy="write path = '..': a file" + (", a folder or a pattern" if source else " or a folder"),
        )
    file_format = properties.get("format")
    if file_format is not None and file_format.lower() not in FORMATS:
        raise OptionError(
            f"there is no file format '{file_format}'", remedy=f"formats are {', '.join(FORMATS)}; write format = 'csv'"
        )
    return FileProperties(
        path=path,
        format=None if file_format is None else file_format.lower(),
        delimiter=read_delimiter(properties.get("delimiter")),
        null=read_null(properties.get("null", ""), properties.get("delimiter")),
        time_unit=read_time_unit(properties),
    )


def read_time_unit(properties: Mapping[str, str]) -> int | None:
    """The microseconds of a unit, where whole numbers count units since 1970; None where they are no instants."""
    unit = properties.get("time_unit")
    if unit is None:
        return None
    if unit.lower() not in TIME_UNITS:
        raise OptionError(f"time_unit cannot be '{unit}'", remedy="write time_unit = 's', 'ms' or 'us'")
    return TIME_UNITS[unit.lower()]


def read_delimiter(text: str | None) -> str | None:
    if text is None:
        return None
    delimiter = _DELIMITER_WORDS.get(text.lower(), text)
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
        raise OptionError(
            f"the delimiter of a CSV file cannot be '{text}'",
            remedy="write one character of ASCII that is neither a quote nor a line end, or 'tab'",
        )
    return delimiter


def read_null(text: str, delimiter: str | None) -> str:
    if any(character in text for character in '"\r\n' + (read_delimiter(delimiter) or ",\t")):
        raise OptionError(
            "the null text of a CSV file cannot hold a quote, a delimiter or a line end", remedy="write null = '\\N'"
        )
    return text
