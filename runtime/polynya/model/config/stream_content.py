"""The setting `content:` of a stream: how its messages are decoded, with settings for each type.

Patterns may use only what RE2 and Python have in common, so that `validate` refuses a bad pattern
before the first message does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError

from polynya.model.config.fields import Column, Frozen
from polynya.model.config.settings import (
    DEFAULT_DELIMITER,
    DEFAULT_QUOTE,
    Character,
    Delimiter,
    Marker,
    Quote,
    SchemaRegistry,
)

#: Java's and RE2's spelling of a named group.
_NAMED: Final = re.compile(r"\(\?<(?=[A-Za-z_])")
#: What RE2 does not have.
_FOREIGN: Final = (
    (re.compile(r"\(\?<?[=!]"), "look-around"),
    (re.compile(r"\(\?P="), "a back reference"),
    (re.compile(r"\(\?>"), "an atomic group"),
    (re.compile(r"\(\?\("), "a condition"),
    (re.compile(r"\(\?#"), "a comment"),
    (re.compile(r"[*+?}]\+"), "a possessive quantifier"),
    (re.compile(r"\\[1-9]"), "a back reference"),
    (re.compile(r"\\Z"), r"`\Z`; write `\z`"),
)
_ESCAPED: Final = re.compile(r"\\\\|\[(?:\\.|[^\]\\])+\]", re.DOTALL)
_MOST_GROUPS: Final = 200
_MOST_REPEATS: Final = 1000


def group_pattern(text: str) -> str:
    """A pattern with named groups as RE2 writes it.

    Raises:
        ValueError: it is not a pattern, has no named group or an unnamed one, or needs more than
            RE2 has.
    """
    pattern = _NAMED.sub("(?P<", text)
    compiled = _compiled(pattern)
    names = compiled.groupindex
    if not names:
        raise ValueError("the pattern has no named group, such as `(?<name>.*)`")
    if compiled.groups != len(names):
        raise ValueError("a group of the pattern has no name: write `(?:...)` for one that is none")
    if compiled.groups > _MOST_GROUPS:
        raise ValueError(f"the pattern has more than {_MOST_GROUPS} groups")
    if len({name.lower() for name in names}) != len(names):
        raise ValueError("two groups of the pattern have names that differ only in case")
    return pattern


def group_names(text: str) -> list[str]:
    """The named groups of a pattern, in order. Raises ValueError as `group_pattern`."""
    return list(re.compile(group_pattern(text)).groupindex)


def split_pattern(text: str) -> str:
    """A pattern of what stands between two pieces.

    Raises:
        ValueError: it is not a pattern, stands for nothing at all, or needs more than RE2 has.
    """
    compiled = _compiled(text)
    if compiled.fullmatch(""):
        raise ValueError("the pattern matches where nothing is, so it cuts between all characters")
    return text


def _compiled(pattern: str) -> re.Pattern[str]:
    bare = _ESCAPED.sub("x", pattern)
    for foreign, name in _FOREIGN:
        if foreign.search(bare):
            raise ValueError(f"the pattern has {name}, which RE2 does not know")
    for count in re.findall(r"\{(\d+)|,(\d+)\}", bare):
        if int(max(count, key=len)) > _MOST_REPEATS:
            raise ValueError(f"a part of the pattern is repeated more than {_MOST_REPEATS} times")
    try:
        return re.compile(pattern.replace(r"\z", r"\Z"))
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"this is not a regular expression: {error}") from None


_MAX_SCHEMA: Final = 1_000_000


def refuse(message: str, fix: str | None = None) -> PydanticCustomError:
    """The error of a value that is not right, as pydantic takes it."""
    return PydanticCustomError("polynya_value", "{message}", {"message": message, "fix": fix})


def _avro_schema(value: object) -> object:
    """The text of an Avro schema, which may be written as YAML."""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if not isinstance(value, str):
        raise refuse("an Avro schema is expected here", "write it as JSON text or as YAML")
    try:
        json.loads(value)
    except ValueError as error:
        raise refuse(f"the Avro schema is not JSON: {error}") from None
    return value


def _pattern(text: str) -> str:
    try:
        group_pattern(text)
    except ValueError as error:
        raise refuse(str(error)) from None
    return text


def _split(text: str) -> str:
    try:
        split_pattern(text)
    except ValueError as error:
        raise refuse(str(error)) from None
    return text


AvroSchema: TypeAlias = Annotated[
    str,
    BeforeValidator(_avro_schema),
    Field(max_length=_MAX_SCHEMA),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "object"}]}),
]
GroupPattern: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=4000), AfterValidator(_pattern)
]
SplitPattern: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=4000), AfterValidator(_split)
]
Part: TypeAlias = Annotated[str, Field(min_length=1, max_length=300)]


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
#: The content of a stream without a `content` setting.
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
    """The registry that a landed batch names, for information: it is never called."""

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
