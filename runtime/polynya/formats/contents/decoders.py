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
    LandedContent,
    LandedRegistryAvroContent,
    OrcContent,
    ParquetContent,
    RegexContent,
    RegistryAvroContent,
    SplitLinesContent,
    TsvContent,
    XmlContent,
)
from polynya.model.contract.identifiers import shown
from polynya.model.errors import OperationError
from polynya.store.schema_registry import HttpSchemaRegistry
from polynya.store.vault import vault


def decoder_of(  # noqa: PLR0911
    content: Content | LandedContent, access: SchemaRegistry | None = None
) -> Decoder:
    """The decoder of a content.

    `access` is the registry of the project's settings. No other one is asked: a content that
    landed may be anybody's.

    Raises:
        OperationError: POLYNYA-STR-021, a pattern or a schema cannot be used; or the settings name
            no registry (POLYNYA-STR-091).
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
        case RegistryAvroContent() | LandedRegistryAvroContent():
            return RegistryDecoder(registry_at(access, content))
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


def registry_at(
    access: SchemaRegistry | None, content: RegistryAvroContent | LandedRegistryAvroContent
) -> HttpSchemaRegistry:
    """The registry that the settings name, with what was learnt from it.

    Raises:
        OperationError: POLYNYA-STR-091, they name none.
        DependencyError: POLYNYA-STR-090, its login cannot be read.
    """
    if access is None:
        raise _no_registry(content.schema_registry.url)
    secrets = vault()
    user = None if access.user is None else secrets.open(access.user).text
    password = None
    if access.password is not None:
        password = secrets.open(access.password.get_secret_value()).text
    return _registry(access.url, user, password)


def _no_registry(named: str) -> OperationError:
    return OperationError(
        "POLYNYA-STR-091",
        "messages need a schema registry, and the task that copies them names none",
        where=f"the landed batch names {shown(named)}, which is not asked",
        state="nothing of the landed batch was copied; it is read again at the next try",
        fix="write `schema_registry: {url: ...}` under `landing` of the task",
    )


@lru_cache(maxsize=64)
def _registry(url: str, user: str | None, password: str | None) -> HttpSchemaRegistry:
    return HttpSchemaRegistry(url, user, password)
