"""`verify`: prove that a table keeps its promises, by rules that hold for every snapshot.

Each rule is a query over one snapshot for the records that break it. Nothing is written. Where
events are kept, the versions are compared with the fold of these events, row by row. Contract:
semantics sections 2 to 4, 8, 10, 11 and 13.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from polynya.lake.apply.folding import base, differences
from polynya.lake.apply.run import ApplyRun
from polynya.lake.fold.shape import Shape
from polynya.lake.fold.sql import STORED_SEQUENCE, is_delete, key_hash, key_text, within
from polynya.lake.fold.stored import CHANGED, MISSING, SURPLUS
from polynya.lake.table.books import pending_rows
from polynya.lake.table.dataset import DatasetTable
from polynya.model import headers as h
from polynya.model.headers import Partition
from polynya.model.names import quote

#: How stored versions may differ from the fold of their events.
FOLD_RULES: dict[str, tuple[str, str]] = {
    "lost_version": (MISSING, "every version that the events make is in the table"),
    "surplus_version": (SURPLUS, "every version in the table was made by an event"),
    "changed_version": (CHANGED, "every version is stored as its events make it"),
}


@dataclass(frozen=True, slots=True)
class TableRule:
    """What must hold. `broken` selects a column `example` for each record that breaks it."""

    name: str
    says: str
    broken: str


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """A rule that does not hold: for how many records or files, and one of them."""

    rule: str
    says: str
    count: int
    example: str


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """Names of the rules that were checked, what was found, and what could not be checked."""

    rules: Sequence[str] = ()
    findings: Sequence[BrokenRule] = ()
    unchecked: Sequence[str] = ()


def verify(target: DatasetTable) -> VerifyResult:
    """Check the current snapshot."""
    snapshot = target.state.snapshot
    if snapshot is None:
        return VerifyResult()
    lost = _files(target, snapshot)
    if lost:
        # Whatever reads rows would fail for the same reason.
        return VerifyResult(["files"], lost, ["all that is in the files"])
    shape = target.shape()
    rules = list(_rules(shape, target.table.at(snapshot)))
    broken = [violation for rule in rules if (violation := _broken(target, rule)) is not None]
    names = ["files", *(rule.name for rule in rules), "accounting"]
    broken += _accounting(target)
    if shape.append_only:
        return VerifyResult(names, broken)
    if target.state.apply.retaining is None:
        unchecked = "the versions against their events: none are kept (`changes_retention`)"
        return VerifyResult(names, broken, [unchecked])
    differing, unchecked_base = _against_events(target, shape)
    return VerifyResult([*names, *FOLD_RULES], [*broken, *differing], unchecked_base)


def _against_events(target: DatasetTable, shape: Shape) -> tuple[list[BrokenRule], list[str]]:
    """What differs from the fold of base and kept events, and how much of the table is base."""
    with ApplyRun.of(target, shape) as run:
        violations: list[BrokenRule] = []
        wrong = run.view(differences(run, target.state.apply.truncates))
        for name, (condition, says) in FOLD_RULES.items():
            row = run.sql(
                f"SELECT count(*) AS n, min_by(named_struct('key', {key_text(shape)}, "
                "'seq', __seq, 'wrong', array_join(__wrong, ', ')), __seq) AS example "
                f"FROM {wrong} WHERE {condition}"
            ).first()
            if row is not None and row["n"]:
                example = f"key {row['example']['key']} at {row['example']['seq']}"
                if row["example"]["wrong"]:
                    example += f" in {row['example']['wrong']}"
                violations.append(BrokenRule(name, says, int(row["n"]), example))
        state = target.state.apply.retaining
        assert state is not None
        count = run.sql(base(run, state)).count()
        if count == 0:
            return violations, []
        return violations, [f"{count:,} versions up to {state.since}, whose events are not kept"]


def _rules(shape: Shape, table: str) -> Iterator[TableRule]:
    current = f"(SELECT * FROM {table} WHERE {within(Partition.CURRENT)})"
    if shape.append_only:
        return
    prior = f"(SELECT * FROM {table} WHERE {within(Partition.PRIOR)})"
    versions = f"(SELECT * FROM {table} WHERE {within(Partition.CURRENT, Partition.PRIOR)})"
    key = key_text(shape)
    keys = shape.key_list()
    yield TableRule(
        "one_row_a_record",
        "a record is in Current at most once",
        f"SELECT {key} AS example FROM {current} GROUP BY {keys} HAVING count(*) > 1",
    )
    missing = " OR ".join(f"{quote(name)} IS NULL" for name in shape.keys)
    if shape.replaces:
        of_record = f"{shape.is_record()} AND {within(Partition.PRIOR)} AND {is_delete()}"
        without = " OR ".join(f"{quote(name)} IS NULL" for name in shape.replaced_within)
        missing = f"IF({of_record}, {without}, {missing})"
    yield TableRule(
        "keys",
        "every version has its whole key, and the hash of it",
        f"SELECT {key} AS example FROM {versions} "
        f"WHERE {missing} OR NOT ({h.KEY_HASH} <=> {key_hash(shape)})",
    )
    yield TableRule(
        "newest_is_current",
        "no version in Prior is newer than the one in Current",
        f"SELECT {key_text(shape, 'c.')} AS example FROM (SELECT *, {STORED_SEQUENCE} AS __seq "
        f"FROM {current}) c JOIN (SELECT *, {STORED_SEQUENCE} AS __seq FROM {prior}) p "
        f"ON {shape.key_match('c', 'p')} WHERE p.__seq >= c.__seq",
    )
    if not (shape.soft_delete or shape.holds_deletes):
        yield TableRule(
            "deleted_is_not_current",
            "a deleted record is not in Current",
            f"SELECT {key} AS example FROM {current} WHERE {is_delete()}",
        )
    if shape.history:
        following = (
            f"lead({h.FROM_TIMESTAMP}) OVER (PARTITION BY {keys} ORDER BY {STORED_SEQUENCE})"
        )
        yield TableRule(
            "intervals",
            "a version is valid until the next begins: no overlap, no hole",
            f"SELECT {key} AS example FROM (SELECT *, {following} AS __next FROM {versions}) "
            f"WHERE {_apart(shape)} OR {h.FROM_TIMESTAMP} IS NULL "
            f"OR {h.FROM_TIMESTAMP} > {h.TO_TIMESTAMP}",
        )


def _apart(shape: Shape) -> str:
    """Condition that a version does not end where the next one begins.

    Where rows leave by their age, the next version may have left before.
    """
    if shape.expired is not None:
        return f"__next < {h.TO_TIMESTAMP} OR ({h.TO_TIMESTAMP} IS NULL AND __next IS NOT NULL)"
    return f"NOT ({h.TO_TIMESTAMP} <=> __next)"


def _broken(target: DatasetTable, rule: TableRule) -> BrokenRule | None:
    row = target.spark.sql(
        f"SELECT count(*) AS n, min(example) AS example FROM ({rule.broken})"
    ).first()
    if row is None or row["n"] == 0:
        return None
    return BrokenRule(rule.name, rule.says, int(row["n"]), f"key {row['example']}")


def _files(target: DatasetTable, snapshot: int) -> list[BrokenRule]:
    """Every file of the snapshot is there with its size, and none holds equality deletes."""
    listed = target.spark.sql(
        "SELECT file_path, file_size_in_bytes, content "
        f"FROM {target.table.quoted}.files VERSION AS OF {int(snapshot)}"
    ).collect()
    missing, resized, equality = [], [], []
    for row in listed:
        file = target.table.java.io().newInputFile(row["file_path"])
        if not file.exists():
            missing.append(row["file_path"])
        elif int(file.getLength()) != row["file_size_in_bytes"]:
            resized.append(row["file_path"])
        if row["content"] == 2:
            equality.append(row["file_path"])
    found = (
        ("every file of the snapshot exists", missing),
        ("every file has the size that it was written with", resized),
        ("no equality deletes", equality),
    )
    return [
        BrokenRule("files", says, len(paths), str(paths[0])) for says, paths in found if len(paths)
    ]


def _accounting(target: DatasetTable) -> list[BrokenRule]:
    """The books add up, and partitions hold as many records as they say."""
    totals = target.state.copy.books.totals
    read, out, filtered, quarantined = (
        totals.get(f"rows_{name}", 0) for name in ("in", "out", "filtered", "quarantined")
    )
    violations = []
    if read != out + filtered + quarantined:
        says = "records in = out + filtered + quarantined"
        text = f"{read} in, {out} out, {filtered} filtered, {quarantined} quarantined"
        violations.append(
            BrokenRule("accounting", says, abs(read - out - filtered - quarantined), text)
        )
    assert target.state.snapshot is not None
    held = {
        row[0]: row[1]
        for row in target.spark.sql(
            f"SELECT {h.PARTITION}, count(*) FROM {target.table.at(target.state.snapshot)} "
            f"GROUP BY {h.PARTITION}"
        ).collect()
    }
    retaining = target.state.apply.retaining
    counted = {
        Partition.QUARANTINE: quarantined,
        Partition.RETAINED: retaining.rows if retaining is not None else 0,
    }
    pending = pending_rows(target.state.copy, target.state.apply)
    if pending is not None:
        counted[Partition.CHANGES] = pending
    if target.shape().append_only:
        counted[Partition.CURRENT] = out - totals.get("rows_expired", 0)
    for partition, books in counted.items():
        there = held.get(str(partition), 0)
        if there != books:
            says = f"the partition {partition} holds what the books say"
            violations.append(
                BrokenRule(
                    "accounting", says, abs(there - books), f"{there} rows, {books} in the books"
                )
            )
    return violations
