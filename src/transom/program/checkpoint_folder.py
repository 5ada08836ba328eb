"""The folder of a checkpoint: for one run at a time, and always for the same queries, inputs and options.

`manifest.json` says what it is for; what else lies there is the business of the runtime that wrote it.

On a disk a run has a lock on the folder, which the kernel takes back when it dies. A storage has none, and a lease
would keep the run waiting that is started again at once. There whoever comes last writes down that the folder is its
own, and whoever finds another name there before it writes gives up: so of two runs the first one ends.
"""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from transom.connectors import storage
from transom.connectors.file_target import sync_folder
from transom.connectors.storage import storage_of
from transom.core.errors import CheckpointError
from transom.core.location import is_remote
from transom.program.checkpoint_manifest import Manifest
from transom.program.taken_columns import NONE, TakenColumns

MANIFEST: Final = "manifest.json"

STATE: Final = "checkpoint.arrow"
"""The file that has the whole state of the queries, where a runtime writes it into one."""

_OLDER: Final = (STATE, "queries.json")
"""What lies in a folder from before there were manifests."""


RUN: Final = "run.id"
"""The file with the name of the run, by which the folders that it writes to know it again."""


_OWNER: Final = "owner"
"""The file with the name of the process that a folder on a storage belongs to."""


class CheckpointFolder:
    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._lock: int | None = None
        self._owner: bytes | None = None
        if is_remote(folder):
            self._owner = uuid.uuid4().hex.encode()
            put(os.path.join(folder, _OWNER), self._owner)
        else:
            self._take_lock(folder)
        try:
            if run_of(folder) is None:
                put(os.path.join(folder, RUN), uuid.uuid4().hex.encode())
        except CheckpointError:
            self.release()
            raise

    def _take_lock(self, folder: str) -> None:
        try:
            os.makedirs(folder, exist_ok=True)
            self._lock = os.open(os.path.join(folder, ".lock"), os.O_CREAT | os.O_RDWR)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            raise CheckpointError(
                f"the checkpoint folder '{folder}' is in use by another run",
                remedy="wait for it to end, or choose another folder",
            ) from None
        except OSError as error:
            raise cannot("use", folder, error) from None

    def manifest(self) -> Manifest | None:
        """What the folder is for; None: for whoever comes."""
        data = self.read(MANIFEST)
        if data is not None:
            return Manifest.read(data.decode(errors="replace"), self.folder)
        if any(is_there(os.path.join(self.folder, name)) for name in _OLDER):
            raise CheckpointError(
                f"the checkpoint in '{self.folder}' was written before checkpoints had a format number",
                remedy="go on with the version of Transom that wrote it, or start with an empty checkpoint folder",
            )
        return None

    def claim(self, manifest: Manifest, begun: bool) -> None:
        """The folder is for these queries; if it has `begun` to be for others, or for another law, they are
        rejected."""
        written = self.check(manifest, begun)
        if written is not None and begun:
            manifest = manifest.after(written)
        if written != manifest:
            self.write(MANIFEST, manifest.text().encode())

    def check(self, manifest: Manifest, begun: bool) -> Manifest | None:
        """What the folder is for, which these queries are not to differ from."""
        written = self.manifest()
        if written is not None and written.runtime != manifest.runtime:
            raise CheckpointError(
                f"the checkpoint in '{self.folder}' was written by the {written.runtime} runtime, and this is the "
                f"{manifest.runtime} one",
                remedy=f"go on with --runtime {written.runtime}, or choose another folder",
            )
        if written is not None and begun:
            written.reject_another(manifest)
        return written

    def read(self, name: str) -> bytes | None:
        return read(os.path.join(self.folder, name))

    def write(self, name: str, data: bytes) -> None:
        """Write a file in place of what was there, whole or not at all."""
        self.check_owner()
        put(os.path.join(self.folder, name), data)

    def check_owner(self) -> None:
        """Whoever finds another name than its own has to give up."""
        if self._owner is not None and self.read(_OWNER) != self._owner:
            raise CheckpointError(
                f"the checkpoint folder '{self.folder}' is in use by another run, which was started later",
                remedy="let one of them go on, or choose another folder",
            )

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def taken_columns(folder: str | None) -> Mapping[str, TakenColumns]:
    """The columns that the queries of a checkpoint took from files; if it cannot be read, `claim` says why."""
    if folder is None:
        return NONE
    try:
        data = read(os.path.join(folder, MANIFEST))
        return NONE if data is None else Manifest.read(data.decode(), folder).taken()
    except (CheckpointError, LookupError, TypeError, ValueError, AttributeError):
        return NONE


def run_of(folder: str) -> str | None:
    """The name of the run that a checkpoint folder is of; None where none has begun."""
    path = os.path.join(folder, RUN)
    data = read(path)
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError as error:
        raise cannot("read", path, error) from None


def is_there(path: str) -> bool:
    try:
        return storage.is_there(path)
    except OSError as error:
        raise cannot("read", path, error) from None


def read(path: str) -> bytes | None:
    """What a file has; None where there is none."""
    try:
        return storage.read_file(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise cannot("read", path, error) from None


def names_in(folder: str) -> list[str]:
    """What is in a folder; nothing where there is none."""
    try:
        return [entry.name for entry in storage_of(folder).entries(folder)] if is_remote(folder) else os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise cannot("read", folder, error) from None


def remove(path: str) -> None:
    """A file that nobody needs; whoever may not remove it leaves it."""
    with suppress(OSError):
        storage.delete(path)


def put(path: str, data: bytes, durable: bool = True) -> None:
    """A file in the place of what was there, whole or not at all; one that is not `durable` may be lost with the
    machine."""
    fresh = path + ".new"
    try:
        if is_remote(path):
            storage_of(path).put(path, data)
            return
        with open(fresh, "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(fresh, path)
        if durable:
            sync_folder(os.path.dirname(path))
    except OSError as error:
        raise cannot("write", path, error) from None


def cannot(what: str, path: str, error: OSError | UnicodeDecodeError) -> CheckpointError:
    remedy = "check that the folder may be read and written and that the disk has room"
    if is_remote(path):
        remedy = "check that the environment has what the storage asks for: address, region, credentials"
    return CheckpointError(
        f"cannot {what} the checkpoint '{path}': {getattr(error, 'strerror', None) or error}", remedy=remedy
    )
