"""From a content to its decoder."""

from __future__ import annotations

from functools import lru_cache

from polynya.formats.contents.auto_content import AutoDecoder
from polynya.formats.contents.avro_content import ContainerDecoder, DatumDecoder, RegistryDecoder
from polynya.formats.contents.columnar_content import orc_decoder, parquet_decoder
from polynya.formats.contents.decoded import Decoder
from polynya.formats.contents.json_content import JsonDecoder
from polynya.formats.contents.separated_content import SeparatedDecoder
from polynya.formats.contents.text_content import RegexDecoder, SplitDecoder
from polynya.formats.contents.xml_content import XmlDecoder
from polynya.model.config.delivery import SchemaRegistry
from polynya.model.config.streaming.content import (
    AutoContent,
    AvroContent,
    Content,
    CsvContent,
    JsonContent,
    OrcContent,
    ParquetContent,
    RegexContent,
    RegistryAvroContent,
    SplitLinesContent,
    TsvContent,
    XmlContent,
)
from polynya.store.schema_registry import HttpSchemaRegistry
from polynya.store.vault import vault


def decoder_of(content: Content, access: SchemaRegistry | None = None) -> Decoder:  # noqa: PLR0911
    """The decoder of a content.

    `access` is the registry to ask instead of the one that the content names.

    Raises OperationError POLYNYA-STR-021 for a pattern or a schema that cannot be used.
    """
    match content:
        case JsonContent():
            return JsonDecoder()
        case CsvContent() | TsvContent():
            return SeparatedDecoder(content)
        case AvroContent(schema_=None):
            return ContainerDecoder()
        case AvroContent():
            return DatumDecoder(str(content.schema_))
        case RegistryAvroContent():
            return RegistryDecoder(registry_at(access or content.schema_registry))
        case ParquetContent():
            return parquet_decoder()
        case OrcContent():
            return orc_decoder()
        case XmlContent():
            return XmlDecoder(content)
        case RegexContent():
            return RegexDecoder(content)
        case SplitLinesContent():
            return SplitDecoder(content)
        case AutoContent():
            return AutoDecoder()


def registry_at(access: SchemaRegistry) -> HttpSchemaRegistry:
    """The registry of an address, with what was learnt from it."""
    secrets = vault()
    user = None if access.user is None else secrets.open(access.user).text
    password = None
    if access.password is not None:
        password = secrets.open(access.password.get_secret_value()).text
    return _registry(access.url, user, password)


@lru_cache(maxsize=64)
def _registry(url: str, user: str | None, password: str | None) -> HttpSchemaRegistry:
    return HttpSchemaRegistry(url, user, password)
