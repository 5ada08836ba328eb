"""Large values of Spark's state as files beside it: the state keeps what a file is called, and its checksum.

A value of many megabytes that goes into Spark's state is copied and compressed on its way through a socket, the JVM,
RocksDB and its log, for longer than the step took that it comes from. A file is written once, where the checkpoint is.
Files are named by their batch and by chance, so that a task that is run again writes others, and the state that is
committed says which count.
One that counts no more is removed a batch later: until then the batch may have to be run again, from the state before.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from transom.connectors.storage import read_file, storage_of
from transom.core.errors import CheckpointError, SparkError
from transom.core.location import is_remote
from transom.program.checkpoint_folder import names_in, remove

if TYPE_CHECKING:
    from transom.pipeline.frames import Buffer

LEAST_BYTES: Final = 1 << 15

PART_BYTES: Final = 32 << 20
"""What is longer, and has to be kept in the state, is in parts."""

KEPT_BATCHES: Final = 100
"""Of so many batches Spark keeps its own files: none that a state of theirs names is removed, whoever wrote that."""

_NAME: Final = re.compile(r"([0-9]{1,18})-[0-9a-f]{16}")
_PLAIN: Final = b"="
_FILE: Final = b"@"


@dataclass(frozen=True)
class StateFiles:
    """The files of one partition; `folder` is None where there is none that everybody shares: then all is plain.

    What has less than `least` bytes is kept in the state itself.
    """

    folder: str | None
    least: int = LEAST_BYTES

    def kept(self, buffers: Iterable[Buffer], batch: int) -> tuple[list[bytes], int]:
        """What the state keeps of a value that has these pieces, in parts, and how many bytes that are."""
        buffers = iter(buffers)
        first: list[Buffer] = []
        size = 0
        for buffer in buffers:
            first.append(buffer)
            size += len(buffer)
            if self.folder is not None and size >= self.least:
                name, size, checksum = self._written(chain(first, buffers), batch)
                return [_FILE + json.dumps([name, size, checksum]).encode()], size
        whole = b"".join(first)
        return [_PLAIN + whole[at : at + PART_BYTES] for at in range(0, len(whole), PART_BYTES)], size

    def _written(self, buffers: Iterable[Buffer], batch: int) -> tuple[str, int, int]:
        """The name, the size and the checksum of a file of these pieces."""
        assert self.folder is not None
        name, size, checksum = f"{batch}-{secrets.token_hex(8)}", 0, 0
        try:
            with self._created(name) as file:
                for buffer in buffers:
                    file.write(buffer)
                    size += len(buffer)
                    checksum = zlib.crc32(buffer, checksum)
        except OSError as error:
            raise SparkError(
                f"state cannot be written to '{self.folder}': {error.strerror or error}",
                remedy="see that the disk of the checkpoint has room and may be written by all workers",
            ) from None
        return name, size, checksum

    @contextmanager
    def _created(self, name: str) -> Iterator[Any]:
        assert self.folder is not None
        if is_remote(self.folder):
            path = os.path.join(self.folder, name)
            remote = storage_of(path).create(path)
            try:
                yield remote.sink
            except BaseException:
                remote.abort()
                raise
            remote.close()
            return
        with suppress(FileExistsError):
            os.mkdir(self.folder)  # in that of the query: of one that has ended it is gone, and stays so
        with open(os.path.join(self.folder, name), "xb") as file:
            yield file

    def value(self, kept: bytes) -> bytes:
        """The value that the state keeps so."""
        if kept[:1] == _PLAIN:
            return kept[1:]
        name, size, checksum = json.loads(kept[1:])
        path = os.path.join(self.folder or "", os.path.basename(name))
        try:
            blob = read_file(path)
        except OSError as error:
            raise _damaged(path, error.strerror or str(error)) from None
        if len(blob) != size or zlib.crc32(blob) != checksum:
            raise _damaged(path, "it is not what was written")
        return blob

    def remove(self, names: Iterable[str]) -> None:
        """Remove what was of the state before a batch that is committed."""
        for name in names if self.folder is not None else ():
            remove(os.path.join(self.folder or "", os.path.basename(name)))

    def tidy(self, named: Collection[str], batch: int) -> None:
        """Remove what tasks have left that were given up long before this batch: what the state does not name."""
        with suppress(CheckpointError):  # of a folder that cannot be listed
            left = [match for name in names_in(self.folder or "") if (match := _NAME.fullmatch(name))]
            self.remove(each[0] for each in left if each[0] not in named and int(each[1]) < batch - KEPT_BATCHES)


def name_of(kept: bytes) -> str | None:
    """What the file is called that has a value, if it is in one."""
    return str(json.loads(kept[1:])[0]) if kept[:1] == _FILE else None


def _damaged(path: str, what: str | None) -> CheckpointError:
    return CheckpointError(
        f"state in '{path}' cannot be read: {what}",
        remedy="put the checkpoint back from a copy, or start with an empty checkpoint folder",
    )
