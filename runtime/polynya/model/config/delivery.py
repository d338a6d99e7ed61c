"""How landed files are written: the settings of `landing` that only some formats have."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from polynya.model.config.aws import is_loopback
from polynya.model.config.fields import Column, Frozen, RelativePath
from polynya.model.contract.identifiers import shown

DEFAULT_DELIMITER: Final = ","
DEFAULT_QUOTE: Final = '"'

Encoding: TypeAlias = Literal["utf-8", "utf-16", "iso-8859-1", "windows-1252"]

#: One character that cannot be part of a line end or a quote.
Delimiter: TypeAlias = Annotated[str, StringConstraints(pattern=r'^[^"\r\n\x00]$')]
#: One character that cannot be part of a line end; a quote may also be none.
Character: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[^\r\n\x00]$")]
Quote: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[^\r\n\x00]?$")]
#: `add.fields` of Debezium's transform: `[struct.]field[:new name]`.
AddedField: TypeAlias = Annotated[
    str, StringConstraints(max_length=255, pattern=r"^([A-Za-z]\w*\.)?[A-Za-z]\w*(:[^:,\s]+)?$")
]
#: What a field holds instead of a value.
Marker: TypeAlias = Annotated[str, StringConstraints(max_length=64, pattern=r'^[^"\r\n\x00]*$')]


def _refuse(message: str, fix: str) -> PydanticCustomError:
    return PydanticCustomError("polynya_value", "{message}", {"message": message, "fix": fix})


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        right = parts.scheme in {"http", "https"} and bool(parts.hostname)
        secret = parts.username is not None or parts.password is not None
    except ValueError:
        right = secret = False
    if secret:
        raise _refuse("an address holds no secrets", "set `user` and `password` beside `url`")
    if not right or any(ord(character) <= 32 for character in text):
        raise _refuse(f"{shown(text)} is no address", "write for example `https://registry:8081`")
    return text.rstrip("/")


Url: TypeAlias = Annotated[str, Field(min_length=1, max_length=2000), AfterValidator(_url)]


class SchemaRegistry(Frozen):
    """A schema registry with the interface of Confluent's."""

    url: Url = Field(description="Address of the registry, such as `https://registry:8081`.")
    allow_unencrypted: bool = Field(
        default=False,
        description="Send `user` and `password` to an `http://` address on another machine. "
        "Default: false.",
    )
    user: str | None = Field(
        default=None,
        min_length=1,
        description="User that logs in, as `${env:NAME}`, `${file:PATH}` or "
        "`${secret:NAME#FIELD}`.",
    )
    password: SecretStr | None = Field(
        default=None,
        description="Its password, always as `${env:NAME}`, `${file:PATH}` or `${secret:NAME}`, "
        "never in the file.",
    )

    @model_validator(mode="after")
    def _login_is_encrypted(self) -> Self:
        has_login = self.user is not None or self.password is not None
        plain = self.url.startswith("http://") and not is_loopback(self.url)
        if has_login and plain and not self.allow_unencrypted:
            host = urlsplit(self.url).hostname or ""
            message = f"{shown(host)} is on another machine, and the login would go without TLS"
            fix = "write `https://…`, or `allow_unencrypted: true` beside `url`"
            raise PydanticCustomError(
                "polynya_unsecured", "{message}", {"message": message, "fix": fix}
            )
        return self


class Delivery(Frozen):
    """What the writer of the files was told about them. None means the format's default."""

    header: bool | None = Field(
        default=None,
        description="For `csv`, `dms` and `replicate`: whether CSV files begin with a header "
        "line. Without one, `columns` of a `csv` or `dms` dataset names the columns "
        "in order; `replicate` has them in its `.dfm` files. Default: `true`.",
    )
    delimiter: Delimiter | None = Field(
        default=None,
        description="For `csv`, `dms` and `replicate`: the character between fields. A `.dfm` "
        "file overrides it. Default: `,`.",
    )
    null_value: Marker | None = Field(
        default=None,
        description="For `csv`, `dms` and `replicate`: the text of an unquoted CSV field that "
        "means NULL; a quoted field is always text. Write it in quotes. A `.dfm` file"
        ' overrides it. Default: empty, so that an empty field is NULL and `""` the '
        'empty text; for `csv`, `""` is NULL too unless this is set. For `dms`, the '
        "word NULL (the default of `CsvNullValue`) is NULL as well unless this is "
        "set.",
    )
    quote: Quote | None = Field(
        default=None,
        description="For `csv`: the quote character around fields that contain a delimiter, a "
        "quote or a line break; doubled inside a field. `''` for none. Default: `\"`.",
    )
    escape: Character | None = Field(
        default=None,
        description="For `csv`: the escape character, such as `\\`, which makes the next one "
        "literal. Default: none.",
    )
    comment: Character | None = Field(
        default=None,
        description="For `csv`: skip lines that begin with this character. Default: none.",
    )
    skip_lines: int | None = Field(
        default=None,
        ge=0,
        le=1000,
        description="For `csv`: lines to skip at the start of every file. Default: 0.",
    )
    encoding: Encoding | None = Field(
        default=None,
        description="For `csv`: `utf-8`, `utf-16` (with a byte order mark), `iso-8859-1` or "
        "`windows-1252`. Default: `utf-8`.",
    )
    timestamp_column: Column | None = Field(
        default=None,
        description="For `dms`: the column with the commit time (`TimestampColumnName`). It "
        "orders the changes, followed by file name and row, and becomes "
        "`hdr__timestamp`.",
    )
    cdc_path: RelativePath | None = Field(
        default=None,
        description="For `dms`: folder below `path` with the change files (`CdcPath`). Default: "
        "next to the files of the full load.",
    )
    unsent_value: Marker | None = Field(
        default=None,
        description="For `dms`: the CSV value of a column that the source did not log "
        "(`CsvNoSupValue`); the column keeps its value.",
    )
    flattened: bool | None = Field(
        default=None,
        description="For `debezium`: the events went through the transform "
        "`ExtractNewRecordState`: each record is a row, with fields that the transform added. "
        "Default: `false`.",
    )
    add_fields: tuple[AddedField, ...] | None = Field(
        default=None,
        description="For `debezium`: the transform's `add.fields` and `add.headers`, such as "
        "`op`, `source.lsn`, `table:origin`; they are not columns. Default: every name that "
        "Debezium uses, after the prefix.",
    )
    add_fields_prefix: Marker | None = Field(
        default=None,
        description="For `debezium`: the transform's `add.fields.prefix`. Default: `__`.",
    )

    wrapped: bool | None = Field(
        default=None,
        description="For `debezium`, flattened: whether each record has its row under `value`, "
        "next to `key` or `headers`. `false`: records are rows, even if a table has "
        "columns with these names. Default: decided for each record; an ambiguous one"
        " goes to quarantine as `ambiguous_record`.",
    )
    schema_registry: SchemaRegistry | None = Field(
        default=None,
        description="For `stream` and `debezium`: the registry with the schemas of "
        "`avro_with_schema`, and its login. Default: the registry of the landing task"
        " in this project whose folder is `path`. The address in a landed batch is "
        "never used.",
    )

    @property
    def has_header(self) -> bool:
        """Whether CSV files begin with a line of column names."""
        return self.header is not False

    @property
    def delimiter_character(self) -> str:
        """The character between the fields."""
        return DEFAULT_DELIMITER if self.delimiter is None else self.delimiter

    @property
    def quote_character(self) -> str:
        """The character around fields, "" for none."""
        return DEFAULT_QUOTE if self.quote is None else self.quote
