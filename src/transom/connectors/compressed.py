"""Text files that are compressed, by gzip or zstd: told by their names, and unpacked as a whole before they are read.

Nothing can be read from the middle of such a file, and nothing can be added to it; so it is one unit, like a Parquet
file. It is unpacked to an unnamed temporary file, from which records are read as from any other text. The last ones
stay unpacked for as long as somebody may read on in them.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
import weakref
from collections import OrderedDict
from typing import IO, Final

import pyarrow as pa

from transom.connectors.listing import Listed, show
from transom.connectors.properties import compression_of
from transom.connectors.storage import PositionedFile, ReadFile, open_file
from transom.core.errors import SourceError

_KEPT: Final = 2
_CHUNK: Final = 1024 * 1024
_SAMPLE: Final = 4096


def open_text(file: Listed) -> ReadFile:
    """A text file to be read, as it was before somebody compressed it."""
    kind = compression_of(file.name)
    return open_file(file.path) if kind is None else _UnpackedFile(file, kind)


def mark_of_compressed(path: str) -> str:
    """A mark of a file by its size, its beginning and its end, which has a checksum of all of it."""
    with open_file(path) as handle:
        size = handle.status()[0]
        mark = hashlib.blake2b(size.to_bytes(8), digest_size=8)
        mark.update(handle.pread(_SAMPLE, 0))
        mark.update(handle.pread(_SAMPLE, max(0, size - _SAMPLE)))
        return mark.hexdigest()


class _UnpackedFile(PositionedFile):
    def __init__(self, file: Listed, kind: str) -> None:
        super().__init__()
        self.mark = mark_of_compressed(file.path)
        key = (file.path, self.mark)
        with _lock:
            if key not in _unpacked:
                _unpacked[key] = _unpack(file, kind)
            _unpacked.move_to_end(key)
            self._unpacked = _unpacked[key]
            if len(_unpacked) > _KEPT:
                _unpacked.popitem(last=False)  # whoever reads in it keeps it
        self._identity = int(self.mark, 16)

    def pread(self, count: int, offset: int) -> bytes:
        return os.pread(self._unpacked.file, count, offset)

    def status(self) -> tuple[int, int, int]:
        return self._unpacked.size, 0, self._identity


class _Unpacked:
    """An unnamed file, which is gone when nobody reads it any more."""

    def __init__(self, written: IO[bytes]) -> None:
        written.flush()
        self.file = os.dup(written.fileno())
        self.size = os.fstat(self.file).st_size
        weakref.finalize(self, os.close, self.file)


def _unpack(file: Listed, kind: str) -> _Unpacked:
    with tempfile.TemporaryFile() as unpacked, open_file(file.path) as packed:
        try:
            with pa.CompressedInputStream(pa.PythonFile(_Readable(packed), mode="r"), kind) as stream:
                while chunk := stream.read(_CHUNK):
                    unpacked.write(chunk)
        except (OSError, pa.ArrowException) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise SourceError(
                f"file '{show(file.name)}' is not a whole {kind} file: {error}", remedy="write it anew or take it away"
            ) from None
        return _Unpacked(unpacked)


class _Readable:
    """What pyarrow wants of a file that it reads from the beginning to the end."""

    closed = False

    def __init__(self, file: ReadFile) -> None:
        self._file = file

    def read(self, count: int = -1) -> bytes:
        return self._file.read(count)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True


_unpacked: Final[OrderedDict[tuple[str, str], _Unpacked]] = OrderedDict()
_lock: Final = threading.Lock()
