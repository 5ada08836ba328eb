"""A sink that forgets everything: for queries that are run to be measured."""

from __future__ import annotations

import pyarrow as pa


class Nowhere:
    def write(self, batch: pa.RecordBatch) -> None: ...

    def replace(self, batch: pa.RecordBatch) -> None: ...

    def prepare(self) -> int:
        return 0

    def commit(self) -> int:
        return 0

    def abandon(self) -> None: ...

    def close(self) -> None: ...
