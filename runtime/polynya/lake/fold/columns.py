"""Registry of the private columns of the lake's SQL: name, type and meaning of each, once.

A private column is one that a statement makes for another statement; no table holds it. Its name
begins with two underscores. `tests/lake/fold/test_columns.py` checks the SQL of the whole lake
against this list: it rejects a name that is missing here, or that a module makes without being
listed.
"""

from __future__ import annotations

from dataclasses import dataclass

from polynya.model import headers as h

#: Field of `__stored` → header column that it comes from.
STORED_FIELDS: dict[str, str] = {
    "part": h.PARTITION,
    "op": h.OPERATION,
    "from": h.FROM_TIMESTAMP,
    "to": h.TO_TIMESTAMP,
    "ins": h.INSERTED_TIMESTAMP,
    "mod": h.MODIFIED_TIMESTAMP,
    "wcf": h.WAS_CURRENT_FROM,
    "wct": h.WAS_CURRENT_TO,
}
#: Besides these `__stored` has the file and the position of the version, and whether an event of
#: its record is late: not newer than it.
STORED_NAMES = (*STORED_FIELDS, "file", "pos", "late")
STORED_TYPE = (
    "struct<part:string,op:string,`from`:timestamp,`to`:timestamp,ins:timestamp,mod:timestamp,"
    "wcf:timestamp,wct:timestamp,file:string,pos:bigint,late:boolean>"
)
#: Column of an event in the fold → header column that stores it.
EVENT_HEADERS: dict[str, str] = {
    "__ci": h.CHANGE_IDENTIFIER,
    "__tail": h.SEQUENCE_TAIL,
    "__position": h.SOURCE_POSITION,
    "__op": h.OPERATION,
    "__ts": h.TIMESTAMP,
    "__unsent": h.UNSENT,
    "__former": h.OLD_KEY,
}


@dataclass(frozen=True, slots=True)
class Column:
    """One private column.

    `type` is the Spark type; `record` stands for a struct of data columns, `key` for one of the key
    columns. `made_in` are the modules of the lake whose SQL makes the column, each with this
    meaning; none for what landing gives.
    """

    name: str
    type: str
    meaning: str
    made_in: tuple[str, ...] = ()


