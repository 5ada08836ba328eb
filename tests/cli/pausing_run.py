"""`transom` that waits at a moment that is bad for it, to be killed: `python -m tests.cli.pausing_run MOMENT FILE ..`.

It makes FILE when it waits. Moments: `written`, the rows of a step or a batch are on disk and nothing knows of them;
`known`, the checkpoint knows of them, or on Spark readers do, and the other not yet; `gathered`, the one file of a sink
has been written and is not shown.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transom.cli.main import main
from transom.connectors import file_target
from transom.program.checkpoint_folder import STATE, CheckpointFolder


def pausing(marker: Path, work: Callable[..., Any], wanted: Callable[..., bool], after: bool = False) -> Any:
    """Does the work, but waits for ever before it, or after it, when it is what is wanted."""

    def paused(*given: Any, **named: Any) -> Any:
        done = work(*given, **named) if after else None
        if wanted(*given):
            marker.touch()
            time.sleep(3600)
        return done if after else work(*given, **named)

    return paused


def plant(moment: str, marker: Path, runtime: str) -> None:
    if moment == "gathered":
        file_target.commit_file = pausing(marker, file_target.commit_file, lambda written, target: True)
    elif runtime == "local":
        writes: list[str] = []

        def second(folder: CheckpointFolder, name: str, data: bytes) -> bool:
            writes.extend([name] if name == STATE else [])
            return len(writes) == 2

        CheckpointFolder.write = pausing(marker, CheckpointFolder.write, second, moment == "known")  # type: ignore[method-assign]
    else:
        from transom.connectors.batch_files import BatchFiles

        BatchFiles.commit = pausing(marker, BatchFiles.commit, lambda *given: True, moment == "known")  # type: ignore[method-assign]


if __name__ == "__main__":
    plant(sys.argv[1], Path(sys.argv[2]), sys.argv[sys.argv.index("--runtime") + 1])
    sys.exit(main(sys.argv[3:]))
