"""The messages of Arrow Flight SQL, as far as they are spoken here: those of its FlightSql.proto, by number."""

from __future__ import annotations

from typing import Any, Final

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory

_PACKAGE: Final = "arrow.flight.protocol.sql"
_URL: Final = f"type.googleapis.com/{_PACKAGE}."

_FIELDS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "CommandStatementQuery": (("query", "string"), ("transaction_id", "bytes")),
    "TicketStatementQuery": (("statement_handle", "bytes"),),
    "CommandPreparedStatementQuery": (("prepared_statement_handle", "bytes"),),
    "ActionCreatePreparedStatementRequest": (("query", "string"), ("transaction_id", "bytes")),
    "ActionCreatePreparedStatementResult": (
        ("prepared_statement_handle", "bytes"),
        ("dataset_schema", "bytes"),
        ("parameter_schema", "bytes"),
    ),
    "ActionClosePreparedStatementRequest": (("prepared_statement_handle", "bytes"),),
    "CommandGetCatalogs": (),
    "CommandGetDbSchemas": (("catalog", "string"), ("db_schema_filter_pattern", "string")),
    "CommandGetTables": (
        ("catalog", "string"),
        ("db_schema_filter_pattern", "string"),
        ("table_name_filter_pattern", "string"),
        ("table_types", "strings"),
        ("include_schema", "bool"),
    ),
    "CommandGetTableTypes": (),
    "CommandGetSqlInfo": (),
}


def _classes() -> dict[str, Any]:
    kinds = descriptor_pb2.FieldDescriptorProto
    types = {"string": kinds.TYPE_STRING, "strings": kinds.TYPE_STRING, "bytes": kinds.TYPE_BYTES}
    file = descriptor_pb2.FileDescriptorProto(name="transom/flight_sql.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for number, (field, type_) in enumerate(fields, 1):
            label = kinds.LABEL_REPEATED if type_ == "strings" else kinds.LABEL_OPTIONAL
            message.field.add(name=field, number=number, type=types.get(type_, kinds.TYPE_BOOL), label=label)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _FIELDS}


_CLASSES: Final = _classes()


def unpack(data: bytes) -> tuple[str, Any]:
    """The name of a message that is wrapped in an Any, and the message; '' and None of one that is not known.

    >>> name, message = unpack(pack("CommandStatementQuery", query="SELECT 1"))
    >>> name, message.query, unpack(b"junk")
    ('CommandStatementQuery', 'SELECT 1', ('', None))
    """
    wrapped = any_pb2.Any()
    try:
        wrapped.ParseFromString(data)
        name = wrapped.type_url.rpartition(".")[2]
        if name not in _CLASSES:
            return "", None
        message = _CLASSES[name]()
        message.ParseFromString(wrapped.value)
        return name, message
    except ValueError:  # what protobuf raises of bytes that are no message is one
        return "", None
    except Exception as error:
        if type(error).__name__ == "DecodeError":
            return "", None
        raise


def pack(name: str, **fields: Any) -> bytes:
    message = _CLASSES[name](**fields)
    return bytes(any_pb2.Any(type_url=_URL + name, value=message.SerializeToString()).SerializeToString())
