"""Pages of faults of the machine: disk, memory, terminal, and a warehouse on it."""

from __future__ import annotations

from typing import Final

from polynya.model.errors.pages.page import ErrorPage

PAGES: Final = (
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
