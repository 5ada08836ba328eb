"""An answer in a Delta table, exactly once, by delta-rs; `pip install transom[delta]` brings it.

An epoch is one commit of the table that carries its number as an application transaction, by the run. `emit = 'net'`
keeps the answer as a table, by its key: the commit is a merge. All other answers are appended.

With a commit interval several epochs are one commit, with the number of the last: until then their rows are staged in
the checkpoint, on Spark too, so that files are fewer and larger.
"""

from __future__ import annotations

import glob
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.connectors.connector import Opening, SinkDeclaration
from transom.connectors.properties import reject_unknown
from transom.connectors.staged_sink import StagedSink
from transom.core.errors import OptionError, SinkError, TransomError
from transom.core.location import is_remote, storage_path
from transom.core.schema import unique_names
from transom.core.time import SECOND, parse_duration

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
        for column in opening.schema:
            if pa.types.is_duration(column.type):
                raise OptionError(
                    f"Delta has no INTERVAL, and '{column.name}' is one",
                    remedy=f"write epoch({column.name}) for its seconds",
                )
        self._path = storage_path(declared.properties["path"]).rstrip("/")
        self._storage = _storage_options(self._path)
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
        self._interval = _interval(declared.properties)
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._error: TransomError | None = None
        self._held: dict[int, str | list[pa.RecordBatch]] = {}
        """Rows of epochs that are not in the table yet, or the files in which they are staged."""
        if self._interval and declared.staging is not None:
            if is_remote(declared.staging):
                raise OptionError(
                    "a commit interval needs a checkpoint on a disk, where rows are staged meanwhile",
                    remedy="leave commit_interval out, or put the checkpoint on a disk",
                )
            self._staging = declared.staging  # a batch of Spark that is committed does not come again either
            self._hold_again(0 if opening.resume is None else opening.resume.done)

    def commit(self, epoch: int, token: Any) -> None:
        """Commit the epoch; with an interval rows are held until that is over."""
        if not self._interval:
            super().commit(epoch, token)
            return
        with self._lock:
            self._raise_error()
            if token["staged"]:
                self._held[epoch] = self._staged_path(epoch)
            elif self._staged_rows:
                self._held[epoch], self._staged_rows = self._staged_rows, []
            self._start_timer()

    def close(self) -> None:
        self._stop_timer()
        self._raise_error()
        with self._lock:
            self._flush()
        super().close()

    def abort(self, epoch: int) -> None:
        """What a checkpoint counts stays staged, for whoever resumes."""
        self._stop_timer()
        super().abort(epoch)

    # --- an interval -------------------------------------------------------------------------------------------------

    def _hold_again(self, done: int) -> None:
        """What a process before has staged: of epochs that count, which are held, and of those that will come again."""
        for path in glob.glob(os.path.join(glob.escape(self._staging or ""), "epoch-*.arrow")):
            epoch = int(os.path.basename(path).removeprefix("epoch-").removesuffix(".arrow"))
            if epoch < done:
                self._held[epoch] = path
            else:
                os.unlink(path)
        self._start_timer()

    def _start_timer(self) -> None:
        if self._held and self._timer is None:
            self._timer = threading.Timer(self._interval, self._flush_in_time)
            self._timer.daemon = True
            self._timer.start()

    def _stop_timer(self) -> None:
        with self._lock:
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
            timer.join()

    def _flush_in_time(self) -> None:
        with self._lock:
            if self._timer is not threading.current_thread():
                return  # it was stopped while it waited
            self._timer = None
            try:
                self._flush()
            except TransomError as error:
                self._error = error  # for the thread that runs the query

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _flush(self) -> None:
        """One commit of all epochs that are held, but for those that a process before has committed and died."""
        if not self._held:
            return
        committed = self._last_committed()
        rows: list[pa.RecordBatch] = []
        for epoch, held in sorted(self._held.items()):
            if committed is None or epoch > committed:
                rows += (self._read_staged(held) or ()) if isinstance(held, str) else held
        if rows:
            self.transact(max(self._held), rows)
        for held in self._held.values():
            if isinstance(held, str):
                os.unlink(held)
        self._held = {}

    def _last_committed(self) -> int | None:
        """The last epoch of this run in the table."""
        delta = _deltalake()
        with self._errors(delta):
            committed: int | None = self._opened(delta).transaction_version(self.run)
        return committed

    def transact(self, epoch: int, rows: Sequence[pa.RecordBatch]) -> None:
        delta = _deltalake()
        table = pa.Table.from_batches(
            [pa.RecordBatch.from_arrays(batch.columns, schema=self._schema) for batch in rows]
        )
        with self._errors(delta):
            there = self._opened(delta)
            committed = there.transaction_version(self.run)
            if committed is not None and committed >= epoch:
                return
            number = delta.CommitProperties(app_transactions=[delta.Transaction(self.run, epoch)])
            if self._form != "net":
                delta.write_deltalake(there, table, mode="append", commit_properties=number)
                return
            table = _last_of_each(table, self._key)
            if committed is None or not self._key:
                self._replace(delta, there, table, number)
            else:
                self._merge(there, table, number)

    @contextmanager
    def _errors(self, delta: Any) -> Iterator[None]:
        try:
            yield
        except (delta.exceptions.DeltaError, OSError, ValueError) as error:
            raise SinkError(
                f"the Delta table '{self._path}' cannot be written to: {' '.join(str(error).split())}",
                remedy="check that the folder may be written to, and that the table has the columns of the answer",
            ) from None

    def _opened(self, delta: Any) -> Any:
        """The table, which is created if it is not there; one that is maintained says so."""
        try:
            there = delta.DeltaTable(self._path, storage_options=self._storage)
        except delta.exceptions.TableNotFoundError:
            there = self._created(delta)
        maintained = there.metadata().configuration.get(_MAINTAINED) == "true"
        if maintained != (self._form == "net"):
            raise SinkError(
                f"the Delta table '{self._path}' is {'' if maintained else 'not '}one that a query maintains",
                remedy="name another path",
            )
        return there

    def _created(self, delta: Any) -> Any:
        schema = pa.schema([self._schema.field(name).with_nullable(True) for name in self._columns])
        marks = {_MAINTAINED: "true"} if self._form == "net" else {}
        storage = self._storage
        delta.DeltaTable.create(
            self._path,
            schema,
            mode="ignore",
            configuration=marks,
            raise_if_key_not_exists=False,
            storage_options=storage,
        )
        return delta.DeltaTable(self._path, storage_options=storage)

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
    reject_unknown(declared.properties, ["connector", "path", "commit_interval"], "a sink of connector 'delta'")
    _interval(declared.properties)
    path = storage_path(declared.properties.get("path", ""))
    if not path:
        raise OptionError("connector 'delta' needs a path", remedy="write path = '..', the folder of the table")
    if declared.within is not None:
        declared.within.check(path)
    _deltalake()


