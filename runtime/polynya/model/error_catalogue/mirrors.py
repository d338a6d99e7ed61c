"""Errors of mirrors (MIR): tables of a task shown in another warehouse."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import ConfigError, DependencyError, OperationError

MIRROR_SOURCE_UNKNOWN: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-060",
    title="a mirror names a task that it cannot show",
    message="no task with tables is called {task}",
    page="`from` of a mirror names a task of kind `storage` or `streaming_transform` of the same "
    "project. Where the file of that task has an error of its own, this error goes with it.",
)
MIRROR_LOGIN_UNCLEAR: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-061",
    title="a connection has no login, or several",
    message="the connection needs one of {logins}",
    fix="keep one of them",
    page="A connection of `type: snowflake` logs in with a key pair, which suits a program "
    "best, a programmatic access token or a password; one of `type: databricks` with an access "
    "token, or "
    "with `client_id` and `client_secret` of a service principal. Each is a reference: "
    "`${env:NAME}`, `${file:PATH}` or `${secret:NAME#FIELD}`. One of `type: redshift` has the AWS "
    "identity of the process, or one of `user` and `secret_arn`.",
)
CONNECTOR_MISSING: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-MIR-001",
    title="the connector of a mirror's target is not installed",
    message="Snowflake's Python connector is not installed",
    state="the tables here are unchanged, and nothing was changed there",
    fix="`pip install 'polynya[snowflake]'`",
    page="Mirrors into Snowflake use its own connector for Python, which only they need. It is the "
    "extra `snowflake` of the package.",
)
TARGET_UNREACHABLE: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-MIR-002",
    title="the target of a mirror does not answer, or refuses the login",
    message="the target of the mirror cannot be reached",
    state="the target shows what it showed before; the mirror tries again with growing pauses",
    fix="check the account, the login and the network policy",
    page="The mirror could not open a session. Its objects stay as they are, and a growing "
    "staleness shows in `polynya mirror status`.",
)
STATEMENT_FAILED: Final = ErrorEntry(
    OperationError,
    "POLYNYA-MIR-003",
    title="the target of a mirror refused a statement",
    message="the target refused: {statement}",
    state="other datasets of the mirror continue; this one is tried again with growing pauses",
    fix="grant what the role lacks: `polynya mirror setup` prints all of it",
    page="The cause is what the target answered. Mostly a grant is missing, or what an "
    "administrator makes once: external volume and catalog integration in Snowflake, the external "
    "schema in Redshift, the foreign catalog in Databricks. Objects that the mirror made before "
    "stay usable.",
)
NAME_TAKEN: Final = ErrorEntry(
    OperationError,
    "POLYNYA-MIR-004",
    title="an object of a mirror's name belongs to somebody else",
    message="{name} exists and was not made by the mirror {task}",
    state="the object is untouched; the dataset is not mirrored, the others are",
    fix="rename or drop that object, or set `views.prefix` of the mirror",
    page="A mirror alters and drops only what carries its mark: a comment that begins with "
    "`polynya mirror` and names the task.",
)
NAMES_FOLD: Final = ErrorEntry(
    OperationError,
    "POLYNYA-MIR-005",
    title="two names of a mirror become one in the target",
    message="{one} and {other} would both be {name} in the target",
    state="neither dataset is mirrored; the others are",
    fix="leave one out with `exclude`, or rename it",
    page="Snowflake stores names without quotes in capitals, Redshift and Databricks in small "
    "letters, so two names or two columns that differ in case only are one name there.",
)
CANNOT_BE_SHOWN: Final = ErrorEntry(
    OperationError,
    "POLYNYA-MIR-006",
    title="a dataset cannot be shown in the target of a mirror",
    message="the target cannot show {dataset}: {reason}",
    state="the dataset is not mirrored; the others are, and its table is unchanged",
    fix="leave it out with `exclude`",
    page="The reason names what the target lacks.",
)
LOGIN_UNREADABLE: Final = ErrorEntry(
    DependencyError,
    "POLYNYA-MIR-007",
    title="a secret of the connection of a mirror cannot be read",
    message="the login of the mirror's connection cannot be read",
    state="the target shows what it showed before; the mirror tries again with growing pauses",
    fix="create the secret, let this process read it, or correct the reference",
    page="A value of the connection is `${file:PATH}` or `${secret:NAME}`. The file or the "
    "entry of AWS Secrets Manager is missing, unreadable for this process, not text, or lacks the "
    "field after `#`. See POLYNYA-STR-090 for where files lie.",
)
