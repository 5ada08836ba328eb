"""The query file of a command: its text, where its paths begin, and the options given beside it."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from transom.core.errors import OptionError, TransomError
from transom.core.location import Within, absolute_path, storage_path
from transom.plan.options import read_option


class UsageError(TransomError):
    """The command line is wrong."""


def read_query_file(name: str) -> str:
    """The text of a file, or of standard input for `-`."""
    try:
        if name == "-":
            return sys.stdin.buffer.read().decode("utf-8-sig")
        with open(name, encoding="utf-8-sig") as file:
            return file.read()
    except OSError as error:
        raise UsageError(
            f"cannot read '{name}': {error.strerror or error}", remedy="give the path of a query file"
        ) from None
    except UnicodeDecodeError:
        raise UsageError(f"'{name}' is not UTF-8 text", remedy="save it as UTF-8") from None


@contextlib.contextmanager
def folder_of(name: str) -> Iterator[None]:
    """Within it, paths are relative to the folder of the file; and errors say which file they are about."""
    folder = "." if name == "-" else os.path.dirname(os.path.abspath(name))
    with contextlib.chdir(folder):
        try:
            yield
        except TransomError as error:
            if error.span is not None and name != "-":
                error.what = f"{error.what} (in {name})"
            raise


def confinement(folder: str | None) -> Within | None:
    """What `--within` says, from the current folder."""
    try:
        return None if folder is None else Within.of(folder)
    except OptionError as error:
        raise UsageError(error.what, remedy=error.remedy) from None


def absolute(path: str | None) -> str | None:
    """A path of the command line, which begins at the current folder."""
    try:
        return None if path is None else absolute_path(storage_path(path))
    except OptionError as error:
        raise UsageError(error.what, remedy=error.remedy) from None


def read_settings(settings: Sequence[str]) -> dict[str, Any]:
    """The options of `--set name=value`."""
    options = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise UsageError(f"--set {setting} says no value", remedy="write --set option=value")
        try:
            options[name.strip().lower()] = read_option(name.strip(), value.strip())
        except OptionError as error:
            raise UsageError(error.what, remedy=error.remedy) from None
    return options
