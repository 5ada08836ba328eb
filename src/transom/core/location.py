"""Where a path leads: to this machine's disk, and where it is confined, to nowhere outside of one folder.

Whatever a user writes as a path goes through `local_path` once. What is handed to others that have a file system of
their own choice, as Spark has by `fs.defaultFS`, is written out by `file_uri`.
"""

from __future__ import annotations

import glob
import os
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from transom.core.errors import OptionError

_SCHEME: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?=/)|(?i:file):")
_FILE: Final = re.compile(r"(?i:file):(?://(?:localhost)?)?(?P<path>/(?!/).*|/)", re.DOTALL)


def local_path(text: str | os.PathLike[str]) -> str:
    """The path on a disk of this machine that is meant: a plain path as it is, a `file:` URI decoded.

    >>> local_path("data/a.csv"), local_path("file:///data/a%20b.csv"), local_path("./s3:/really")
    ('data/a.csv', '/data/a b.csv', './s3:/really')
    >>> local_path("s3a://bucket/a.csv")
    Traceback (most recent call last):
        ...
    transom.core.errors.OptionError: 's3a://bucket/a.csv' cannot be reached: there is no file system 's3a' here
      write a plain path or a file:// URI, on a disk that all machines of a cluster share
    """
    if not isinstance(text, str | os.PathLike):
        raise OptionError(f"a path is a text, not {type(text).__name__}", remedy="write the path of a file or a folder")
    path = os.fspath(text)
    found = _SCHEME.match(path)
    if found is not None:
        scheme = found["scheme"] or "file"
        if scheme.lower() != "file":
            raise OptionError(
                f"'{_shown(path)}' cannot be reached: there is no file system '{scheme}' here",
                remedy="write a plain path or a file:// URI, on a disk that all machines of a cluster share",
            )
        local = _FILE.fullmatch(path)
        if local is None:
            raise OptionError(
                f"'{_shown(path)}' names no file of this machine",
                remedy="write a plain path, or file:/// and the whole path",
            )
        path = unquote(local["path"], errors="surrogateescape")
    if "\0" in path:
        raise OptionError("a path cannot hold a zero character", remedy="write the path of a file or a folder")
    return path


def file_uri(path: str) -> str:
    """A path of this machine for Hadoop's file systems, which decode nothing.

    >>> file_uri("/data/my%20own/x")
    'file:///data/my%20own/x'
    """
    return f"file://{os.path.abspath(path)}"


@dataclass(frozen=True)
class Within:
    """A folder that no path may lead out of, when all links are followed. It travels to whoever opens files."""

    folder: str

    @staticmethod
    def of(folder: str | os.PathLike[str]) -> Within:
        path = os.path.realpath(local_path(folder))
        if not os.path.isdir(path):
            raise OptionError(
                f"there is no folder '{_shown(os.fspath(folder))}' to keep within", remedy="name a folder that is there"
            )
        return Within(path)

    def __fspath__(self) -> str:
        return self.folder

    def check(self, path: str) -> None:
        """Rejects a path that leads outside; what of it is not there yet leads where it says."""
        if os.path.commonpath([self.folder, os.path.realpath(path)]) != self.folder:
            raise OptionError(
                f"'{_shown(path)}' leads outside of '{_shown(self.folder)}', which everything is to stay within",
                remedy="write a path below that folder, or run the query within a folder that has all its files",
            )

    def check_pattern(self, path: str) -> None:
        """Rejects a path or a pattern that begins outside; where its wildcards lead is for each file to say."""
        fixed = path
        while glob.has_magic(fixed):
            fixed = os.path.dirname(fixed)
        self.check(fixed)


def held_path(text: str | os.PathLike[str] | None, within: Within | None) -> str | None:
    """The local path that is meant, if there is one, which must not lead outside."""
    path = None if text is None else local_path(text)
    if path is not None and within is not None:
        within.check(path)
    return path


def _shown(path: str) -> str:
    """As it can be printed, whatever bytes it is made of."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
