"""Where a path leads: to a disk of this machine or to a storage, and where it is confined, nowhere else.

Whatever a user writes as a path goes once through `storage_path`, or through `local_path` where it must be a disk of
this machine. From then on a path that begins with a scheme and `://` is on a storage (`is_remote`), and any other on
the disk. What is handed to others that have a file system of their own choice, as Spark has by `fs.defaultFS`, is
written out by `hadoop_uri`.
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
_AUTHORITIES: Final = {"hdfs": "name node", "abfs": "container@account", "abfss": "container@account"}
_AUTHORITY: Final = re.compile(r"[\w.:@-]+")
_REMOTE: Final = re.compile(r"(?P<scheme>[a-z][a-z0-9]+)://(?P<authority>[^/]*)(?P<path>.*)", re.DOTALL)

SCHEMES: Final = ("s3", "s3a", "gs", "abfs", "abfss", "hdfs")
"""Storages that are reached by a URI. `s3a` is what Hadoop calls S3."""


def is_remote(path: str) -> bool:
    """Whether a path that was read by `storage_path` is not on a disk of this machine.

    >>> is_remote("s3://bucket/a"), is_remote("/data/a"), is_remote("./s3://a")
    (True, False, False)
    """
    return _REMOTE.match(path) is not None


def storage_path(text: str | os.PathLike[str]) -> str:
    """The path that is meant: a URI of a storage with one slash between names, or what `local_path` gives.

    >>> storage_path("S3A://bucket//a/./b/"), storage_path("hdfs://node:8020"), storage_path("data/a.csv")
    ('s3a://bucket/a/b/', 'hdfs://node:8020/', 'data/a.csv')
    >>> storage_path("s3://key:secret@bucket/a")
    Traceback (most recent call last):
        ...
    transom.core.errors.OptionError: a path must not hold a password: 's3://..@bucket/a'
      give credentials by the environment, as the tools of the storage do
    """
    match = _SCHEME.match(os.fspath(text)) if isinstance(text, str | os.PathLike) else None
    scheme = "" if match is None else (match["scheme"] or "").lower()
    if scheme not in SCHEMES:
        return local_path(text)
    given = os.fspath(text)
    whole = _REMOTE.fullmatch(scheme + given[len(scheme) :])
    if whole is None or "\0" in given or not _AUTHORITY.fullmatch(whole["authority"] or "-" * (scheme == "hdfs")):
        raise OptionError(
            f"'{_shown(given)}' names no folder of a storage",
            remedy=f"write {scheme}:// and the {_AUTHORITIES.get(scheme, 'bucket')}, then the path",
        )
    user, at, host = whole["authority"].rpartition("@")
    if at and (":" in user or not scheme.startswith("abfs")):
        raise OptionError(
            f"a path must not hold a password: '{scheme}://..@{host}{_shown(whole['path'])}'",
            remedy="give credentials by the environment, as the tools of the storage do",
        )
    names = [name for name in whole["path"].split("/") if name not in ("", ".")]
    if ".." in names:
        raise OptionError(f"'{_shown(given)}' goes up by '..'", remedy="write the path as a whole")
    folder = "/" if names and whole["path"].endswith("/") else ""
    return f"{scheme}://{whole['authority']}/{'/'.join(names)}{folder}"


def absolute_path(path: str) -> str:
    """The same place, wherever it is looked at from."""
    return path.rstrip("/") if is_remote(path) else os.path.abspath(path)


def path_of(path: str) -> str:
    """A path without its scheme and host, as a storage itself may write it in its messages.

    >>> path_of("hdfs://node:8020/a/b"), path_of("/a/b")
    ('/a/b', '/a/b')
    """
    match = _REMOTE.fullmatch(path)
    return path if match is None else match["path"]


def real_path(path: str) -> str:
    """The place itself, whatever links lead there; its name is the same tomorrow."""
    return path.rstrip("/") if is_remote(path) else os.path.realpath(path)


def local_path(text: str | os.PathLike[str]) -> str:
    """The path on a disk of this machine that is meant: a plain path as it is, a `file:` URI decoded.

    >>> local_path("data/a.csv"), local_path("file:///data/a%20b.csv"), local_path("./s3:/really")
    ('data/a.csv', '/data/a b.csv', './s3:/really')
    >>> local_path("s3a://bucket/a.csv")
    Traceback (most recent call last):
        ...
    transom.core.errors.OptionError: 's3a://bucket/a.csv' cannot be reached: there is no file system 's3a' here
      write a plain path or a file:// URI
    """
    if not isinstance(text, str | os.PathLike):
        raise OptionError(f"a path is a text, not {type(text).__name__}", remedy="write the path of a file or a folder")
    path = os.fspath(text)
    match = _SCHEME.match(path)
    if match is not None:
        scheme = match["scheme"] or "file"
        if scheme.lower() != "file":
            raise OptionError(
                f"'{_shown(path)}' cannot be reached: there is no file system '{scheme}' here",
                remedy="write a plain path or a file:// URI",
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


def hadoop_uri(path: str) -> str:
    """A path for Hadoop's file systems, which decode nothing and know S3 by another name.

    >>> hadoop_uri("/data/my%20own/x"), hadoop_uri("s3://bucket/x"), hadoop_uri("hdfs://node:8020/x")
    ('file:///data/my%20own/x', 's3a://bucket/x', 'hdfs://node:8020/x')
    """
    if not is_remote(path):
        return f"file://{os.path.abspath(path)}"
    return f"s3a://{path[5:]}" if path.startswith("s3://") else path


@dataclass(frozen=True)
class Within:
    """A folder that no path may lead out of, when all links are followed. It travels to whoever opens files.

    It may be on a storage, where there are no links.
    """

    folder: str

    @staticmethod
    def of(folder: str | os.PathLike[str]) -> Within:
        path = real_path(storage_path(folder))
        if not is_remote(path) and not os.path.isdir(path):
            raise OptionError(
                f"there is no folder '{_shown(os.fspath(folder))}' to keep within", remedy="name a folder that is there"
            )
        return Within(path)

    def __fspath__(self) -> str:
        return self.folder

    def check(self, path: str) -> None:
        """Rejects a path that leads outside; what of it is not there yet leads where it says."""
        if not self._holds(path):
            raise OptionError(
                f"'{_shown(path)}' leads outside of '{_shown(self.folder)}', which everything is to stay within",
                remedy="write a path below that folder, or run the query within a folder that has all its files",
            )

    def _holds(self, path: str) -> bool:
        if is_remote(path) or is_remote(self.folder):
            return f"{path.rstrip('/')}/".startswith(f"{self.folder}/")
        return os.path.commonpath([self.folder, os.path.realpath(path)]) == self.folder

    def check_pattern(self, path: str) -> None:
        """Rejects a path or a pattern that begins outside; where its wildcards lead is for each file to say."""
        fixed = path
        while glob.has_magic(fixed):
            fixed = os.path.dirname(fixed)
        self.check(fixed)


def held_path(text: str | os.PathLike[str] | None, within: Within | None) -> str | None:
    """The path that is meant, if there is one, which must not lead outside."""
    path = None if text is None else storage_path(text)
    if path is not None and within is not None:
        within.check(path)
    return path


def _shown(path: str) -> str:
    """As it can be printed, whatever bytes it is made of."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
