"""Arrow Flight SQL over the answers of queries that run: what ADBC, JDBC and the tools above them speak.

Nothing can be written. It listens on this machine alone unless another address is given.
"""

from __future__ import annotations

import re
import secrets
import socket
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
from pyarrow import flight

from transom.core.errors import TransomError
from transom.flight.answer_history import AnswerHistory
from transom.flight.protocol import pack, unpack
from transom.flight.select import Selected
from transom.monitoring.address import Address

PORT: Final = 9465
_MOST_WAITING: Final = 32
"""Queries whose rows were not fetched yet, and prepared ones; of more, the oldest are forgotten."""

_CATALOG: Final = "memory"
_SCHEMA: Final = "main"
_TABLES: Final = pa.schema(
    [
        ("catalog_name", pa.string()),
        ("db_schema_name", pa.string()),
        pa.field("table_name", pa.string(), nullable=False),
        pa.field("table_type", pa.string(), nullable=False),
    ]
)
_SQL_INFO: Final = pa.schema(
    [
        pa.field("info_name", pa.uint32(), nullable=False),
        pa.field(
            "value",
            pa.dense_union(
                [
                    pa.field("string_value", pa.string()),
                    pa.field("bool_value", pa.bool_()),
                    pa.field("bigint_value", pa.int64()),
                    pa.field("int32_bitmask", pa.int32()),
                    pa.field("string_list", pa.list_(pa.string())),
                    pa.field("int32_to_int32_list_map", pa.map_(pa.int32(), pa.list_(pa.int32()))),
                ]
            ),
            nullable=False,
        ),
    ]
)


