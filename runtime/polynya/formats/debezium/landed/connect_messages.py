"""Keys and values that Connect's Avro converter wrote, whose schemas a registry has by number.

Each becomes what Connect's JSON converter would have written, with its schema.
"""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import fastavro
from fastavro.schema import parse_schema

from polynya.formats.contents.avro_content import numbered_datum
from polynya.formats.debezium.connect_avro import form_of, without_logical_types, wrapper
from polynya.formats.errors import RecordError, TooLargeError
from polynya.formats.records.avro import DAMAGE
from polynya.formats.records.avro_guard import check_schema
from polynya.store.schema_registry import RegisteredSchema, SchemaRegistry

_DAMAGE: Final = (*DAMAGE, MemoryError, AttributeError, TooLargeError)


@dataclass(frozen=True, slots=True)
class _Schema:
    """A schema as values are read with it, and what makes Connect's JSON of them."""

    parsed: Any
    encode: Callable[[Any], Any]

    @classmethod
    def of(cls, found: RegisteredSchema) -> _Schema:
        """Raises what parsing raises, also ValueError for one that Connect does not write."""
        if found.kind.upper() != "AVRO":
            raise ValueError(f"it is of type {found.kind}, not Avro")
        if found.references:
            raise ValueError("it refers to other schemas")
        schema = parse_schema(json.loads(found.text))
        check_schema(schema, {})
        form = form_of(schema)
        plain = copy.deepcopy(schema)
        # Values stay as Connect wrote them: what no calendar holds spoils its record only.
        without_logical_types(plain)
        encode = wrapper(form) if form.schema["type"] == "struct" else form.encode
        return cls(plain, encode)

    def read(self, datum: bytes) -> Any:
        """The value of a datum, with its schema. Raises RecordError."""
        file = io.BytesIO(datum)
        try:
            value = fastavro.schemaless_reader(file, self.parsed, None)
        except _DAMAGE as error:
            what = f"{type(error).__name__} {error}"
            raise RecordError("bad_avro", f"no datum of the schema: {what}") from error
        left = len(datum) - file.tell()
        if left:
            raise RecordError("bad_avro", f"no datum of the schema: {left} bytes follow it")
        return self.encode(value)


class ConnectMessages:
    """Reads keys and values by the schemas of one registry."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry
        self._schemas: dict[int, _Schema | RecordError] = {}

    def of(self, message: bytes) -> Any:
        """What a message holds, with its schema.

        Raises:
            RecordError: bad_avro, unknown_schema.
            DependencyError: the registry does not answer.
        """
        number, datum = numbered_datum(message)
        if number not in self._schemas:
            self._schemas[number] = self._asked(number)
        schema = self._schemas[number]
        if isinstance(schema, RecordError):
            raise RecordError(schema.rule, schema.error)
        return schema.read(datum)

    def _asked(self, number: int) -> _Schema | RecordError:
        found = self._registry.by_number(number)
        if found is None:
            return RecordError("unknown_schema", f"the registry has no schema {number}")
        try:
            return _Schema.of(found)
        except _DAMAGE as error:
            return RecordError("unknown_schema", f"schema {number} cannot be used: {error}")
