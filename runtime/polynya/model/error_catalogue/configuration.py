"""Pages of CLI usage (CLI), configuration (CFG) and expressions (EXP)."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorPage

CONFIGURATION_PAGES: Final = (
    ErrorPage(
        "POLYNYA-CLI-001",
        "wrong usage",
        "The verb, an option or an argument is not known or misses its value. Nothing was "
        "done. `polynya --help` lists the verbs, `polynya VERB --help` the options of one.",
    ),
    ErrorPage(
        "POLYNYA-CLI-002",
        "a file is in the way",
        "`polynya init` never overwrites. Choose an empty folder, or remove the files it names.",
    ),
    ErrorPage(
        "POLYNYA-CLI-003",
        "published files are out of date",
        "With `--check`, files that are generated from the code differ from what the code "
        "says now. Run the same command without `--check` and commit the result.",
    ),
    ErrorPage(
        "POLYNYA-CLI-004",
        "the log file cannot be written",
        "`--log-file` names a file that cannot be opened for writing. Nothing was started. Name a "
        "file in a folder that exists and that you may write to.",
    ),
    ErrorPage(
        "POLYNYA-CLI-005",
        "no settings can be proposed from a file",
        "`polynya init --from` reads the first 1,000 records of a file of JSON lines, CSV with a "
        "header line, or Parquet. Nothing was written. Other formats: `polynya init --empty`, "
        "and a task by hand.",
    ),
    ErrorPage(
        "POLYNYA-CLI-011",
        "a file cannot be previewed",
        "`polynya preview --file` reads one file as if it had just landed. There is no such file,"
        " no dataset of the project could read it, or its format takes the source table from the "
        "folders above it: `schema/table/` for AWS DMS, `schema.table/` for Qlik Replicate.",
    ),
    ErrorPage(
        "POLYNYA-CLI-012",
        "several datasets could read a file",
        "The file of `polynya preview --file` lies outside of the landing zone, or several "
        "datasets take it there. Name the dataset, or the task that finds its tables: "
        "`polynya preview shop.users --file new.json`.",
    ),
    ErrorPage(
        "POLYNYA-CFG-001",
        "no project",
        "A project is a folder with exactly one of polynya.yml, polynya.yaml, polynya.json. "
        "Name the folder with `--project DIR`, or create a project with `polynya init DIR`.",
    ),
    ErrorPage(
        "POLYNYA-CFG-002",
        "a file cannot be read",
        "The file cannot be opened, or it is not UTF-8 text. Check permissions and encoding.",
    ),
    ErrorPage(
        "POLYNYA-CFG-003",
        "not valid YAML",
        "The text breaks the rules of YAML 1.2 (or JSON), or uses features that configuration "
        "files do not allow: several documents, keys that are not text, tags such as "
        "`!!python/object`. Inside `{ }` and `[ ]` a `${env:NAME}` needs quotes.",
    ),
    ErrorPage(
        "POLYNYA-CFG-004",
        "a file is too large",
        "A configuration file has at most 1 MB, 20,000 values after anchors and aliases are "
        "expanded, and 32 levels. Anything larger is a mistake or an attack. Split it into "
        "several tasks.",
    ),
    ErrorPage(
        "POLYNYA-CFG-005",
        "duplicate key",
        "The same key is written twice in one mapping. YAML would let the last one win in "
        "silence; remove one of them.",
    ),
    ErrorPage(
        "POLYNYA-CFG-006",
        "an environment variable is missing",
        "A `${env:NAME}` names a variable that is not set. Set it, or write a default: "
        "`${env:NAME:-default}`. Write `$${env:NAME}` for the text itself.",
    ),
    ErrorPage(
        "POLYNYA-CFG-007",
        "unknown key",
        "The key is not a setting at this place; the error names the nearest one and all that "
        "are allowed. Unknown settings are never ignored, because a typing error would change "
        "results.",
    ),
    ErrorPage(
        "POLYNYA-CFG-008",
        "missing key",
        "A setting that is needed is not written.",
    ),
    ErrorPage(
        "POLYNYA-CFG-009",
        "wrong value",
        "The value has the wrong kind or is out of range. Durations need a unit (`30d`, "
        "`15m`), sizes may have one (`64MB`).",
    ),
    ErrorPage(
        "POLYNYA-CFG-010",
        "unusable name",
        "Names of tasks, schemas and datasets reach catalogs, file systems and several SQL "
        "dialects: 1 to 128 of A-Z a-z 0-9 _, not starting with a digit. Column names may be "
        "any text except control characters and the reserved `hdr__` prefix.",
    ),
    ErrorPage(
        "POLYNYA-CFG-011",
        "a path leaves its folder",
        "Paths and globs of tasks stay below the target's landing folder: no absolute path, "
        "no `..`, no backslash, no control character.",
    ),
    ErrorPage(
        "POLYNYA-CFG-012",
        "duplicate name",
        "Two tasks of a project, or two datasets of a task, have the same name (case does not "
        "count), or two datasets have the same source.",
    ),
    ErrorPage(
        "POLYNYA-CFG-013",
        "two datasets want the same table",
        "Tables of several tasks in one schema need a `prefix` each. Views count as well: a "
        "dataset called `users__history` clashes with the History view of `users`.",
    ),
    ErrorPage(
        "POLYNYA-CFG-014",
        "no keys",
        "Merging changes needs to know which records they belong to. Name the `keys`, or set "
        "`mode: append_only` to keep each event as a row of its own.",
    ),
    ErrorPage(
        "POLYNYA-CFG-015",
        "no order",
        "The result must not depend on the order in which files arrive, so merging needs "
        "`sequence_by`: columns whose values order the events of a record.",
    ),
    ErrorPage(
        "POLYNYA-CFG-016",
        "settings contradict each other",
        "For example: both tracking lists, a key among `except_columns`, history with "
        "`append_only`, landing and warehouse in the same folder, or a warehouse on S3 without "
        "`catalog: glue`.",
    ),
    ErrorPage(
        "POLYNYA-CFG-017",
        "no such target",
        "`--target` names a target that polynya.yml does not have, or none was chosen, there "
        "are several, and none is called `local`.",
    ),
    ErrorPage(
        "POLYNYA-CFG-018",
        "not supported",
        "The `apiVersion`, the `kind` or the address is one that this version does not know. "
        "Task files are `kind: storage`; places are local folders or `s3://BUCKET/PREFIX`.",
    ),
    ErrorPage(
        "POLYNYA-CFG-019",
        "not for this format",
        "`include`, `exclude` and `source` belong to the formats `debezium`, `dms` and "
        "`replicate`, which discover their tables; `path` and `initial_load` belong to the others. "
        "Settings of `landing` such as `header` or `timestamp_column` belong to `dms`, some of "
        "them to `replicate`.",
    ),
    ErrorPage(
        "POLYNYA-CFG-020",
        "not a type",
        "Types are written as in Spark: boolean, int, bigint, float, double, decimal(18,2), "
        "string, binary, date, timestamp, timestamp_ntz, array<…>, map<…,…>, "
        "struct<name:type,…>.",
    ),
    ErrorPage(
        "POLYNYA-CFG-022",
        "a source table has an unusable name",
        "A captured table is called what no view can be called. Its events are not copied; "
        "those of other tables are. Declare a dataset with a `name` of your choice and the "
        "table as `source`: it reads all that is still in the landing zone.",
    ),
    ErrorPage(
        "POLYNYA-CFG-035",
        "a password is written in a file",
        "Project files are kept in repositories and in a bucket. Name a variable of the "
        'environment instead, without a default: `password: "${env:CATALOG_PASSWORD}"`. Polynya '
        "reads it when it starts, and shows it nowhere. Logins of streams, connections and keys of "
        "masks may also stand in a file or in Secrets Manager: `${file:PATH}`, "
        "`${secret:NAME#FIELD}`.",
    ),
    ErrorPage(
        "POLYNYA-CFG-030",
        "a setting names a column that nobody has met",
        "Neither the table nor a record of the batch has the column, so the setting would do "
        "something else than it says: a condition over it is never true, a time is never found. "
        "Most often it is a typing error; the message names the column that may be meant, and "
        "upper and lower case count. Nothing of the batch was copied. Correct the name and run "
        "again. In a stream a column may come at any time, so there it stops only where the name "
        "is most likely a typing error. A column that comes later, such as one that only deletes "
        "have, belongs under `optional_columns` too; then it is a warning.",
    ),
    ErrorPage(
        "POLYNYA-CFG-044",
        "a password would go over a network where others can read it",
        "A login goes to another machine without TLS (`http://`, `SASL_PLAINTEXT`), or to a "
        "PostgreSQL catalog whose `sslmode` does not check who answers. Nothing was sent. Use "
        "`https://`, `SASL_SSL` and `sslmode=verify-full`. Where the network itself is safe, the "
        "setting that the message names accepts it: `allow_unencrypted` or `allow_unverified`. "
        "Addresses of this machine are always accepted.",
    ),
    ErrorPage(
        "POLYNYA-CFG-040",
        "not a term of a layout",
        "`partition_by` takes columns and transforms of them: `country`, `day(created_at)`, "
        "`bucket(16, id)`, `truncate(4, code)`, and `year`, `month`, `hour`. `sort_by` takes "
        "columns, each with `desc` if wanted, or `zorder(a, b)` alone. A name with a comma, a "
        "bracket or a space stands in back-quotes.",
    ),
    ErrorPage(
        "POLYNYA-CFG-041",
        "terms of a layout that do not go together",
        "A column is named twice, partitioned by time more than once, excluded, or missing; or "
        "`zorder` is not alone. Nothing was written.",
    ),
    ErrorPage(
        "POLYNYA-CFG-042",
        "a column has a type that the layout has no use for",
        "Times part columns of type date or timestamp, `hour` only timestamps; `bucket` and "
        "`truncate` take no float, double or boolean; nothing takes a struct, a list or a map. "
        "When the type is only known from the data, nothing of the batch was copied: change the "
        "term, or declare the column under `columns`, and run again.",
    ),
    ErrorPage(
        "POLYNYA-CFG-043",
        "a column says no age",
        "`retention` compares a column of type date, timestamp or timestamp_ntz with the time by "
        "the clock. When the type is only known from the data, nothing of the batch was copied: "
        "name another column, or declare this one under `columns`, and run again.",
    ),
    ErrorPage(
        "POLYNYA-EXP-001",
        "not valid SQL",
        "The condition cannot be parsed as Spark SQL.",
    ),
    ErrorPage(
        "POLYNYA-EXP-002",
        "not exactly one expression",
        "A condition is one expression: no `;`, no second statement, not empty.",
    ),
    ErrorPage(
        "POLYNYA-EXP-003",
        "sub-query or table",
        "A condition sees one event and nothing else: no SELECT, no table, no file path.",
    ),
    ErrorPage(
        "POLYNYA-EXP-004",
        "function not allowed",
        "Only functions that compute one value from one row, the same on every run, are "
        "allowed. Not allowed are, for example, `reflect`, `current_timestamp`, `rand`, "
        "aggregates and `explode`. The reference page of functions lists all that are.",
    ),
    ErrorPage(
        "POLYNYA-EXP-005",
        "not allowed in a condition",
        "Windows, lambdas, parameters, `*`, aliases and similar have no place in a condition.",
    ),
    ErrorPage(
        "POLYNYA-EXP-006",
        "too long or too deep",
        "A condition has at most 4,000 characters, 1,000 words and symbols, and 32 levels.",
    ),
    ErrorPage(
        "POLYNYA-EXP-007",
        "comment or hint",
        "Comments and hints are not allowed inside a condition; write YAML comments instead.",
    ),
    ErrorPage(
        "POLYNYA-FUN-001",
        "wrong number of arguments",
        "A function of Polynya is called with fewer or more arguments than it takes. "
        "`polynya functions NAME` shows its signature and examples.",
    ),
    ErrorPage(
        "POLYNYA-FUN-002",
        "not a literal",
        "Patterns, formats, delimiters, names and switches of a function are part of the "
        "configuration: they are written as a text in quotes, a number, true or false, and cannot "
        "come from a column. Their parameters stand in quotes in the signature.",
    ),
    ErrorPage(
        "POLYNYA-FUN-003",
        "function cannot be computed here",
        "The function is known, but an expression cannot compute it, because it would have to see "
        "other rows or data that Polynya does not have, or a time that only landed messages have "
        "for good (`get_processing_time`). `polynya functions NAME` says what to do "
        "instead.",
    ),
    ErrorPage(
        "POLYNYA-TEST-001",
        "a test names something that is not there",
        "A file in `tests/` names a task, a dataset or a relation that the project does not have. "
        "Tests read the same task files as `polynya run`: after a rename the tests follow.",
    ),
    ErrorPage(
        "POLYNYA-TEST-002",
        "a batch of a test cannot land",
        "The folder that the batch names is empty, a value does not fit its column of a Parquet "
        "file, or the `path` of the dataset gives no name for the file that the test writes. Name "
        "a `file` that `path` matches, one for each batch.",
    ),
    ErrorPage(
        "POLYNYA-EXP-008",
        "`[]` in an expression that ends no path",
        "`items[].sku` is the field of each element of an array: before `[]` stand names that are "
        "divided by dots, and `ordinal(items[])` takes such a path and nothing after it. For one "
        "element write its index, `items[0].sku`.",
    ),
    ErrorPage(
        "POLYNYA-MAP-001",
        "two arrays make rows",
        "A mapping makes a row of each element of one array, and of the arrays in its elements "
        "(`orders[]` with `orders[].lines[]`). Rows of two arrays that have nothing to do with "
        "each other would be all pairs of their elements. The message names both places. Keep one "
        "of the two as an array, or read the same files by a second dataset.",
    ),
    ErrorPage(
        "POLYNYA-MAP-002",
        "`[]` without a list of columns",
        "Elements become rows if `columns` is a list, which names the fields of each element. "
        "Write the list; a condition over all elements of an array is `exists(items, …)`.",
    ),
    ErrorPage(
        "POLYNYA-MAP-003",
        "the list of columns contradicts itself",
        "Two columns have one name, the ordinals of the key are not 1, 2, 3 …, or there are both "
        "`keys` and columns with `key`. Upper and lower case make no difference in names.",
    ),
    ErrorPage(
        "POLYNYA-MAP-004",
        "columns cannot be mapped here",
        "Full extracts are compared column by column, and a list needs files whose columns have "
        "names. In a capture (Debezium, DMS, Replicate) key columns can only be renamed, since "
        "old keys and deletes refer to them, and elements of an array are rows in append-only "
        "tables only: they would all have the key of their record.",
    ),
    ErrorPage(
        "POLYNYA-MAP-005",
        "an expression cannot be computed",
        "A function of Spark does not take the type that a column has, or the expression has a "
        "type that no table has, such as an interval. It is not about the value of a record: that"
        " gives NULL. Nothing of the batch was copied. Change the expression; the next run "
        "continues. Functions of Polynya take every type.",
    ),
    ErrorPage(
        "POLYNYA-MAP-006",
        "two columns get one name",
        "`nested: expand` makes the column `a_b` of the field `b` of `a`, and there is a column "
        "of that name already. Nothing of the batch was copied. Name one of the two in the list "
        "of `columns`: mapped fields are not expanded.",
    ),
    ErrorPage(
        "POLYNYA-MAP-007",
        "a key of the source is not in the table",
        "The source names the columns of its key, and a mapping gives the name of one of them to "
        "something else, or leaves it out. Nothing of the batch was copied. Map the column of the "
        "key by its plain name, `{name: user_id, expression: id}`.",
    ),
)