class FlightSqlServer:
    """Listens until it is closed.

    >>> with FlightSqlServer(lambda: {}, Address("127.0.0.1", 0)) as server:
    ...     server.url.startswith("grpc://127.0.0.1:")
    True
    """

    def __init__(self, answers: Callable[[], Mapping[str, AnswerHistory]], address: Address) -> None:
        with address.taken_is_an_error("Flight SQL"):
            _check_free(address)
            self._server = _AnswerServer(answers, f"grpc://{address}")
        self.address = address.with_port(self._server.port)

    @property
    def url(self) -> str:
        """The address to ask."""
        return f"grpc://{self.address}"

    def close(self) -> None:
        """Answer nobody any more."""
        self._server.shutdown()

    def __enter__(self) -> FlightSqlServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _check_free(address: Address) -> None:
    """gRPC shares a port with whoever else listens there, and each would get some of the requests."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((address.host, address.port))


class _AnswerServer(flight.FlightServerBase):  # type: ignore[misc]  # which ships no types
    def __init__(self, answers: Callable[[], Mapping[str, AnswerHistory]], location: str) -> None:
        self._answers = answers
        self._lock = threading.Lock()
        self._waiting: OrderedDict[bytes, Selected] = OrderedDict()
        self._prepared: OrderedDict[bytes, str] = OrderedDict()
        super().__init__(location)

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        name, message = unpack(descriptor.command or b"")
        if name == "CommandStatementQuery":
            return self._begin(message.query, descriptor)
        if name == "CommandPreparedStatementQuery":
            with self._lock:
                text = self._prepared.get(message.prepared_statement_handle)
            if text is None:
                raise flight.FlightServerError("the prepared query is not known any more: prepare it again")
            return self._begin(text, descriptor)
        if name.startswith("CommandGet"):
            return _info(self._listed(name, message).schema, descriptor, descriptor.command)
        raise _unsupported()

    def get_schema(self, context: Any, descriptor: Any) -> Any:
        return flight.SchemaResult(self.get_flight_info(context, descriptor).schema)

    def do_get(self, context: Any, ticket: Any) -> Any:
        name, message = unpack(ticket.ticket)
        if name == "TicketStatementQuery":
            with self._lock:
                selected = self._waiting.pop(message.statement_handle, None)
            if selected is None:
                raise flight.FlightServerError("the rows are not there any more: send the query again")
            return flight.GeneratorStream(selected.schema, _rows(selected))
        if name.startswith("CommandGet"):
            return flight.RecordBatchStream(self._listed(name, message))
        raise _unsupported()

    def do_action(self, context: Any, action: Any) -> Iterator[bytes]:
        name, message = unpack(action.body.to_pybytes())
        if action.type == "CreatePreparedStatement" and name == "ActionCreatePreparedStatementRequest":
            selected = _selected(message.query, self._answers())
            schema = selected.schema.serialize().to_pybytes()
            selected.close()
            handle = secrets.token_bytes(16)
            with self._lock:
                self._prepared[handle] = message.query
                while len(self._prepared) > _MOST_WAITING:
                    self._prepared.popitem(last=False)
            fields = {"prepared_statement_handle": handle, "dataset_schema": schema}
            return iter([pack("ActionCreatePreparedStatementResult", **fields)])
        if action.type == "ClosePreparedStatement" and name == "ActionClosePreparedStatementRequest":
            with self._lock:
                self._prepared.pop(message.prepared_statement_handle, None)
            return iter([])
        raise _unsupported()

    def list_actions(self, context: Any) -> list[tuple[str, str]]:
        return [("CreatePreparedStatement", "prepare a query"), ("ClosePreparedStatement", "forget it")]

    def _begin(self, text: str, descriptor: Any) -> Any:
        selected = _selected(text, self._answers())
        handle = secrets.token_bytes(16)
        with self._lock:
            self._waiting[handle] = selected
            old = [self._waiting.popitem(last=False)[1] for _ in range(len(self._waiting) - _MOST_WAITING)]
        for each in old:
            each.close()
        return _info(selected.schema, descriptor, pack("TicketStatementQuery", statement_handle=handle))

    def _listed(self, name: str, message: Any) -> pa.Table:
        match name:
            case "CommandGetCatalogs":
                return pa.table([[_CATALOG]], schema=pa.schema([pa.field("catalog_name", pa.string(), nullable=False)]))
            case "CommandGetDbSchemas":
                return pa.table([[_CATALOG], [_SCHEMA]], schema=_db_schemas())
            case "CommandGetTableTypes":
                return pa.table([["VIEW"]], schema=pa.schema([pa.field("table_type", pa.string(), nullable=False)]))
            case "CommandGetTables":
                return self._tables(message)
        return _SQL_INFO.empty_table()

    def _tables(self, message: Any) -> pa.Table:
        wanted = _like(message.table_name_filter_pattern or "%")
        there = {
            name: history
            for name, history in sorted(self._answers().items())
            if history.offered and wanted.fullmatch(name)
        }
        if message.table_types and "VIEW" not in message.table_types:
            there = {}
        columns: list[Any] = [[_CATALOG] * len(there), [_SCHEMA] * len(there), list(there), ["VIEW"] * len(there)]
        schema = _TABLES
        if message.include_schema:
            columns.append([history.columns.serialize().to_pybytes() for history in there.values()])
            schema = schema.append(pa.field("table_schema", pa.binary(), nullable=False))
        return pa.table(
            [pa.array(each, field.type) for each, field in zip(columns, schema, strict=True)], schema=schema
        )


def _db_schemas() -> pa.Schema:
    return pa.schema([("catalog_name", pa.string()), pa.field("db_schema_name", pa.string(), nullable=False)])


def _info(schema: pa.Schema, descriptor: Any, ticket: bytes) -> Any:
    return flight.FlightInfo(schema, descriptor, [flight.FlightEndpoint(ticket, [])], -1, -1)


def _selected(text: str, answers: Mapping[str, AnswerHistory]) -> Selected:
    try:
        return Selected(text, answers)
    except TransomError as error:
        raise flight.FlightServerError(str(error)) from None


def _rows(selected: Selected) -> Iterator[pa.RecordBatch]:
    try:
        yield from selected.batches()
    except TransomError as error:
        raise flight.FlightServerError(str(error)) from None


def _unsupported() -> Exception:
    return NotImplementedError("answers can be asked by queries, and nothing else")


def _like(pattern: str) -> re.Pattern[str]:
    """
    >>> bool(_like("h_t%").fullmatch("hot one")), bool(_like("h.t").fullmatch("hot"))
    (True, False)
    """
    return re.compile("".join({"%": ".*", "_": "."}.get(c, re.escape(c)) for c in pattern), re.DOTALL)
