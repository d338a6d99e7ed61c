"""Where objects are kept: a local folder, or a place in an S3 bucket."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from polynya.model.contract.identifiers import shown
from polynya.model.contract.paths import relative_path_problem
from polynya.model.errors import ConfigError

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
        raise ConfigError(
            "POLYNYA-CFG-018",
            f"{shown(text)} is neither a local folder nor on S3",
            where=where,
            fix="name a folder, relative to the project or absolute, or `s3://BUCKET/PREFIX`",
        )
    if "\0" in text:
        raise ConfigError(
            "POLYNYA-CFG-011",
            "the path holds a NUL character",
            where=where,
            fix="type the path again by hand",
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
        raise ConfigError(
            "POLYNYA-CFG-009",
            f"{shown(bucket)} is not the name of an S3 bucket",
            where=where,
            fix="3 to 63 of a-z 0-9 - . as in `s3://acme-landing/shop`",
        )
    prefix = prefix.removesuffix("/")
    problem = relative_path_problem(prefix) if prefix else None
    if problem is None and any(part in {"", "."} for part in prefix.split("/")) and prefix:
        problem = f"path {shown(prefix)} has an empty part or `.`"
    if problem is not None:
        raise ConfigError(
            "POLYNYA-CFG-011", problem, where=where, fix="write it as `s3://BUCKET/PREFIX`"
        )
    return S3Location(bucket, prefix)
