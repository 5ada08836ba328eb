"""A run on Spark to which queries come while it goes on, and which they leave; its checkpoint knows who was there.

Until it begins it only gathers queries. Then those that the checkpoint has go on, each streaming query with the very
queries that it had, since a batch that was planned has to be done by them; others come to them once they run. Where
the queries of a streaming query change, another one goes on in a folder of its own; `open.json` names the folders that
count, and is written before the other one begins.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Sequence
from typing import Any, Final, Protocol

from transom.connectors.storage import storage_of
from transom.core.errors import CheckpointError, QueryError
from transom.core.location import is_remote
from transom.core.time import BEGINNING
from transom.planner.sharing_shape import Sharable
from transom.program.checkpoint_folder import CheckpointFolder, names_in, remove
from transom.program.checkpoint_manifest import Manifest
from transom.program.run import QuerySpec
from transom.program.status import Status
from transom.runtimes.spark.group import SparkGroup, next_folder
from transom.runtimes.spark.query import SparkQuery
from transom.runtimes.spark.query_context import QueryContext
from transom.runtimes.spark.run import SparkRun, queries_of
from transom.runtimes.spark.spark_consumer import SparkConsumer

OPEN: Final = "open.json"
"""The file that names the streaming queries of the run, and what each of them needs to go on."""

_UNIT: Final = re.compile("[0-9a-f]{12}")
"""What the folder of a streaming query is called."""


class UnitMaker(Protocol):
    """Makes streaming queries, with their checkpoint in this folder if there is one."""

    def request(self, spec: QuerySpec) -> Sharable | None:
        """What a query asks of a join that others may share."""

    def check(self, spec: QuerySpec) -> None:
        """Raises an error where something is in the way of a query."""

    def context(self, folder: str | None) -> QueryContext: ...

    def alone(self, spec: QuerySpec, folder: str | None) -> SparkQuery: ...


class OpenSparkRun(SparkRun):
    def __init__(self, maker: UnitMaker, folder: CheckpointFolder | None) -> None:
        super().__init__([], folder)
        self._maker = maker
        self._specs: dict[str, QuerySpec] = {}
        self._begun = False
        self._gathered: dict[str, SparkConsumer] = {}
        """Those that will share a join, until the run has begun."""
        self._waiting: list[tuple[SparkGroup, list[SparkConsumer]]] = []
        """Those that come to a group once it runs."""
        data = None if folder is None else folder.read(OPEN)
        self._saved: list[dict[str, Any]] = []
        try:
            written = None if folder is None else folder.manifest()
            self._resumes = data is not None or (written is not None and not written.open)
            self._check()
            self._saved = [] if data is None else _units_of(data)
        except BaseException:
            self.abort()
            raise

    def _check(self, *specs: QuerySpec) -> None:
        """What the checkpoint has is of such queries."""
        if self._folder is not None:
            self._folder.check(Manifest.of("spark", specs, is_open=True), self._resumes)

    def _claim(self, resumes: bool) -> None:
        """The folder is for the queries that are there."""
        if self._folder is not None:
            self._folder.claim(Manifest.of("spark", list(self._specs.values()), is_open=True), resumes)

    def _unit_folder(self) -> str | None:
        """For a streaming query that was not there before: what is beside it is those that go on as it."""
        return None if self._folder is None else os.path.join(next_folder(f"{self._folder.folder}/unit"), "first")

    def _path(self, saved: dict[str, Any]) -> str:
        assert self._folder is not None
        return os.path.join(self._folder.folder, saved["folder"])

    # --- the beginning -----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """All that are there at first have come: resume from the checkpoint, if there is one."""
        try:
            self._begin()
        except BaseException:
            self.abort()
            raise

    def _begin(self) -> None:
        there = [name for saved in self._saved for name in _names(saved)]
        missing = [name for name in there if name not in self._specs]
        if missing:
            raise CheckpointError(
                f"the checkpoint was written by other queries: {', '.join(map(repr, missing))} is not there now",
                remedy="add the queries that were in it, and stop() those that are to go once they run",
            )
        self._tidy()
        for saved in self._saved:
            if saved["group"] is not None:
                before = {name: self._gathered.pop(name) for name in _names(saved)}
                for consumer in before.values():
                    consumer.last = None
                context = self._maker.context(self._path(saved))
                self._take_on(SparkGroup.resumed(saved["group"], before, context))
        for consumers in _on_one_join(list(self._gathered.values())):
            request = consumers[0].request
            assert isinstance(request, Sharable)
            group = self._group_for(request)
            if group is None:
                self._take_on(SparkGroup(consumers, self._maker.context(self._unit_folder())))
            else:
                self._waiting.append((group, consumers))
        self._gathered, self._begun = {}, True
        self._write()
        self._claim(self._resumes)

    def _tidy(self) -> None:
        """A process that died may have left folders with which nobody goes on."""
        if self._folder is None or is_remote(self._folder.folder):
            return
        kept = [os.path.split(saved["folder"]) for saved in self._saved]
        units = [unit for unit in names_in(self._folder.folder) if _UNIT.fullmatch(unit)]
        for unit in units:
            for name in names_in(os.path.join(self._folder.folder, unit)):
                if name != "rows" and (unit, name) not in kept:
                    _remove_tree(os.path.join(self._folder.folder, unit, name))
            if all(unit != other for other, _ in kept):
                _remove_tree(os.path.join(self._folder.folder, unit))

    def _gather(self, spec: QuerySpec) -> SparkQuery | SparkConsumer:
        self._check(spec)
        saved = next((saved for saved in self._saved if spec.name in _names(saved)), None)
        if saved is None:
            self._reject_again(spec)
        request = self._maker.request(spec)
        if saved is None or saved["group"] is not None:
            if request is not None:
                consumer = self._gathered[spec.name] = SparkConsumer(spec, request)
                consumer.last = Status(spec.name, (), (), BEGINNING, None, 0, 0, finished=False)
                return consumer
            if saved is not None:
                raise CheckpointError(
                    f"the query '{spec.name}' shared a join when the checkpoint was written, and does not now",
                    remedy="write SET sharing = 'on', or start with an empty checkpoint folder",
                )
        return self._take_on(self._maker.alone(spec, self._unit_folder() if saved is None else self._path(saved)))

    def _take_on(self, unit: SparkQuery) -> SparkQuery:
        self._replace(None, unit)
        return unit

    def _let_in_waiting(self) -> None:
        for group, consumers in self._waiting:
            self._let_in(group, consumers)
        self._waiting = []

    # --- coming and going --------------------------------------------------------------------------------------------

    def add(self, spec: QuerySpec) -> SparkQuery | SparkConsumer:
        """A query that was not there before, to whom it shares a join with, if there is one."""
        self._maker.check(spec)
        if not self._begun:
            query = self._gather(spec)
            self._specs[spec.name] = spec
            return query
        self._reject_again(spec)
        self._check(spec)
        query = self._come(spec)
        self._specs[spec.name] = spec
        self._claim(resumes=True)
        return query

    def _reject_again(self, spec: QuerySpec) -> None:
        """A sink that keeps the numbers of epochs would take rows of a query that comes back for old ones."""
        before = None if self._folder is None or spec.planned.sink is None else self._folder.manifest()
        if before is not None and spec.name in before.queries:
            raise QueryError(
                f"a query '{spec.name}' was in this checkpoint, and its sink has its rows",
                remedy="give the query another name",
            )

    def _come(self, spec: QuerySpec) -> SparkQuery | SparkConsumer:
        request = self._maker.request(spec)
        if request is None:
            unit = self._maker.alone(spec, self._unit_folder())
            self._change(None, unit)
            return unit
        consumer = SparkConsumer(spec, request)
        group = self._group_for(request)
        if group is None:
            self._change(None, SparkGroup([consumer], self._maker.context(self._unit_folder())))
        else:
            self._let_in(group, [consumer])
        return consumer

    def _group_for(self, request: Sharable) -> SparkGroup | None:
        groups = (unit for unit in self.units if isinstance(unit, SparkGroup))
        return next((group for group in groups if group.admits(request)), None)

    def _let_in(self, group: SparkGroup, consumers: Sequence[SparkConsumer]) -> None:
        for consumer in consumers:
            consumer.open(group, comes=True)  # before anybody is stopped for it
        following = group.changed(come=consumers)
        if following is None:  # the others have just come to the end of their input
            for consumer in consumers:
                consumer.abort()
            self._change(None, SparkGroup(consumers, self._maker.context(self._unit_folder())))
        else:
            self._change(group, following)

    def remove(self, name: str) -> None:
        if not self._begun:
            self._forget(name)
            return
        unit = next((unit for unit in self.units if any(query.name == name for query in queries_of(unit))), None)
        if unit is None:
            return
        self._left[name] = self.recent(name)
        if isinstance(unit, SparkGroup) and len(unit.consumers) > 1:
            following = unit.changed(go=[name])
            if following is None:
                unit.let_go(name)  # it stays in the checkpoint, with the others that are over
                return
            self._change(unit, following)
        else:
            unit.finish()
            unit.close()
            self._change(unit, None)
        del self._specs[name]
        self._claim(resumes=True)

    def _forget(self, name: str) -> None:
        self._specs.pop(name, None)
        self._gathered.pop(name, None)
        for unit in [unit for unit in self.units if unit.name == name]:
            self._replace(unit, None)

    def _change(self, old: SparkQuery | None, new: SparkQuery | None) -> None:
        """One goes on as the other; or it comes, or goes. The checkpoint knows before it begins."""
        units = [unit for unit in self.units if unit is not old]
        self._write([*units, *([] if new is None else [new])])
        try:
            self._replace(old, new)
        except BaseException:
            if old is None:
                self._write()  # it has not come after all
            raise
        if old is not None and old.checkpoint is not None:
            _remove_tree(os.path.dirname(old.checkpoint) if new is None else old.checkpoint)

    def _write(self, units: Sequence[SparkQuery] | None = None) -> None:
        if self._folder is None:
            return
        saved = []
        for unit in self.units if units is None else units:
            assert unit.checkpoint is not None
            saved.append(
                {
                    "folder": os.path.join(*unit.checkpoint.rsplit("/", 2)[1:]),
                    "name": unit.name,
                    "group": unit.saved() if isinstance(unit, SparkGroup) else None,
                }
            )
        self._folder.write(OPEN, json.dumps(saved, indent=1).encode())


def _units_of(data: bytes) -> list[dict[str, Any]]:
    try:
        units = json.loads(data)
        for saved in units:
            _names(saved)
        return [{name: saved[name] for name in ("folder", "name", "group")} for saved in units]
    except (ValueError, TypeError, KeyError):
        raise CheckpointError(
            f"'{OPEN}' of the checkpoint is damaged, which says where its queries are",
            remedy="put it back from a copy, or start with an empty checkpoint folder",
        ) from None


def _names(saved: dict[str, Any]) -> list[str]:
    """The queries of a streaming query."""
    return [saved["name"]] if saved["group"] is None else [of_query["name"] for of_query in saved["group"]["queries"]]


def _on_one_join(consumers: Sequence[SparkConsumer]) -> list[list[SparkConsumer]]:
    groups: dict[object, list[SparkConsumer]] = {}
    for consumer in consumers:
        assert isinstance(consumer.request, Sharable)
        groups.setdefault(consumer.request.join, []).append(consumer)
    return list(groups.values())


def _remove_tree(folder: str) -> None:
    """A folder that nobody needs; whoever may not remove it leaves it."""
    if not is_remote(folder):
        shutil.rmtree(folder, ignore_errors=True)
        return
    for entry in storage_of(folder).entries(folder):
        path = os.path.join(folder, entry.name)
        if entry.folder:
            _remove_tree(path)
        else:
            remove(path)
