"""Errors of the import from Qlik, and the codes of its losses."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import ConfigError

SOURCE_REFUSED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-QLK-001",
    title="a source of an import from Qlik is refused",
    state="nothing was written",
    fix="name the folder or the ZIP archive of an export, or a JSON file of Replicate",
    page="`polynya import --from qlik` reads the folder of a Qlik Talend data integration project "
    "with its `qtcp_project.yaml`, a ZIP archive of such a folder, or the JSON file of an export "
    "of Qlik Replicate. It refuses archives with links, with names that leave the folder, with "
    "passwords, with names that occur twice, and all that is too large.",
)
SOURCE_UNREADABLE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-QLK-002",
    title="a file of a Qlik project cannot be read",
    state="the rest of the project is imported",
    fix="export the project again",
    page="A file is not YAML, not JSON, not UTF-8, or beyond the limits: 1 MB, 20,000 values and "
    "32 levels for YAML, 64 MB and 64 levels for JSON. Also a key that occurs twice: the first "
    "value counts. The report of the import names the place.",
)
DESTINATION_REFUSED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-QLK-003",
    title="the folder of an import cannot be written",
    state="nothing was written",
    fix="name a folder that does not exist",
    page="The import writes to a folder that does not exist or is empty, and the report beside it, "
    "`FOLDER-import.md`, which must not exist either.",
)
UNKNOWN_SETTING: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-QLK-010",
    title="a key that the import does not know",
    page="The key is in none of the published formats that the import was built from, or has "
    "another type there. The report names its place; nothing was made of it.",
)
NO_EQUAL: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-QLK-011",
    title="a setting without an equal",
    page="Polynya has no setting for this one. The table of the page says why, and what to do by "
    "hand.",
)
TASK_NOT_TRANSLATED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-QLK-012",
    title="a task that is not translated",
    page="The import has no equal for tasks of this type, for their source, or for this form of "
    "them. The report says which. All settings of the task are named too.",
)
NAME_CHANGED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-QLK-013",
    title="a name that was changed",
    page="Names of tasks, schemas, tables and connections have the characters A-Z, a-z, 0-9 and _. "
    "Other characters became _; a second object of the same name got a number.",
)
EXPRESSION_NOT_TRANSLATED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-QLK-014",
    title="an expression that is not translated",
    page="The import translates operators and functions that give the same values in Spark. Others "
    "are losses: write the expression by hand, and test it with `polynya preview`.",
)
UNBOUND: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-QLK-015",
    title="a binding without a value",
    page="The export names a variable and does not hold its value. Export the project with "
    "binding values, which puts `bindings.json` into it, or write the setting by hand.",
)
SECRET_LEFT_OUT: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-QLK-016",
    title="a login that is not copied",
    page="Passwords, keys and tokens of an export are not copied, even where they are encrypted. "
    "The connection has a reference to a variable of the environment instead.",
)
NOT_VALID: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-QLK-017",
    title="a translated task that `polynya validate` refuses",
    page="The import translated the task, and the check of the project refused the result. The "
    "task is left out, so that the rest is valid; the report has the message of the check.",
)
