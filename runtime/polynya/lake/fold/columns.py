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
class FoldColumn:
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
    FoldColumn("__file", "string", "landed file of the record"),
    FoldColumn("__offset", "bigint", "index of the record in its file, from 0"),
    FoldColumn("__raw", "binary", "the record as it was landed, where it was rejected"),
    FoldColumn("__old", "record", "key columns that the record had before a change of key"),
    FoldColumn("__rule", "string", "rule by which the reader rejected the record", ("copy.rows",)),
    FoldColumn("__error", "string", "what the reader says of a rejected record", ("copy.rows",)),
)
#: What `copy/` decides of a landed record.
DERIVED = (
    FoldColumn("__row", "bigint", "place of the record in its batch, from 0", ("copy.rows",)),
    FoldColumn("__decided", "string", "operation, after the dataset's own SQL", ("copy.rows",)),
    FoldColumn("__verdict", "string", "rule that rejects the record, the reader's or ours",
           ("copy.rows",)),
    FoldColumn("__why", "string", "what is known of a rejected record", ("copy.rows",)),
    FoldColumn("__loaded", "boolean", "Current has the record already", ("copy.copy",)),
    FoldColumn(
        "__live", "boolean", "the row is not a delete", ("copy.reload", "copy.recompute")
    ),
    FoldColumn("__was", "struct", "what was loaded last of the record: tail and values"),
    FoldColumn("__retained", "boolean", "the copy of a loaded row that stays as an event",
           ("apply.retention",)),
)  # fmt: skip
#: Input of the fold: one row an event, stored versions included.
EVENT = (
    FoldColumn("__ci", "string", "change identifier", ("fold.fold",)),
    FoldColumn("__tail", "string", "rest of the sequence, behind the identifier",
           ("fold.fold", "copy.copy")),
    FoldColumn("__position", "string", "position in the source; `truncate` if one made the event",
           ("fold.fold", "fold.newest")),
    FoldColumn("__op", "string", "operation of the event", ("fold.fold", "copy.reload")),
    FoldColumn(
        "__ts",
        "timestamp",
        "time of the event",
        ("fold.fold", "copy.reload", "copy.recompute"),
    ),
    FoldColumn("__unsent", "array<string>", "columns that the event left out (`sql.is_unsent`)",
           ("fold.fold", "fold.newest")),
    FoldColumn("__former", "string", "text of the key before a change of key (`sql.key_text`)",
           ("fold.fold", "fold.key_changes")),
    FoldColumn("__stored", STORED_TYPE, "headers and place of the stored version of this sequence",
           ("fold.fold", "fold.key_changes", "apply.folding")),
)  # fmt: skip
#: What the fold adds for itself.
STEPS = (
    FoldColumn("__trunc", "boolean", "a truncate made the event", ("fold.fold", "fold.newest")),
    FoldColumn("__next_truncate", "struct<seq:string,ci:string,tail:string,ts:timestamp>",
           "first truncate after the event", ("fold.fold",)),
    FoldColumn("__copy", "boolean", "the copy of an event that becomes the truncate after it",
           ("fold.fold",)),
    FoldColumn("__tie", "boolean", "another event of the record has the same sequence",
           ("fold.fold",)),
    FoldColumn("__rank", "int", "place among the rows that compete; number 1 stays",
           ("fold.fold", "fold.live_views", "copy.reload",
            "copy.copy", "apply.folding")),
    FoldColumn("__place", STORED_TYPE, "`__stored` of whichever event of this sequence has one",
           ("fold.fold",)),
    FoldColumn("__nth", "int", "number of the version in its record, from 1", ("fold.fold",)),
    FoldColumn("__life", "bigint", "number of deletes of the record before the version",
           ("fold.fold",)),
    FoldColumn("__told", "boolean", "events up to the version sent all of its columns",
           ("fold.fold",)),
    FoldColumn("__before", "record", "newest data that is not a delete, this version included",
           ("fold.fold",)),
    FoldColumn("__newest", "string", "sequence of the newest record of an element, in a reload",
           ("fold.fold",)),
    FoldColumn("__counts", "string", "position of the record that counts, of those in one place",
           ("fold.fold",)),
    FoldColumn("__lost", "boolean", "the event is of a record that does not count", ("fold.fold",)),
    FoldColumn("__since", "timestamp", "earliest time of the record that counts", ("fold.fold",)),
    FoldColumn("__next_ci", "string", "`__ci` of the next record that replaces elements",
           ("fold.fold",)),
    FoldColumn("__next_tail", "string", "its `__tail`", ("fold.fold",)),
    FoldColumn("__next_ts", "timestamp", "its `__since`", ("fold.fold",)),
    FoldColumn("__next_seq", "string", "its `__seq`", ("fold.fold",)),
    FoldColumn("__own_seq", "string", "`__seq` of the next event of the element itself",
           ("fold.fold",)),
)  # fmt: skip
#: Output of the fold: one row a version.
FOLDED = (
    FoldColumn("__seq", "string", "sequence: place in the order of events",
           ("fold.fold", "fold.live_views", "fold.newest", "fold.key_changes", "copy.rows",
            "copy.reload", "apply.folding", "read.verify")),
    FoldColumn("__del", "boolean", "the version is a delete", ("fold.fold", "fold.newest")),
    FoldColumn("__del_before", "boolean", "the version before it is a delete; NULL for the first",
           ("fold.fold",)),
    FoldColumn("__own", "boolean", "the event is the stored version",
           ("fold.fold", "apply.folding")),
    FoldColumn("__gone", "boolean", "stored delete of a truncate without an open version to end; "
           "look that shows nothing new", ("fold.fold",)),
    FoldColumn("__from", "timestamp", "start of validity", ("fold.fold",)),
    FoldColumn("__to", "timestamp", "end of validity, NULL while open", ("fold.fold",)),
    FoldColumn("__last", "boolean", "newest version of its record",
           ("fold.fold", "fold.newest")),
    FoldColumn("__new_op", "string", "operation of the version", ("fold.fold",)),
    FoldColumn("__orig", "record", "data columns before values were carried", ("fold.fold",)),
    FoldColumn("__ins", "timestamp", "when the record was first inserted, as far as it is known",
           ("fold.fold", "apply.folding")),
)  # fmt: skip
#: What becomes of a version (`fold.placed`, `apply/folding.py`).
PLACED = (
    FoldColumn("__part", "string", "partition that it belongs to", ("fold.fold",)),
    FoldColumn("__raised", "boolean", "its time went backwards and was raised", ("fold.fold",)),
    FoldColumn("__base", "bigint", "number of versions after it that stay for their own sake",
           ("fold.fold",)),
    FoldColumn("__kept", "boolean", "it belongs in the table", ("fold.fold", "apply.folding")),
    FoldColumn("__same", "boolean", "it is stored as it is", ("fold.fold", "apply.folding")),
    FoldColumn("__write", "boolean", "it must be written", ("fold.fold", "apply.folding")),
    FoldColumn("__drop", "boolean", "what is stored of it must go",
           ("fold.fold", "apply.folding")),
    FoldColumn("__there", "boolean", "a version with its sequence is stored", ("apply.folding",)),
    FoldColumn("__wrong", "array<string>", "columns that are stored otherwise", ("apply.folding",)),
    FoldColumn("__placed", "struct", "what becomes of the version, its counts, where it is stored",
           ("apply.collected",)),
    FoldColumn("__now", "timestamp", "time of the engine", ("apply.collected",)),
    FoldColumn("__applied", "timestamp", "when its event was applied", ("apply.folding",)),
    FoldColumn("__first", "timestamp", "since when its events know the record", ("apply.folding",)),
)  # fmt: skip
#: Records rather than versions: which are touched, which are linked, which run together in a view.
RECORDS = (
    FoldColumn("__oldest", "string", "oldest sequence that touches the record",
           ("fold.stored", "fold.key_changes")),
    FoldColumn("__key", "string", "text of the key (`sql.key_text`)", ("fold.key_changes",)),
    FoldColumn("__values", "record", "data columns of the former key at a change of key",
           ("fold.key_changes",)),
    FoldColumn("__new_run", "int", "1 where a version differs from the one before it",
           ("fold.live_views",)),
    FoldColumn("__run", "bigint", "number of the run of equal versions", ("fold.live_views",)),
    FoldColumn("__next", "timestamp", "start of the next version", ("read.verify",)),
    FoldColumn("__late", "boolean", "a pending event may be late", ("fold.newest",)),
    FoldColumn("__older", "string", "sequence of the pending event before the newest one",
           ("fold.newest",)),
    FoldColumn("__open", "boolean", "its newest event is late perhaps, or shares its sequence",
           ("fold.newest",)),
    FoldColumn("__shown", "boolean", "Current shows its newest pending event", ("fold.newest",)),
    FoldColumn("__data_file", "string", "data file of that event, where there are several",
           ("fold.newest",)),
    FoldColumn("__at", "bigint", "its position in that file", ("fold.newest",)),
    FoldColumn("__latest", "string", "last change identifier of the record in a load",
           ("copy.reload",)),
    FoldColumn("__places", "array<string>", "places of a stream that rows of the record came from",
           ("copy.reload",)),
    FoldColumn("__pair", "struct", "two of these places", ("copy.reload",)),
    FoldColumn("__k", "key", "`__k0`, `__k1` …: the key columns, one each", ("apply.removal",)),
)  # fmt: skip

COLUMNS: tuple[FoldColumn, ...] = (
    *LANDED, *DERIVED, *EVENT, *STEPS, *FOLDED, *PLACED, *RECORDS,
)  # fmt: skip
