"""Errors of connections of a target, its bindings, and archives of projects."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import ConfigError

VARIABLE_NOT_BOUND: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-050",
    title="a variable is not bound",
    fix="add `{variable}` to `variables` in the bindings of the target, or write "
    "`${{var:{variable}:-default}}`",
    page="A `${var:NAME}` names a variable of the target. Its value is in `variables` of "
    "`bindings/TARGET.yml`, in the project or at the place that `--bindings` or `POLYNYA_BINDINGS` "
    "names. Only the references that the chosen target needs have to be bound.",
)
BINDINGS_UNUSABLE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-051",
    title="the bindings cannot be used",
    state="nothing was read from them",
    page="`--bindings` and `POLYNYA_BINDINGS` name a folder with a file `TARGET.yml` for each "
    "target, or one such file. The file is named like the target that is chosen: so the bindings "
    "of one target never work in another. A folder of the project `bindings/` has files of its "
    "targets only, one each.",
)
CONNECTION_CONFLICT: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-052",
    title="a connection does not fit where it is named",
    fix="remove the setting, or the connection",
    page="A task that names a connection takes address and login from it, so it cannot set them "
    "itself. Beside a connection of type `kafka` it may add properties that the connection does "
    "not set in this target. The type of the connection must be that of the place: `kafka` in "
    "`source.kafka`, `kinesis` in `source.kinesis`, `s3` in `source.files`, `schema_registry` in "
    "`schema_registry`, and a database in a task of `kind: landing`. Bindings outside the project "
    "that bind a login bind the address too: otherwise an edit of the project could send the login "
    "to another server.",
)
ARCHIVE_REFUSED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-053",
    title="an archive of a project is refused",
    state="nothing was written",
    page="`polynya import` unpacks what `polynya export` writes: a `.tar.gz` with the files of one "
    "project. It refuses links, folders, other files, names that leave the folder, names that "
    "occur twice, and archives that are too large. It writes to a folder that does not exist or is "
    "empty.",
)
EXPORT_REFUSED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-054",
    title="a project cannot be exported",
    state="no archive was written",
    page="The archive cannot be written, or there is a file of its name: `polynya export` "
    "overwrites nothing. A secret in a file of the project is POLYNYA-CFG-035, with the line: "
    "replace it by a reference, and change it where it is in use if anybody else saw the file.",
)
