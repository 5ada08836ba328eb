"""The folder of a checkpoint: one run at a time, and one runtime ever."""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from collections.abc import Sequence
from typing import Final

from transom.connectors.file_target import sync_folder
from transom.core.errors import CheckpointError

FILES: Final = {"local": "checkpoint.arrow", "spark": "queries.json"}
"""By the file that it writes into the folder a runtime is known."""


RUN: Final = "run.id"
"""The file with the name of the run, by which the folders that it writes to know it again."""


class CheckpointFolder:
    def __init__(self, folder: str, runtime: str) -> None:
        self.folder = folder
        self.path = os.path.join(folder, FILES[runtime])
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
        for other, file in FILES.items():
            if other != runtime and os.path.exists(os.path.join(folder, file)):
                self.release()
                raise CheckpointError(
                    f"the checkpoint in '{folder}' was written by the {other} runtime, and this is the {runtime} one",
                    remedy=f"go on with --runtime {other}, or choose another folder",
                )
        try:
            if run_of(folder) is None:
                put(os.path.join(folder, RUN), uuid.uuid4().hex.encode())
        except CheckpointError:
            self.release()
            raise

    def claim(self, names: Sequence[str]) -> None:
        """The folder is for queries of these names, each of which has a folder in it; other ones are refused."""
        written = json.dumps({"queries": list(names)}).encode()
        known = self.read()
        if known is None:
            self.write(written)
        elif known != written:
            raise CheckpointError(
                "the checkpoint was written by other queries",
                remedy="run the queries that wrote it, or start with an empty checkpoint folder",
            )

    def read(self) -> bytes | None:
        try:
            with open(self.path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise cannot("read", self.path, error) from None

    def write(self, data: bytes) -> None:
        """In the place of what was there, whole or not at all."""
        put(self.path, data)

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


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
