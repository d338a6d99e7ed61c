"""`content:` of a stream: what its messages mean. Each type has settings of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import (
    BeforeValidator,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import CoreSchema

from polynya.model.config.delivery import (
    DEFAULT_DELIMITER,
    DEFAULT_QUOTE,
    Character,
    Delimiter,
    Marker,
    Quote,
    SchemaRegistry,
)
from polynya.model.config.fields import Column, Frozen
from polynya.model.config.streaming.content_fields import (
    AvroSchema,
    GroupPattern,
    Part,
    SplitPattern,
    refuse,
)


class _Content(Frozen):
    compression: Literal["auto", "none"] | None = Field(
        default=None,
        description="`auto`: decompress a message that begins like gzip, Zstandard, bzip2 or "
        "framed Snappy; `none`: keep it as it is. Default: `auto`, but `none` for "
        "`avro` with a `schema`, where a message may begin with any bytes.",
    )

    @property
    def may_be_compressed(self) -> bool:
        """Whether the first bytes of a message tell that it is compressed."""
        return self.compression != "none"


class JsonContent(_Content):
    """Objects of JSON."""

    type: Literal["json"] = Field(
        default="json",
        description="`json`: a message is an object, an array of objects, or a line for each "
        "object.",
    )


class _Separated(_Content):
    header: tuple[Column, ...] | None = Field(
        default=None,
        min_length=1,
        description="Column names in order, for messages without a header line. Default: the "
        "first line of each message names them.",
    )
    null_value: Marker | None = Field(
        default=None,
        description="Text of an unquoted field that means NULL. Default: an empty field is NULL.",
    )
    duplicate_header: bool = Field(
        default=False,
        description="Allow a duplicate name in the header line: the second column becomes "
        "`NAME_2`. Otherwise such a message goes to quarantine. Default: false.",
    )
    infer_types: bool = Field(
        default=False,
        description="Infer numbers and booleans. Otherwise all columns are text, unless `columns`"
        " declares them. Default: false.",
    )

    @property
    def delimiter_character(self) -> str:
        """The character between the fields."""
        return DEFAULT_DELIMITER

    @property
    def quote_character(self) -> str:
        """The character around fields, "" for none."""
        return DEFAULT_QUOTE

    @property
    def escape_character(self) -> str:
        """The character that makes the next one literal, "" for none."""
        return ""

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [name.lower() for name in self.header or ()]
        if len(set(names)) != len(names):
            raise refuse("`header` has a name twice")
        return self


class CsvContent(_Separated):
    """Lines of separated values."""

    type: Literal["csv"] = Field(description="`csv`: a record is a line of separated values.")
    delimiter: Delimiter | None = Field(
        default=None, description="The character between fields. Default: `,`."
    )
    quote: Quote | None = Field(
        default=None,
        description="The quote character around fields that contain a delimiter, a quote or a "
        "line break; doubled inside a field. `''` for none. Default: `\"`.",
    )
    escape: Character | None = Field(
        default=None,
        description="The escape character, such as `\\`, which makes the next one literal. "
        "Default: none.",
    )

    @property
    def delimiter_character(self) -> str:
        """The character between the fields."""
        return DEFAULT_DELIMITER if self.delimiter is None else self.delimiter

    @property
    def quote_character(self) -> str:
        """The character around fields, "" for none."""
        return DEFAULT_QUOTE if self.quote is None else self.quote

    @property
    def escape_character(self) -> str:
        """The character that makes the next one literal, "" for none."""
        return "" if self.escape in {None, self.quote_character} else str(self.escape)

    @model_validator(mode="after")
    def _characters_differ(self) -> Self:
        meanings = [self.delimiter_character, self.quote_character, self.escape_character]
        characters = [one for one in meanings if one]
        if len(set(characters)) != len(characters):
            raise refuse("`delimiter`, `quote` and `escape` have to differ")
        return self


class TsvContent(_Separated):
    """Lines of values with a tab between them."""

    type: Literal["tsv"] = Field(description="`tsv`: a record is a line of values between tabs.")

    @property
    def delimiter_character(self) -> str:
        """The character between the fields."""
        return "\t"


class AvroContent(_Content):
    """Avro containers, or single datums."""

    type: Literal["avro"] = Field(
        description="`avro`: a message is an Avro container with its schema, or with `schema` one "
        "datum without it."
    )
    schema_: AvroSchema | None = Field(
        default=None,
        alias="schema",
        description="Avro schema of messages that are one datum each, as JSON or YAML.",
    )

    @property
    def may_be_compressed(self) -> bool:
        """Whether the first bytes of a message tell that it is compressed."""
        return self.compression != "none" if self.schema_ is None else self.compression == "auto"


class RegistryAvroContent(_Content):
    """Avro datums that name their schema by a number in a registry."""

    type: Literal["avro_with_schema"] = Field(
        description="`avro_with_schema`: a message is the id of its schema in a registry followed"
        " by one datum, as Confluent's serializers write it."
    )
    schema_registry: SchemaRegistry = Field(description="The registry with the schemas.")


class ParquetContent(_Content):
    """Whole Parquet files."""

    type: Literal["parquet"] = Field(description="`parquet`: a message is a whole Parquet file.")


class OrcContent(_Content):
    """Whole ORC files."""

    type: Literal["orc"] = Field(description="`orc`: a message is a whole ORC file.")


class XmlContent(_Content):
    """XML documents."""

    type: Literal["xml"] = Field(description="`xml`: a message is an XML document.")
    record: Part | None = Field(
        default=None,
        description="Name of the elements that are the records of a document. Default: the whole "
        "document is one record.",
    )
    arrays: tuple[Part, ...] = Field(
        default=(),
        description="Names of elements that are always an array. Otherwise an element is an array"
        " in documents that repeat it, and stays one from then on.",
    )
    namespaces: Literal["drop", "keep"] = Field(
        default="drop",
        description="`drop`: use local names of elements and attributes; `keep`: use them with "
        "the document's prefix, as `ns_name`.",
    )
    infer_types: bool = Field(
        default=False,
        description="Infer numbers and booleans. Default: false.",
    )


class RegexContent(_Content):
    """Text that a regular expression takes apart."""

    type: Literal["regex"] = Field(
        description="`regex`: the named groups of a regular expression are the columns."
    )
    pattern: GroupPattern = Field(
        default="(?<line>.*)",
        description="The regular expression, in RE2 syntax: no look-around and no back "
        "references, so that matching takes linear time. A line without a match goes "
        "to quarantine. Default: `(?<line>.*)`.",
    )
    multi_line: bool = Field(
        default=False,
        description="A message is one record, in which `.` also matches a line break. Otherwise "
        "each of its lines is a record. Default: false.",
    )
    infer_types: bool = Field(
        default=False,
        description="Infer numbers and booleans. Default: false.",
    )


class SplitLinesContent(_Content):
    """Text that is cut into pieces."""

    type: Literal["split_lines"] = Field(
        description="`split_lines`: each piece of a message is a record with the column `line`."
    )
    pattern: SplitPattern = Field(
        default="\r?\n",
        description="Regular expression of the separator, in RE2 syntax; empty pieces are "
        "dropped. Default: a line break.",
    )


class AutoContent(_Content):
    """Avro containers, Parquet or JSON."""

    type: Literal["auto"] = Field(
        description="`auto`: Avro container, Parquet or JSON, by the first bytes of each message."
    )


Content: TypeAlias = (
    JsonContent
    | CsvContent
    | TsvContent
    | AvroContent
    | RegistryAvroContent
    | ParquetContent
    | OrcContent
    | XmlContent
    | RegexContent
    | SplitLinesContent
    | AutoContent
)
#: What a stream holds of which nothing is said.
JSON_CONTENT: Final = JsonContent()


def _named(value: Any) -> Any:
    """`content: json` is short for `content: {type: json}`."""
    return {"type": value} if isinstance(value, str) else value


class _ContentSchema:
    """The JSON Schema of a content with its short form."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: Any) -> dict[str, Any]:
        names = sorted(_SIMPLE)
        return {"anyOf": [{"enum": names}, handler(core)]}