def _storage_options(path: str) -> dict[str, str]:
    """What delta-rs does not find in the environment by itself: that an endpoint without TLS is meant to be one."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    if not path.startswith(("s3://", "s3a://")) or not endpoint.startswith("http://"):
        return {}
    return {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true"}


def _interval(properties: Mapping[str, str]) -> float:
    """Seconds between two commits; 0: every epoch is one."""
    text = properties.get("commit_interval")
    micros = 0 if text is None else parse_duration(text)
    if text is not None and not micros:
        raise OptionError(f"commit_interval = '{text}' is no interval", remedy="write commit_interval = '10 SECONDS'")
    return (micros or 0) / SECOND


def _last_of_each(table: pa.Table, key: Sequence[str]) -> pa.Table:
    """Changes of several epochs as those of one: the last of each key says what it has from now on."""
    if not key:
        return table.slice(max(0, len(table) - 1))
    numbered = table.select(list(key)).append_column("", pa.array(np.arange(len(table))))
    last = numbered.group_by(list(key)).aggregate([("", "max")]).column("_max")
    return table if len(last) == len(table) else table.take(last)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _deltalake() -> Any:
    try:
        import deltalake
        import deltalake.exceptions
    except ImportError:
        raise OptionError("connector 'delta' needs delta-rs", remedy="pip install 'transom[delta]'") from None
    return deltalake
