"""A process to be killed: runs a program from its checkpoint as far as there is anything, and says when it begins."""

from __future__ import annotations

import sys
from pathlib import Path

from transom.session import Session


def main(program: str, checkpoint: str, runtime: str) -> None:
    session = Session(batch_rows=50) if runtime == "local" else Session(runtime="spark", batch_rows=200)
    planned = session.prepare(Path(program).read_text())
    run = session.assemble(planned, checkpoint=checkpoint, every=1, end=False)
    print("begins", flush=True)
    run.run()
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
