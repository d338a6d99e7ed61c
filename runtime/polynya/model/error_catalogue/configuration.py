"""Errors of the command line (CLI), of configuration files (CFG) and of their tests (TEST)."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import ConfigError, OperationError

WRONG_USAGE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CLI-001",
    title="wrong usage",
    fix="see `polynya --help` and `polynya COMMAND --help`",
    page="The command, an option or an argument is unknown, or an option has no value. Nothing was "
    "done.",
)
FILES_IN_THE_WAY: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CLI-002",
    title="files are in the way",
    message="files are in the way: {files}",
    state="nothing was written",
    fix="choose another folder, or remove these files",
    page="`polynya init` never overwrites a file.",
)
PUBLISHED_FILES_OUTDATED: Final = ErrorEntry(
    OperationError,
    "POLYNYA-CLI-003",
    title="published files are out of date",
    message="out of date or missing: {files}",
    fix="run the same command without `--check`, and commit the result",
    page="With `--check`, the command found files that differ from what the code generates now.",
)
LOG_FILE_NOT_WRITABLE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CLI-004",
    title="the log file cannot be written",
    message="cannot write the log file: {reason}",
    state="nothing was started, no data was touched",
    fix="name a file in a folder that exists and that you may write to",
    page="`--log-file` names a file that cannot be opened for writing.",
)
NO_SETTINGS_FROM_FILE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CLI-005",
    title="no settings can be proposed from a file",
    message="cannot propose settings from this file: {reason}",
    state="nothing was written",
    fix="give a file of CSV, JSON, Excel, Parquet, ORC or Avro",
    page="`polynya init --from` proposes settings from files of CSV, JSON, Excel (.xlsx), Parquet, "
    "ORC or Avro, also compressed with gzip, Zstandard, bzip2, xz or Snappy, or in a ZIP archive. "
    "The message says what the file looks like, and the fix how to convert it. For other "
    "formats run `polynya init --empty`, and write the task yourself.",
)
NO_SETTINGS_FROM_SOURCE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CLI-006",
    title="no settings can be proposed from a database or a topic",
    message="cannot propose settings from this source: {reason}",
    state="nothing was written",
    fix="correct the URL",
    page="`polynya init --from` looks into the catalog of a database (`postgresql://`, `mysql://`, "
    "`mariadb://`), or at messages of a topic (`kafka://HOST:PORT/TOPIC`). The message says what "
    "is wrong: the URL, the login, a right, or a source without tables or messages. Nothing was "
    "changed there either.",
)
FILE_NOT_PREVIEWABLE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CLI-011",
    title="a file cannot be previewed",
    message="cannot preview this file: {reason}",
    state="nothing was read",
    fix="give a file with the folders that its format needs, and the dataset or task that reads it",
    page="`polynya preview --file` reads one file as if it had just landed. The file does not "
    "exist, no dataset of the project can read it, or its format takes the source table from the "
    "folders above it: `schema/table/` for AWS DMS, `schema.table/` for Qlik Replicate.",
)
SEVERAL_DATASETS_READ_FILE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CLI-012",
    title="several datasets could read a file",
    message="several datasets could read {file}",
    state="nothing was read",
    fix="name one of them: {datasets}",
    page="The file of `polynya preview --file` is outside of the landing zone, or several datasets "
    "take it there. Name the dataset, or the task that finds its tables: "
    "`polynya preview shop.users --file new.json`.",
)
NO_PROJECT: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-001",
    title="no project",
    message="this folder has no polynya.yml",
    fix="name the folder with `--project DIR`, or create a project with `polynya init DIR`",
    page="A project is a folder with exactly one of polynya.yml, polynya.yaml, polynya.json.",
)
CONFIGURATION_FILE_UNREADABLE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-002",
    title="a file cannot be read",
    message="cannot read the file: {reason}",
    fix="check that the file exists and that you may read it",
    page="The file cannot be opened, or it is not UTF-8 text.",
)
INVALID_YAML: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-003",
    title="not valid YAML",
    fix="leave it out, or put it in quotes if it is text",
    page="The text breaks the rules of YAML 1.2 (or JSON), or uses features that configuration "
    "files do not allow: several documents, keys that are not text, tags such as "
    "`!!python/object`. Inside `{ }` and `[ ]` a `${env:NAME}` needs quotes.",
)
CONFIGURATION_FILE_TOO_LARGE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-004",
    title="a file is too large",
    fix="split it into several task files",
    page="A configuration file has at most 1 MB, 20,000 values after anchors and aliases are "
    "expanded, and 32 levels. Anything larger is a mistake or an attack.",
)
DUPLICATE_KEY: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-005",
    title="duplicate key",
    message="duplicate key {key}; it is already on line {line}",
    fix="remove one of them",
    page="The same key is written twice in one mapping. YAML would silently keep the last one.",
)
MISSING_VARIABLE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-006",
    title="an environment variable is missing",
    fix="set it, or write `${{env:NAME:-default}}`",
    page="A `${env:NAME}` names a variable that is not set. Set it, or write a default: "
    "`${env:NAME:-default}`. Write `$${env:NAME}` for the text itself.",
)
UNKNOWN_KEY: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-007",
    title="unknown key",
    message="unknown key {key}",
    page="The key is not a setting at this place; the error names the nearest one and all that "
    "are allowed. Unknown settings are never ignored, because a misspelled one would change "
    "results.",
)
MISSING_KEY: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-008",
    title="missing key",
    message="missing key {key}",
    page="A required setting is missing.",
)
WRONG_VALUE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-009",
    title="wrong value",
    page="The value has the wrong type or is out of range. Durations need a unit (`30d`, `15m`), "
    "sizes may have one (`64MB`).",
)
UNUSABLE_NAME: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-010",
    title="unusable name",
    message="{what} {name} is not usable",
    fix="use 1 to 128 of A-Z a-z 0-9 _, not starting with a digit",
    page="Names of tasks, schemas and datasets reach catalogs, file systems and several SQL "
    "dialects: 1 to 128 of A-Z a-z 0-9 _, not starting with a digit. Column names may be "
    "any text except control characters and the reserved `hdr__` prefix.",
)
PATH_LEAVES_FOLDER: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-011",
    title="a path leaves its folder",
    page="Paths and globs of tasks stay below the target's landing folder: no absolute path, "
    "no `..`, no backslash, no control character.",
)
DUPLICATE_NAME: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-012",
    title="duplicate name",
    fix="rename one of them",
    page="Two tasks of a project, or two datasets of a task, have the same name (case does not "
    "count), or two datasets have the same source.",
)
TABLE_NAME_TAKEN: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-013",
    title="two datasets want the same table",
    message="`{relation}` belongs to {owner} and to {other}",
    fix="give one of the tasks its own `prefix` or another `schema`",
    page="Tables of several tasks in one schema need a `prefix` each. Views count as well: a "
    "dataset called `users__history` clashes with the History view of `users`.",
)
NO_KEYS: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-014",
    title="no keys",
    message="{subject} has no `keys`, so its changes cannot be merged",
    fix="name the `keys`, or set `mode: append_only` to keep every event as a row",
    page="Merging changes needs to know which records they belong to.",
)
NO_SEQUENCE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-015",
    title="no order",
    message="dataset `{dataset}` has no `sequence_by`, so its events have no order",
    fix="name the columns that order the events, or set `mode: append_only`",
    page="The result must not depend on the order in which files arrive, so merging needs "
    "`sequence_by`: columns whose values order the events of a record.",
)
CONTRADICTING_SETTINGS: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-016",
    title="settings contradict each other",
    fix="remove one of the two",
    page="For example: both tracking lists, a key among `except_columns`, history with "
    "`append_only`, landing and warehouse in the same folder, or a warehouse on S3 without "
    "`catalog: glue`.",
)
NO_SUCH_TARGET: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-017",
    title="no such target",
    message="the project has no target {target}",
    page="`--target` or a file names a target that polynya.yml does not have; or no target was "
    "chosen, there are several, and none is called `local`.",
)
NOT_SUPPORTED: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-018",
    title="not supported",
    message="{value} is not supported in this file",
    page="This version does not know the `apiVersion`, the `kind` or the type of address. "
    "Locations are local folders or `s3://BUCKET/PREFIX`.",
)
NOT_FOR_FORMAT: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-019",
    title="not for this format",
    fix="remove the line",
    page="`include`, `exclude` and `source` belong to the formats `debezium`, `dms` and "
    "`replicate`, which discover their tables; `path` and `initial_load` belong to the others. "
    "Settings of `landing` such as `header` or `timestamp_column` belong to `dms`, some of "
    "them to `replicate`.",
)
INVALID_TYPE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-020",
    title="not a type",
    page="Types are written as in Spark: boolean, int, bigint, float, double, decimal(18,2), "
    "string, binary, date, timestamp, timestamp_ntz, array<…>, map<…,…>, "
    "struct<name:type,…>.",
)
UNUSABLE_SOURCE_TABLE_NAME: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-022",
    title="a source table has an unusable name",
    message="source table {source} has a name that no view can have",
    state="its events are not copied; those of other tables are. A dataset for this table will "
    "read the files that are still in the landing zone",
    fix="declare a dataset with a `name` and this table as its `source`, or exclude it",
    page="A view cannot have the name of this captured table.",
)
SECRET_IN_FILE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-035",
    title="a password is written in a file",
    message="{what} is written in the file",
    fix="name where it is stored: `{example}`, `${{file:PATH}}` or `${{secret:NAME#FIELD}}`",
    page="Project files are kept in repositories and in a bucket. Name an environment variable "
    'instead, without a default: `password: "${env:CATALOG_PASSWORD}"`. Polynya '
    "reads it when it starts, and shows it nowhere. Logins of streams, connections and keys of "
    "masks may also be in a file or in Secrets Manager: `${file:PATH}`, "
    "`${secret:NAME#FIELD}`.",
)
UNKNOWN_COLUMN_IN_SETTING: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-030",
    title="a setting names an unknown column",
    state="nothing of this batch was copied; its files stay where they are",
    page="Neither the table nor a record of the batch has the column, so the setting would not do "
    "what it says: a condition over it is never true, a time is never found. "
    "Usually the name is misspelled; the message suggests the most similar column, and "
    "upper and lower case count. Correct the name and run again. The records of a stream may "
    "bring a column at any time, so a stream stops only if the name looks like a misspelled one. "
    "Name a column that comes later, such as one that only deletes "
    "have, under `optional_columns` too; then it is a warning.",
)
UNPROTECTED_LOGIN: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-044",
    title="others on the network could read a password",
    page="A login goes to another machine without TLS (`http://`, `SASL_PLAINTEXT`), or to a "
    "PostgreSQL catalog whose `sslmode` does not verify the server. Nothing was sent. Use "
    "`https://`, `SASL_SSL` and `sslmode=verify-full`. If the network itself is safe, allow it "
    "with the setting that the message names: `allow_unencrypted` or `allow_unverified`. "
    "Addresses of this machine are always accepted.",
)
INVALID_LAYOUT_TERM: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-040",
    title="not a term of a layout",
    page="`partition_by` takes columns and transforms of them: `country`, `day(created_at)`, "
    "`bucket(16, id)`, `truncate(4, code)`, and `year`, `month`, `hour`. `sort_by` takes "
    "columns, each with `desc` if wanted, or `zorder(a, b)` alone. Write a name with a comma, a "
    "bracket or a space in back-quotes.",
)
CONTRADICTING_LAYOUT: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-041",
    title="terms of a layout contradict each other",
    page="A column is named twice, partitioned by time more than once, excluded, or missing; or "
    "`zorder` is not alone. Nothing was written.",
)
UNSUITABLE_LAYOUT_TYPE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-042",
    title="a layout cannot use the type of a column",
    message="`{setting}` of {table} names `{column}`: {reason}",
    state="nothing of this batch was copied; its files stay where they are",
    fix="take `{term}` out of `{setting}`, or declare the column under `columns`",
    page="Partitions by time need a column of type date or timestamp, `hour` a timestamp; "
    "`bucket` and `truncate` take no float, double or boolean; no transform takes a struct, a list "
    "or a map. If only the data shows the type, change the term or declare the column, and run "
    "again.",
)
UNSUITABLE_AGE_TYPE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-043",
    title="the type of a column has no age",
    message="`retention` of {table} names `{column}`: {reason}",
    state="nothing of this batch was copied; its files stay where they are",
    fix="name another column, or declare this one under `columns`",
    page="`retention` compares a column of type date, timestamp or timestamp_ntz with the current "
    "time. If only the data shows the type, change the setting or declare the column, and run "
    "again.",
)
TEST_SUBJECT_UNKNOWN: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TEST-001",
    title="a test names something that does not exist",
    page="A file in `tests/` names a task, a dataset or a relation that the project does not have. "
    "Tests read the same task files as `polynya run`, so a rename needs the same change in the "
    "tests.",
)
TEST_BATCH_CANNOT_LAND: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-TEST-002",
    title="a batch of a test cannot land",
    message="cannot land the batch: {reason}",
    state="the test was not run; the project's own tables are never touched",
    fix="name the `file` of the batch, or fix the values or the folder",
    page="The folder that the batch names is empty, a value does not fit its column of a Parquet "
    "file, or the `path` of the dataset gives no name for the file that the test writes. Name "
    "a `file` that `path` matches, one for each batch.",
)
CONFLICTING_RULES: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-075",
    title="two rules contradict each other",
    message="{dataset}, column {column}: {reason}",
    state="nothing was copied with these rules",
    fix="let only one of the two take the column: narrow `when`, or name it in `except`",
    page="Two rules name, type or mask the same column, or two columns of a dataset would have one "
    "name. Upper and lower case make no difference there. The message has both places. Rules that "
    "build on each other, such as a prefix and then capital letters, are no conflict.",
)
MASK_NOT_POSSIBLE: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-076",
    title="a column cannot be masked like this",
    message="{dataset}, column {column}: {reason}",
    state="nothing was copied with these rules",
    page="`hash` takes text, whole numbers, decimals, booleans, dates, times and binary; "
    "`truncate` takes text; `redact` and `replace` take every type. A key can only be hashed: any "
    "other mask would make one record of several. Columns that order events, or give their time, "
    "are stored as they are, so they cannot be masked. A column that a table already has keeps its "
    "type, which a mask may not change.",
)
MASKED_VALUE_READ: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-077",
    title="a column shows what a rule masks in another one",
    message="{dataset}, column {column} reads `{source}`, which {place} masks",
    state="nothing was copied with these rules",
    fix="mask or drop this column, too, or drop the other one instead of masking it",
    page="A mask hides one column of the table. If another column is made of the same column of "
    "the source, it would store the value that the mask hides.",
)
MASK_AFTER_LANDING: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-078",
    title="a mask would come after the values were landed",
    message="dataset {dataset}: {landing} writes the values before this task can mask them",
    page="Masks of rules apply when records are copied into tables. The project itself writes what "
    "a capture or a streaming landing lands, so the values would already be in files. Use `mask` "
    "of the capture, `direct: true` of the streaming landing, or let the rule leave this dataset "
    "out.",
)
RECORD_WITHOUT_TEXT: Final = ErrorEntry(
    ConfigError,
    "POLYNYA-CFG-079",
    title="a quarantined record has no text to read again",
    message="quarantined records of {dataset} were stored without their text, since columns are "
    "masked",
    state="nothing was changed; they stay in quarantine",
    fix="land the corrected records in a new file, or run `polynya reload`",
    page="Quarantine would show what a mask hides, so for a dataset with masks it keeps only the "
    "file, the place and the rule of a record. The landed file has the record itself.",
)
MASK_KEY_MISSING: Final = ErrorEntry(
    OperationError,
    "POLYNYA-CFG-080",
    title="the key of a hash is missing",
    message="a rule hashes a column, and the {source} gives no key",
    state="nothing was copied",
    fix="set the key and run again",
    page="A rule masks a column by a hash whose key is a reference. Where the task runs, the "
    "variable is not set or the key is empty. Without a key anybody could compute the hashes of "
    "likely values, so nothing is copied until there is one.",
)
