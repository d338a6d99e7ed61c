"""Avro: containers, datums of one schema, and datums that name their schema in a registry."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import fastavro
from fastavro.schema import parse_schema
from typing_extensions import override

from polynya.formats import limits
from polynya.formats.contents.decoded import Decoded, OneByOne
from polynya.formats.errors import RecordError, TooLargeError
from polynya.formats.records.avro import DAMAGE, Most, check_schema, reader_of, record_types
from polynya.formats.records.columnar import as_text, plain
from polynya.formats.values.exact import json_text
from polynya.model.error_catalogue.streams import CONTENT_UNUSABLE
from polynya.model.types import DataType
from polynya.store.schema_registry import RegisteredSchema, SchemaLookup

S = TypeVar("S")

_DAMAGE: Final = (*DAMAGE, MemoryError, AttributeError, TooLargeError)
#: Confluent's wire format: this byte, then the number of the schema in four bytes.
_MAGIC: Final = b"\0"
_PREFIX_BYTES: Final = 5


class ContainerDecoder(OneByOne):
    """Avro containers, which carry their schema."""

    is_typed = True

    @override
    def one(self, message: bytes) -> Decoded:
        file = io.BytesIO(message)
        try:
            reader = reader_of(file, Most(limits.MESSAGE_RECORDS, limits.MESSAGE_BYTES))
            types = record_types(reader.writer_schema)
            records = [as_text(record) for record in reader]
        except TooLargeError as error:
            raise RecordError("too_large", str(error)) from error
        except _DAMAGE as error:
            raise _damaged("not a whole Avro container", error) from error
        if len(records) == 1:
            return Decoded(records, types)
        return Decoded(records, types, lambda at: _spelled(records[at]), is_spelled=True)


@dataclass(frozen=True, slots=True)
class _Schema:
    """A schema that datums can be read with, and the types of its columns."""

    parsed: Any
    types: Mapping[str, DataType]

    @classmethod
    def of(cls, schema: Any, others: dict[str, Any]) -> _Schema:
        """Parse a schema; `others` are types that it may use by name, its own are added.

        Raises what parsing raises, also ValueError for one that no table can have.
        """
        parsed = parse_schema(schema, others)
        check_schema(parsed, others)
        return cls(parsed, record_types(parsed, others))

    def decode(self, datum: bytes) -> Decoded:
        """The record of a datum. Raises RecordError."""
        record = read_datum(datum, self.parsed, as_text)
        return Decoded((record,), self.types)


class DatumDecoder(OneByOne):
    """Datums of the schema that the settings give."""

    is_typed = True

    def __init__(self, schema: str) -> None:
        try:
            self._schema = _Schema.of(json.loads(schema), {})
        except _DAMAGE as error:
            raise CONTENT_UNUSABLE(where="content.schema", part="schema", error=error) from error

    @override
    def one(self, message: bytes) -> Decoded:
        return self._schema.decode(message)


class RegistryDecoder(OneByOne):
    """Datums that name their schema by its number in a registry."""

    is_typed = True

    def __init__(self, registry: SchemaLookup) -> None:
        self._registry = registry
        self._schemas = NumberedSchemas(registry, self._usable)

    @override
    def one(self, message: bytes) -> Decoded:
        """Decode it. Raises DependencyError when the registry does not answer."""
        schema, datum = self._schemas.of(message)
        return schema.decode(datum)

    def _usable(self, found: RegisteredSchema) -> _Schema:
        others: dict[str, Any] = {}
        self._refer(found, others, set())
        return _Schema.of(_avro(found), others)

    def _refer(
        self, schema: RegisteredSchema, others: dict[str, Any], met: set[tuple[str, int]]
    ) -> None:
        """Add the types of the schemas that a schema refers to, those that they need first."""
        for reference in schema.references:
            place = (reference.subject, reference.version)
            if place in met:
                continue
            met.add(place)
            if len(met) > limits.MESSAGE_REFERENCES:
                raise ValueError(f"it refers to more than {limits.MESSAGE_REFERENCES} schemas")
            found = self._registry.by_version(*place)
            if found is None:
                subject, version = place
                raise ValueError(f"the registry has no version {version} of {subject!r}")
            self._refer(found, others, met)
            parse_schema(_avro(found), others)


class NumberedSchemas(Generic[S]):
    """The schemas that messages name by number, each fetched from the registry once.

    `usable` makes of a schema what its reader needs, and raises what parsing raises.
    """

    def __init__(self, registry: SchemaLookup, usable: Callable[[RegisteredSchema], S]) -> None:
        self._registry, self._usable = registry, usable
        self._schemas: dict[int, S | RecordError] = {}

    def of(self, message: bytes) -> tuple[S, bytes]:
        """The schema of a message, and its datum.

        Raises:
            RecordError: bad_avro, unknown_schema.
            DependencyError: the registry does not answer.
        """
        number, datum = _numbered_datum(message)
        if number not in self._schemas:
            self._schemas[number] = self._fetched(number)
        schema = self._schemas[number]
        if isinstance(schema, RecordError):
            raise RecordError(schema.rule, schema.error)
        return schema, datum

    def _fetched(self, number: int) -> S | RecordError:
        found = self._registry.by_number(number)
        if found is None:
            return RecordError("unknown_schema", f"the registry has no schema {number}")
        try:
            return self._usable(found)
        except _DAMAGE as error:
            return RecordError("unknown_schema", f"schema {number} cannot be used: {error}")


def read_datum(
    datum: bytes, schema: Any, convert: Callable[[Any], Any] = lambda value: value
) -> Any:
    """The converted value of a datum that its parsed schema describes whole.

    Raises RecordError for any other bytes, and when the conversion fails.
    """
    file = io.BytesIO(datum)
    try:
        value = convert(fastavro.schemaless_reader(file, schema, None))
    except _DAMAGE as error:
        raise _damaged("not a datum of the schema", error) from error
    left = len(datum) - file.tell()
    if left:
        raise RecordError("bad_avro", f"not a datum of the schema: {left} bytes follow it")
    return value


def _numbered_datum(message: bytes) -> tuple[int, bytes]:
    """The number of the schema of a message in Confluent's wire format, and its datum.

    Raises RecordError for anything else.
    """
    if len(message) < _PREFIX_BYTES or not message.startswith(_MAGIC):
        raise RecordError("bad_avro", f"no number of a schema: it begins with {message[:5]!r}")
    return int.from_bytes(message[1:_PREFIX_BYTES], "big"), message[_PREFIX_BYTES:]


def _avro(schema: RegisteredSchema) -> Any:
    if schema.kind.upper() != "AVRO":
        raise ValueError(f"it is of type {schema.kind}, not Avro")
    return json.loads(schema.text)


def _spelled(record: Any) -> bytes:
    return json_text(plain(record)).encode()


def _damaged(what: str, error: BaseException) -> RecordError:
    return RecordError("bad_avro", f"{what}: {type(error).__name__} {error}")
