"""Names and places: identifiers and quoting, paths, locations, database addresses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

from polynya.model.error_catalogue.configuration import (
    NOT_SUPPORTED,
    PATH_LEAVES_FOLDER,
    UNUSABLE_NAME,
    WRONG_VALUE,
)

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_MAX_COLUMN_LENGTH: Final = 255
_HEADER_PREFIX: Final = "hdr__"

SERVICE_COLUMNS: Final = frozenset(
    {
        "__file",
        "__offset",
        "__raw",
        "__op",
        "__ci",
        "__tail",
        "__position",
        "__ts",
        "__unsent",
        "__old",
    }
)
"""Columns that landing adds to a batch; a source column cannot have such a name."""


def quote(name: str) -> str:
    """Return one identifier in back-quotes, with back-quotes inside doubled."""
    return "`" + name.replace("`", "``") + "`"


def quote_path(*names: str) -> str:
    """Return a dotted path of quoted identifiers: `` `shop`.`users` ``."""
    return ".".join(quote(name) for name in names)


class Dialect(StrEnum):
    """An engine for which views are written."""

    SPARK = "spark"
    TRINO = "trino"
    ATHENA = "athena"
    DUCKDB = "duckdb"
    SNOWFLAKE = "snowflake"
    REDSHIFT = "redshift"
    DATABRICKS = "databricks"

    def quote(self, *names: str) -> str:
        """Return a dotted path of quoted identifiers in the SQL of the engine."""
        if self in {Dialect.SPARK, Dialect.DATABRICKS}:
            return quote_path(*names)
        return ".".join('"' + name.replace('"', '""') + '"' for name in names)

    def fold(self, name: str) -> str:
        """Return a name in the case that the engine gives to names without quotes.

        Spark, Databricks and DuckDB keep the case; it does not matter to them.
        """
        if self is Dialect.SNOWFLAKE:
            return name.upper()
        if self in {Dialect.TRINO, Dialect.ATHENA, Dialect.REDSHIFT}:
            return name.lower()
        return name


def literal(text: str) -> str:
    """Return a text as a string literal of Spark SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def is_name(text: str) -> bool:
    """Tell whether a text may name a schema, a view, a table or a task."""
    return _IDENTIFIER.fullmatch(text) is not None


def check_name(name: str, *, what: str = "name", where: str | None = None) -> str:
    """Return a name that becomes a schema, view, table or task, or raise ConfigError.

    Such names reach file systems, catalogs and several SQL dialects, so only ASCII letters,
    digits and `_` pass, at most 128 of them, and the first is not a digit.
    """
    if not is_name(name):
        raise UNUSABLE_NAME(where=where, what=what, name=shown(name))
    return name


#: Columns that Iceberg's readers give beside those of a table. One of a table that has such a name
#: cannot be read, and hides the place of a row.
METADATA_COLUMNS: Final = frozenset(
    {
        "_file",
        "_pos",
        "_deleted",
        "_spec_id",
        "_partition",
        "_row_id",
        "_last_updated_sequence_number",
    }
)


def folded(name: str) -> str:
    """A name as engines compare it: two names with the same result are one name to them.

    Spark compares character by character, as Java's `equalsIgnoreCase` does, in capitals and then
    in small letters: so the `i` without a dot is `i`, the long `s` is `s`, and the sign micro is
    the letter mu. Python's `lower` and `casefold` know other pairs.
    """
    if name.isascii():
        return name.lower()
    # The small letter of `İ` is `i` to one engine and an `i` with a dot above it to another.
    return "".join(map(_same, name)).replace("i\u0307", "i")


@lru_cache(maxsize=4096)
def _same(character: str) -> str:
    """The small letter of the capital of a character, where each is one character."""
    capital = next(
        (one for one in (character.upper(), character.title()) if len(one) == 1), character
    )
    small = capital.lower()
    return small if len(small) == 1 else small[0]


def column_problem(name: str) -> str | None:
    """Say what is wrong with a column name, or None; any text but control and reserved ones."""
    if not name:
        return "a column name is empty"
    if len(name) > _MAX_COLUMN_LENGTH:
        return f"column name {shown(name)} is longer than {_MAX_COLUMN_LENGTH} characters"
    if _CONTROL.search(name):
        return f"column name {shown(name)} contains a control character"
    if name.lower().startswith(_HEADER_PREFIX) or name.lower() in SERVICE_COLUMNS:
        return f"column name {shown(name)} is reserved for Polynya"
    return None


def shown(text: str, *, limit: int = 60) -> str:
    """Return a text for a message: in back-quotes, control characters escaped, cut at `limit`."""
    cut = text if len(text) <= limit else text[:limit] + "…"
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)
    return f"`{safe}`"


_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f\\]")
_MAX_LENGTH: Final = 1024


