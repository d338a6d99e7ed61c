"""Quarantined records as `polynya quarantine` shows them: chosen, counted, one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from polynya.cli.options import usage_error
from polynya.model.errors import OperationError

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.table import Table

#: Offset of what stands for a whole file.
WHOLE_FILE: Final = -1
#: Groups of the summary; a broken feed may have as many as files.
_MOST_GROUPS: Final = 30


@dataclass(frozen=True, slots=True)
class Quarantine:
    """The quarantined records of one dataset: id, file, offset, rule, error, raw; in order."""

    dataset: str
    records: pa.Table

    def chosen(self, rule: str | None, file: str | None) -> Quarantine:
        """Only records of a rule, or of files that a glob names."""
        import pyarrow as pa

        keep = [
            rule in (None, one_rule) and (file is None or fnmatchcase(one_file, file))
            for one_rule, one_file in zip(
                self.records["rule"].to_pylist(), self.records["file"].to_pylist(), strict=True
            )
        ]
        return Quarantine(self.dataset, self.records.filter(pa.array(keep, pa.bool_())))

    def rows(self, most: int | None = None) -> Iterator[dict[str, Any]]:
        """The first records, each with its dataset and without its text."""
        records = self.records.drop_columns(["raw"])
        for row in records.slice(0, most).to_pylist():
            yield {"dataset": self.dataset, **row}


@dataclass(frozen=True, slots=True)
class Group:
    """So many records of one dataset that one rule rejected in one file."""

    records: int
    dataset: str
    rule: str
    file: str


def groups(found: Sequence[Quarantine]) -> list[Group]:
    """Records by dataset, rule and file, the largest group first."""
    made = [
        Group(row["id_count"], one.dataset, row["rule"], row["file"])
        for one in found
        for row in one.records.group_by(["rule", "file"]).aggregate([("id", "count")]).to_pylist()
    ]
    return sorted(made, key=lambda group: (-group.records, group.dataset, group.rule, group.file))


def summary(made: Sequence[Group]) -> Table:
    """The groups as a table that fits a narrow terminal."""
    from rich.table import Table

    table = Table("records", "dataset", "rule", "file")
    for group in made[:_MOST_GROUPS]:
        table.add_row(f"{group.records:,}", group.dataset, group.rule, group.file)
    rest = made[_MOST_GROUPS:]
    if rest:
        records = sum(group.records for group in rest)
        table.add_row(f"{records:,}", f"in {len(rest):,} more groups", "", "")
    return table


def as_entry(row: dict[str, Any]) -> str:
    """One record in two lines, which a terminal of any width can show."""
    where = place_in_file(row)
    number = where if row["offset"] == WHOLE_FILE else f"record {where}"
    head = f"{row['id']}  {row['dataset']}  {row['file']}, {number}"
    return f"{head}\n  {row['rule']}: {row['error']}"


def place_in_file(row: dict[str, Any]) -> str:
    """Where a record stood in its file, counted from 1."""
    return "whole file" if row["offset"] == WHOLE_FILE else str(row["offset"] + 1)


def identified(found: Sequence[Quarantine], prefix: str) -> tuple[str, dict[str, Any]]:
    """The dataset and the one record whose id begins so."""
    import pyarrow.compute as pc

    hits = []
    for one in found:
        mask = pc.starts_with(one.records["id"], prefix)
        hits += [(one.dataset, row) for row in one.records.filter(mask).to_pylist()]
    same = [hit for hit in hits if hit[1]["id"] == prefix]
    hits = same or hits
    if not prefix or not hits:
        raise OperationError(
            "POLYNYA-QUA-001",
            f"no quarantined record has the id {prefix}",
            state="nothing was changed",
            fix="`polynya quarantine list` shows the ids",
        )
    if len({row["id"] for _, row in hits}) > 1:
        shown = ", ".join(row["id"] for _, row in hits[:3])
        raise usage_error(f"{len(hits)} ids begin with `{prefix}`", f"write more of it: {shown}")
    return hits[0]
