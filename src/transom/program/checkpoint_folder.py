"""The folder of a checkpoint: one run at a time, and one runtime ever."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Sequence
from typing import Final

from transom.core.errors import CheckpointError

FILES: Final = {"local": "checkpoint.arrow", "spark": "queries.json"}
"""By the file that it writes into the folder a runtime is known."""


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
        fresh = self.path + ".new"
        try:
            with open(fresh, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, self.path)
            folder = os.open(self.folder, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise cannot("write", self.path, error) from None

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def cannot(what: str, path: str, error: OSError) -> CheckpointError:
    return CheckpointError(
        f"cannot {what} the checkpoint '{path}': {error.strerror or error}",
        remedy="check that the folder may be read and written and that the disk has room",
    )