#: Types that need no setting.
_SIMPLE: Final = frozenset(
    {"json", "csv", "tsv", "avro", "parquet", "orc", "xml", "regex", "split_lines", "auto"}
)

#: The field of a task that lands a stream.
ContentSetting: TypeAlias = Annotated[
    Annotated[Content, Field(discriminator="type")], BeforeValidator(_named), _ContentSchema
]


class LandedRegistry(Frozen):
    """The registry that a landed batch names, for people: it is never asked."""

    url: Annotated[str, Field(max_length=2000)]


class LandedRegistryAvroContent(_Content):
    """What a landed batch says of Avro datums that name their schema by a number."""

    type: Literal["avro_with_schema"]
    schema_registry: LandedRegistry


#: What a landed batch says of its messages. Anybody who can write to the landing zone can have
#: written it, so it has neither a login nor a reference, and its registry is never asked.
LandedContent: TypeAlias = (
    JsonContent
    | CsvContent
    | TsvContent
    | AvroContent
    | LandedRegistryAvroContent
    | ParquetContent
    | OrcContent
    | XmlContent
    | RegexContent
    | SplitLinesContent
    | AutoContent
)
_LANDED: Final[TypeAdapter[LandedContent]] = TypeAdapter(
    Annotated[LandedContent, Field(discriminator="type")]
)


def written_content(content: Content | LandedContent) -> dict[str, Any]:
    """What the footer of a landed batch says of a content: all settings but secrets."""
    values = content.model_dump(mode="json", by_alias=True, exclude_none=True)
    registry = values.get("schema_registry")
    if registry is not None:
        values["schema_registry"] = {"url": registry["url"]}
    return values


def landed_content(values: Mapping[str, Any]) -> LandedContent:
    """The content that a footer describes. Raises ValueError for anything else."""
    try:
        return _LANDED.validate_python(dict(values))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"content: {place}: {first['msg']}") from None
