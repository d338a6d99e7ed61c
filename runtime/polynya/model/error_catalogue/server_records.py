"""Errors of routes that follow single records, and of plans as resources (SRV-080 to 099)."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import ConfigError, OperationError

RECORD_KEY_WRONG: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-SRV-080",
    title="a key that no record of the dataset can have",
    message="{reason}",
    state="nothing was read",
    fix="give `key=COLUMN=VALUE` once for each key column: {keys}",
    page="A request for one record names it by its key: the parameter `key` is given once for each "
    "key column, as `column=value`. Values are text as JSON and ISO 8601 write them, binary is "
    "hexadecimal. A dataset without keys has no records that can be followed.",
)
RECORD_NOT_FOLLOWED: Final = ErrorEntry(
    OperationError,
    "POLYNYA-SRV-081",
    title="a record that the server does not follow",
    message="the rows of {dataset} are not read here: {reason}",
    state="nothing was changed",
    fix="use Spark: `polynya history {dataset} COLUMN=VALUE`",
    page="The server reads the rows of one record without Java, within limits of rows and time. "
    "What needs more, or what only Spark can read, is refused with the reason.",
)
