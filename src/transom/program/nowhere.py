"""A sink that forgets everything: for queries that are run to be measured."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from transom.connectors.connector import Sink


class Nowhere(Sink):
    snapshots = True

    def write(self, batch: pa.RecordBatch) -> None: ...

    def replace(self, batch: pa.RecordBatch) -> None: ...

    def commit(self, epoch: int, token: Any) -> None: ...