def relative_path_problem(path: str) -> str | None:
    """Say why a path or glob could leave its root or surprise a file system, or None if it is fine.

    `/` separates. Refused: absolute paths, drive letters, URIs, `..`, backslashes and control
    characters.
    """
    if not path or len(path) > _MAX_LENGTH:
        return f"a path has 1 to {_MAX_LENGTH} characters"
    if _FORBIDDEN.search(path):
        return f"path {shown(path)} contains a backslash or a control character"
    if path.startswith(("/", "~")) or ":" in path.split("/", maxsplit=1)[0]:
        return f"path {shown(path)} is not relative"
    if ".." in path.split("/"):
        return f"path {shown(path)} leaves its folder with `..`"
    return None


POSTGRESQL: Final = "jdbc:postgresql:"
_PORT: Final = 5432
_NAME_IN_ADDRESS: Final = re.compile(r"[^/?#@\s]+")
#: The `sslmode` of an address. User and password are separate settings.
_TLS: Final = frozenset({"disable", "prefer", "require", "verify-ca", "verify-full"})


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """Where a database is. `tls` is the `sslmode` of the driver."""

    host: str
    database: str
    port: int = _PORT
    tls: str = "prefer"

    @property
    def text(self) -> str:
        """Short form for messages: `host:port/database`."""
        return f"{self.host}:{self.port}/{self.database}"


def postgres_address(uri: str) -> PostgresAddress:
    """Read `jdbc:postgresql://HOST:PORT/DATABASE?sslmode=…`.

    Raises ValueError, whose message shows nothing of the address.
    """
    try:
        parts = urlsplit(uri.removeprefix("jdbc:"))
        host, port = parts.hostname, parts.port or _PORT
    except ValueError:
        raise ValueError("the address of the catalog cannot be read") from None
    database = unquote(parts.path.removeprefix("/"))
    if parts.username is not None or parts.password is not None:
        raise ValueError("the address of the catalog contains a login")
    if parts.scheme != "postgresql" or not host or not _NAME_IN_ADDRESS.fullmatch(database):
        raise ValueError("the address of the catalog names no host and no database")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if {"user", "password"} & options.keys():
        raise ValueError("the address of the catalog contains a login")
    tls = options.pop("sslmode", "prefer")
    if options or tls not in _TLS:
        modes = ", ".join(f"`{mode}`" for mode in sorted(_TLS))
        raise ValueError(f"the only option of an address is `sslmode`: {modes}")
    return PostgresAddress(host, database, port, tls)


_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_S3: Final = "s3://"
#: What S3 accepts for a general purpose bucket, dots included.
_BUCKET: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]|\.(?!\.)){1,61}[a-z0-9]")


@dataclass(frozen=True, slots=True)
class S3Location:
    """A place in a bucket: `prefix` has no slash at either end, "" is the whole bucket."""

    bucket: str
    prefix: str = ""

    def __str__(self) -> str:
        return f"{_S3}{self.bucket}" + (f"/{self.prefix}" if self.prefix else "")

    def key(self, path: str) -> str:
        """The key of an object at a relative path."""
        return f"{self.prefix}/{path}" if self.prefix else path

    def arn(self) -> str:
        """The ARN of the objects, as policies name them."""
        return f"arn:aws:s3:::{self.bucket}/{self.key('*')}"


Location: TypeAlias = Path | S3Location


def parse_location(text: str, directory: Path, where: str) -> Location:
    """The place that a setting names; a local one is relative to `directory`.

    Raises:
        ConfigError: another kind of address (POLYNYA-CFG-018), not a bucket or key that S3 accepts
            (POLYNYA-CFG-009, POLYNYA-CFG-011).
    """
    if text.startswith(_S3):
        return _s3(text.removeprefix(_S3), where)
    if _URI.match(text):
        raise NOT_SUPPORTED(
            f"{shown(text)} is neither a local folder nor on S3",
            where=where,
            fix="name a folder, relative to the project or absolute, or `s3://BUCKET/PREFIX`",
        )
    if "\0" in text:
        raise PATH_LEAVES_FOLDER(
            "the path contains a NUL character", where=where, fix="type the path again by hand"
        )
    return (directory / Path(text).expanduser()).resolve()


def overlap(one: Location, other: Location) -> bool:
    """Whether two places are the same, or on S3 one is inside the other."""
    if not (isinstance(one, S3Location) and isinstance(other, S3Location)):
        return one == other
    first, second = (f"{place.prefix}/" if place.prefix else "" for place in (one, other))
    return one.bucket == other.bucket and (first.startswith(second) or second.startswith(first))


def _s3(rest: str, where: str) -> S3Location:
    bucket, _, prefix = rest.partition("/")
    if not _BUCKET.fullmatch(bucket):
        raise WRONG_VALUE(
            f"{shown(bucket)} is not the name of an S3 bucket",
            where=where,
            fix="use 3 to 63 of a-z 0-9 - . as in `s3://acme-landing/shop`",
        )
    prefix = prefix.removesuffix("/")
    problem = relative_path_problem(prefix) if prefix else None
    if problem is None and any(part in {"", "."} for part in prefix.split("/")) and prefix:
        problem = f"path {shown(prefix)} has an empty part or `.`"
    if problem is not None:
        raise PATH_LEAVES_FOLDER(problem, where=where, fix="write it as `s3://BUCKET/PREFIX`")
    return S3Location(bucket, prefix)