#: What landing gives next to the data columns (`formats.batch.SERVICE_FIELDS`).
LANDED = (
    Column("__file", "string", "landed file of the record"),
    Column("__offset", "bigint", "index of the record in its file, from 0"),
    Column("__raw", "binary", "the record as it was landed, where it was rejected"),
    Column("__old", "record", "key columns that the record had before a change of key"),
    Column("__rule", "string", "rule by which the reader rejected the record", ("copy.rows",)),
    Column("__error", "string", "what the reader says of a rejected record", ("copy.rows",)),
)
#: What `copy/` decides of a landed record.
DERIVED = (
    Column("__row", "bigint", "place of the record in its batch, from 0", ("copy.rows",)),
    Column("__decided", "string", "operation, after the dataset's own SQL", ("copy.rows",)),
    Column("__verdict", "string", "rule that rejects the record, the reader's or ours",
           ("copy.rows",)),
    Column("__why", "string", "what is said of a rejected record", ("copy.rows",)),
    Column("__loaded", "boolean", "Current has the record already", ("copy.copy",)),
    Column("__live", "boolean", "the row is no delete", ("copy.reload",)),
    Column("__was", "struct", "what was loaded last of the record: tail and values"),
    Column("__retained", "boolean", "the copy of a loaded row that stays as an event",
           ("apply.retention",)),
)  # fmt: skip
#: Input of the fold: one row an event, stored versions included.
EVENT = (
    Column("__ci", "string", "change identifier", ("fold.fold",)),
    Column("__tail", "string", "rest of the sequence, behind the identifier",
           ("fold.fold", "copy.copy")),
    Column("__position", "string", "position in the source; `truncate` where one made the event",
           ("fold.fold", "fold.live_views")),
    Column("__op", "string", "operation of the event", ("fold.fold", "copy.reload")),
    Column("__ts", "timestamp", "time of the event", ("fold.fold", "copy.reload")),
    Column("__unsent", "array<string>", "columns that the event left out (`sql.is_unsent`)",
           ("fold.fold", "fold.live_views")),
    Column("__former", "string", "text of the key before a change of key (`sql.key_text`)",
           ("fold.fold", "fold.key_changes")),
    Column("__stored", STORED_TYPE, "headers and place of the stored version with this sequence",
           ("fold.fold", "fold.key_changes", "apply.folding")),
)  # fmt: skip
#: What the fold adds for itself.
STEPS = (
    Column("__trunc", "boolean", "a truncate made the event", ("fold.fold", "fold.live_views")),
    Column("__next_truncate", "struct<seq:string,ci:string,tail:string,ts:timestamp>",
           "first truncate after the event", ("fold.fold",)),
    Column("__copy", "boolean", "the copy of an event that becomes the truncate after it",
           ("fold.fold",)),
    Column("__tie", "boolean", "another event of the record has the same sequence",
           ("fold.fold",)),
    Column("__rank", "int", "place among the rows of which one stays; that is number 1",
           ("fold.fold", "fold.live_views", "copy.reload",
            "copy.copy", "apply.folding")),
    Column("__place", STORED_TYPE, "`__stored` of whichever event of this sequence has one",
           ("fold.fold",)),
    Column("__nth", "int", "number of the version in its record, from 1", ("fold.fold",)),
    Column("__life", "bigint", "number of deletes of the record before the version",
           ("fold.fold",)),
    Column("__told", "boolean", "events up to the version sent all of its columns",
           ("fold.fold",)),
    Column("__before", "record", "newest data that is no delete, this version included",
           ("fold.fold",)),
)  # fmt: skip
#: Output of the fold: one row a version.
FOLDED = (
    Column("__seq", "string", "sequence: place in the order of events",
           ("fold.fold", "fold.live_views", "fold.key_changes", "copy.rows",
            "copy.reload", "apply.folding", "read.verify")),
    Column("__del", "boolean", "the version is a delete", ("fold.fold", "fold.live_views")),
    Column("__del_before", "boolean", "the version before it is a delete; NULL for the first",
           ("fold.fold",)),
    Column("__own", "boolean", "the event is the stored version",
           ("fold.fold", "apply.folding")),
    Column("__gone", "boolean", "stored delete of a truncate that no longer meets an open version; "
           "look that shows nothing new", ("fold.fold",)),
    Column("__from", "timestamp", "start of validity", ("fold.fold",)),
    Column("__to", "timestamp", "end of validity, NULL while open", ("fold.fold",)),
    Column("__last", "boolean", "newest version of its record", ("fold.fold", "fold.live_views")),
    Column("__new_op", "string", "operation of the version", ("fold.fold",)),
    Column("__orig", "record", "data columns before values were carried", ("fold.fold",)),
    Column("__ins", "timestamp", "when the record was first inserted, as far as it is known",
           ("fold.fold", "apply.folding")),
)  # fmt: skip
#: What becomes of a version (`fold.placed`, `apply/folding.py`).
PLACED = (
    Column("__part", "string", "partition that it belongs to", ("fold.fold",)),
    Column("__raised", "boolean", "its time went backwards and was raised", ("fold.fold",)),
    Column("__base", "bigint", "number of versions after it that stay for their own sake",
           ("fold.fold",)),
    Column("__kept", "boolean", "it belongs in the table", ("fold.fold", "apply.folding")),
    Column("__same", "boolean", "it is stored as it is", ("fold.fold", "apply.folding")),
    Column("__write", "boolean", "it must be written", ("fold.fold", "apply.folding")),
    Column("__drop", "boolean", "what is stored of it must go",
           ("fold.fold", "apply.folding")),
    Column("__there", "boolean", "a version with its sequence is stored", ("apply.folding",)),
    Column("__wrong", "array<string>", "columns that are stored otherwise", ("apply.folding",)),
    Column("__placed", "struct", "what becomes of the version, what counts it, where it is stored",
           ("apply.collected",)),
    Column("__now", "timestamp", "time of the engine", ("apply.collected",)),
    Column("__applied", "timestamp", "when its event was applied", ("apply.folding",)),
    Column("__first", "timestamp", "since when its events know the record", ("apply.folding",)),
)  # fmt: skip
#: Records rather than versions: which are touched, which are linked, which run together in a view.
RECORDS = (
    Column("__oldest", "string", "oldest sequence that touches the record",
           ("fold.stored", "fold.key_changes")),
    Column("__key", "string", "text of the key (`sql.key_text`)", ("fold.key_changes",)),
    Column("__values", "record", "data columns of the former key at a change of key",
           ("fold.key_changes",)),
    Column("__new_run", "int", "1 where a version differs from the one before it",
           ("fold.live_views",)),
    Column("__run", "bigint", "number of the run of equal versions", ("fold.live_views",)),
    Column("__next", "timestamp", "start of the next version", ("read.verify",)),
    Column("__latest", "string", "last change identifier of the record in a load",
           ("copy.reload",)),
    Column("__places", "array<string>", "places of a stream that rows of the record came from",
           ("copy.reload",)),
    Column("__pair", "struct", "two of these places", ("copy.reload",)),
    Column("__k", "key", "`__k0`, `__k1` …: the key columns, one each", ("apply.removal",)),
)  # fmt: skip

COLUMNS: tuple[Column, ...] = (
    *LANDED, *DERIVED, *EVENT, *STEPS, *FOLDED, *PLACED, *RECORDS,
)  # fmt: skip
