"""An answer in a Delta table, exactly once, by delta-rs; `pip install transom[delta]` brings it.

An epoch is one commit of the table that carries its number as an application transaction, by the run. `emit = 'net'`
keeps the answer as a table, by its key: the commit is a merge. All other answers are appended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from transom.connectors.connector import Opening, SinkDeclaration
from transom.connectors.properties import reject_unknown
from transom.connectors.staged_sink import StagedSink
from transom.core.errors import OptionError, SinkError
from transom.core.location import local_path
from transom.core.schema import unique_names

_MAINTAINED: Final = "transom.maintained"


class DeltaSink(StagedSink):
    def __init__(self, declared: SinkDeclaration, opening: Opening) -> None:
        super().__init__(declared, opening)
        check_delta(declared)
        if opening.snapshots:
            raise OptionError(
                "a Delta table is not written anew for every snapshot",
                remedy="write emit = 'net': only what has changed is written, and the table is the latest snapshot",
            )
        self._path = local_path(declared.properties["path"])
        self._form = opening.form
        if opening.form == "net" and opening.key is None:
            raise OptionError(
                "nothing says which columns of the answer name a row",
                remedy="SELECT DISTINCT or GROUP BY in the query; emit = 'changes' and 'lifetimes' need no key",
            )
        self._key = opening.key or ()
        names = opening.schema.names
        if opening.form == "lifetimes":
            names = unique_names([*names[:-2], "valid_from", "valid_to"])
        elif opening.form == "net":
            names = ["change", *names[1:]]
        self._schema = pa.schema([f.with_name(name) for f, name in zip(opening.schema, names, strict=True)])
        self._columns = self._schema.names[1:] if opening.form == "net" else self._schema.names

    def transact(self, epoch: int, rows: Sequence[pa.RecordBatch]) -> None:
        delta = _deltalake()
        table = pa.Table.from_batches(
            [pa.RecordBatch.from_arrays(batch.columns, schema=self._schema) for batch in rows]
        )
        try:
            there = self._opened(delta)
            known = there.transaction_version(self.run)
            if known is not None and known >= epoch:
                return
            number = delta.CommitProperties(app_transactions=[delta.Transaction(self.run, epoch)])
            if self._form != "net":
                delta.write_deltalake(there, table, mode="append", commit_properties=number)
            elif known is None or not self._key:
                self._replace(delta, there, table, number)
            else:
                self._merge(there, table, number)
        except (delta.exceptions.DeltaError, OSError, ValueError) as error:
            raise SinkError(
                f"the Delta table '{self._path}' cannot be written to: {' '.join(str(error).split())}",
                remedy="check that the folder may be written to, and that the table has the columns of the answer",
            ) from None

    def _opened(self, delta: Any) -> Any:
        """The table, which is created if it is not there; one that is maintained says so."""
        if not delta.DeltaTable.is_deltatable(self._path):
            schema = pa.schema([self._schema.field(name).with_nullable(True) for name in self._columns])
            marks = {_MAINTAINED: "true"} if self._form == "net" else {}
            delta.DeltaTable.create(
                self._path, schema, mode="ignore", configuration=marks, raise_if_key_not_exists=False
            )
        there = delta.DeltaTable(self._path)
        maintained = there.metadata().configuration.get(_MAINTAINED) == "true"
        if maintained != (self._form == "net"):
            raise SinkError(
                f"the Delta table '{self._path}' is {'' if maintained else 'not '}one that a query maintains",
                remedy="name another path",
            )
        return there

    def _replace(self, delta: Any, there: Any, table: pa.Table, number: Any) -> None:
        """The answer of a run that begins, in place of another one's; or the one row of an answer that has no more."""
        rows = table.filter(pc.equal(table.column(0), "+")).select(self._columns)
        delta.write_deltalake(there, rows, mode="overwrite", commit_properties=number)

    def _merge(self, there: Any, table: pa.Table, number: Any) -> None:
        same = " AND ".join(f"t.{_quoted(name)} IS NOT DISTINCT FROM s.{_quoted(name)}" for name in self._key)
        updates = {_quoted(name): f"s.{_quoted(name)}" for name in self._columns}
        merge = there.merge(table, same, source_alias="s", target_alias="t", commit_properties=number)
        merge = merge.when_matched_delete("s.change = '-'").when_matched_update(updates, "s.change = '+'")
        merge.when_not_matched_insert(updates, "s.change = '+'").execute()


def check_delta(declared: SinkDeclaration) -> None:
    """Rejects a wrong declaration, and touches no file."""
    reject_unknown(declared.properties, ["connector", "path"], "a sink of connector 'delta'")
    path = local_path(declared.properties.get("path", ""))
    if not path:
        raise OptionError("connector 'delta' needs a path", remedy="write path = '..', the folder of the table")
    if declared.within is not None:
        declared.within.check(path)
    _deltalake()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _deltalake() -> Any:
    try:
        import deltalake
        import deltalake.exceptions
    except ImportError:
        raise OptionError("connector 'delta' needs delta-rs", remedy="pip install transom[delta]") from None
    return deltalake
