"""The folder of a checkpoint: for one run at a time, and always for the same queries, inputs and options.

`manifest.json` says what it is for; what else lies there is the business of the runtime that wrote it.
"""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Mapping
from typing import Final

from transom.connectors.file_target import sync_folder
from transom.core.errors import CheckpointError
from transom.program.checkpoint_manifest import Manifest
from transom.program.taken_columns import NONE, TakenColumns

_MANIFEST: Final = "manifest.json"

STATE: Final = "checkpoint.arrow"
"""The file that has the whole state of the queries, where a runtime writes it into one."""

_OLDER: Final = (STATE, "queries.json")
"""What lies in a folder from before there were manifests."""


RUN: Final = "run.id"
"""The file with the name of the run, by which the folders that it writes to know it again."""


class CheckpointFolder:
    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._lock: int | None = None
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
        try:
            if run_of(folder) is None:
                put(os.path.join(folder, RUN), uuid.uuid4().hex.encode())
        except CheckpointError:
            self.release()
            raise

    def manifest(self) -> Manifest | None:
        """What the folder is for; None: for whoever comes."""
        data = self.read(_MANIFEST)
        if data is not None:
            return Manifest.read(data.decode(errors="replace"), self.folder)
        if any(os.path.exists(os.path.join(self.folder, name)) for name in _OLDER):
            raise CheckpointError(
                f"the checkpoint in '{self.folder}' was written before checkpoints had a format number",
                remedy="go on with the version of Transom that wrote it, or start with an empty checkpoint folder",
            )
        return None

    def claim(self, manifest: Manifest, begun: bool) -> None:
        """The folder is for these queries; if it has `begun` to be for others, or for another law, they are
        rejected."""
        known = self.manifest()
        if known is not None and known.runtime != manifest.runtime:
            raise CheckpointError(
                f"the checkpoint in '{self.folder}' was written by the {known.runtime} runtime, and this is the "
                f"{manifest.runtime} one",
                remedy=f"go on with --runtime {known.runtime}, or choose another folder",
            )
        if known is not None and begun:
            known.reject_another(manifest)
            manifest = manifest.after(known)
        if known != manifest:
            self.write(_MANIFEST, manifest.text().encode())

    def read(self, name: str) -> bytes | None:
        path = os.path.join(self.folder, name)
        try:
            with open(path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise cannot("read", path, error) from None

    def write(self, name: str, data: bytes) -> None:
        """In the place of what was there, whole or not at all."""
        put(os.path.join(self.folder, name), data)

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def taken_columns(folder: str | None) -> Mapping[str, TakenColumns]:
    """The columns that the queries of a checkpoint took from files; if it cannot be read, `claim` says why."""
    if folder is None:
        return NONE
    try:
        with open(os.path.join(folder, _MANIFEST), encoding="utf-8") as file:
            return Manifest.read(file.read(), folder).taken()
    except (OSError, CheckpointError, LookupError, TypeError, ValueError, AttributeError):
        return NONE


def run_of(folder: str) -> str | None:
    """The name of the run that a checkpoint folder is of; None where none has begun."""
    try:
        with open(os.path.join(folder, RUN), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise cannot("read", os.path.join(folder, RUN), error) from None


def put(path: str, data: bytes) -> None:
    """A file in the place of what was there, whole or not at all."""
    fresh = path + ".new"
    try:
        with open(fresh, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
        sync_folder(os.path.dirname(path))
    except OSError as error:
        raise cannot("write", path, error) from None


def cannot(what: str, path: str, error: OSError | UnicodeDecodeError) -> CheckpointError:
    return CheckpointError(
        f"cannot {what} the checkpoint '{path}': {getattr(error, 'strerror', None) or error}",
        remedy="check that the folder may be read and written and that the disk has room",
    )
