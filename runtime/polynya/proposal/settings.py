"""What is proposed for the files of one dataset: settings with their reasons, and their outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ProposedSetting:
    """The value of a setting, as JSON and YAML write it, and why it is proposed."""

    value: object
    reason: str


@dataclass(frozen=True, slots=True)
class ProposedEvents:
    """How records become rows: which identify, order and delete each other.

    Attributes:
        key: the column that identifies a record; None: each record is a row.
        sequence: the column that orders the versions of a record.
        timestamp: the column with the time of the event.
        deletes: the condition of events that delete.
        left_out: columns about the change, which the table does not get.
        replaced: records of the sample that a newer version of them replaces.
        appended: why each record is a row; "" with a key.
    """

    key: ProposedSetting | None = None
    sequence: ProposedSetting | None = None
    timestamp: ProposedSetting | None = None
    deletes: ProposedSetting | None = None
    left_out: tuple[str, ...] = ()
    replaced: int = 0
    appended: str = ""


@dataclass(frozen=True, slots=True)
class DatasetProposal:
    """The settings of one task with one dataset.

    Attributes:
        format: of the landed files.
        landing: how the files are written, by setting.
        columns: declared types by column, as a text or a map.
        events: keys, order, time and deletes.
        notes: what else the sample shows that a person should know.
    """

    format: ProposedSetting
    landing: Mapping[str, ProposedSetting] = field(default_factory=dict)
    columns: Mapping[str, ProposedSetting] = field(default_factory=dict)
    events: ProposedEvents = field(default_factory=ProposedEvents)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SampleOutcome:
    """What a run would make of the sample with the proposed settings.

    Attributes:
        records: all that the files of the sample hold.
        copied: those that become rows or events.
        quarantined: the others, counted by rule.
        replaced: copied ones that a newer version with the same key replaces.
        no_records: lines that are not read as records, counted by what they are.
        is_whole: the sample is all of the files.
    """

    records: int
    copied: int
    quarantined: Mapping[str, int] = field(default_factory=dict)
    replaced: int = 0
    no_records: Mapping[str, int] = field(default_factory=dict)
    is_whole: bool = True

    def __str__(self) -> str:
        """In words, for the task file and the terminal."""
        text = f"a run copies {self.copied:,} of {self.records:,} records"
        if not self.is_whole:
            text = f"of a sample of the data, {text}"
        if self.quarantined:
            rules = ", ".join(f"{count:,} {rule}" for rule, count in self.quarantined.items())
            text += f"; to QUARANTINE go {rules}"
        if self.replaced:
            text += f"; newer versions with the same key replace {self.replaced:,}"
        if self.no_records:
            lines = ", ".join(f"{count:,} {what}" for what, count in self.no_records.items())
            text += f"; lines that are not records: {lines}"
        return text
