"""Settings that a landed file would need and its dataset does not have: advice, by the sniffer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from polynya.formats.batch import DatasetBatch
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.settings import (
    DEFAULT_DECIMAL,
    DEFAULT_DELIMITER,
    DEFAULT_QUOTE,
)
from polynya.model.errors import ConfigError, PolynyaError
from polynya.model.formats import NATIVE
from polynya.proposal.proposal import TriedProposal, proposed
from polynya.proposal.samples import FileFamily, FoundFiles
from polynya.proposal.yaml_lines import one_line, yaml_value
from polynya.store.object_store import ObjectStore

#: Settings by which a file can be misread, and what each is where a task does not say it.
_DEFAULTS: Final[dict[str, Any]] = {
    "zip_member": None,
    "encoding": "utf-8",
    "record_path": None,
    "delimiter": DEFAULT_DELIMITER,
    "quote": DEFAULT_QUOTE,
    "escape": None,
    "comment": None,
    "sheet": None,
    "skip_lines": 0,
    "header": True,
    "decimal_separator": DEFAULT_DECIMAL,
    "thousands_separator": None,
}
#: Rules that reject records of files which the settings do not fit.
_RULES: Final = frozenset(
    {
        "unreadable_file", "bad_utf8", "bad_json", "not_an_object", "bad_csv", "bad_number",
        "bad_value", "type_mismatch", "bad_column",
    }
)  # fmt: skip
_FORMATS: Final = frozenset(rules.name for rules in NATIVE)
#: Files of a batch that are looked at.
MOST_FILES: Final = 2


def may_misfit(dataset: ResolvedDataset, rule: str) -> bool:
    """Whether a record that a rule rejected says that other settings may fit its file."""
    return dataset.landing.format in _FORMATS and rule in _RULES


def advice_of(store: ObjectStore, batch: DatasetBatch, dataset: ResolvedDataset) -> list[str]:
    """What would help the files of a batch of which most records were rejected, in words."""
    faulty: dict[str, int] = {}
    for record in batch.rejected:
        if may_misfit(dataset, record.rule):
            faulty[record.file] = faulty.get(record.file, 0) + 1
    found = []
    for path, _ in sorted(faulty.items(), key=lambda item: -item[1])[:MOST_FILES]:
        found += misfits(store, path, dataset)
    return found


def misfits(store: ObjectStore, path: str, dataset: ResolvedDataset) -> list[str]:
    """Settings that fit a file and that its dataset does not have, one sentence each.

    Empty where the settings are as good as a proposal, and where nothing can be said: a file that
    cannot be read now says nothing.
    """
    family = FileFamily(dataset.name, "*", (path,))
    shown = one_line(path)
    try:
        tried = proposed(FoundFiles(store, (family,), None, {path: path}), family, "advice")
    except ConfigError as error:
        reason = error.message.partition(": ")[2]
        return [f"{shown}: {reason}; fix: {error.fix}"] if reason.startswith("it is ") else []
    except PolynyaError:
        return []
    return [f"{shown}: {text}" for text in _differences(tried, dataset)]


def _differences(tried: TriedProposal, dataset: ResolvedDataset) -> Iterator[str]:
    proposal, landing = tried.proposal, dataset.landing
    wanted = str(proposal.format.value)
    if wanted != landing.format:
        yield f"it looks like {wanted}: set `format: {wanted}` ({proposal.format.reason})"
        return
    for name, default in _DEFAULTS.items():
        given = getattr(landing.delivery, name)
        now = default if given is None else given
        setting = proposal.landing.get(name)
        fits = default if setting is None else setting.value
        if now == fits or (not now and not fits):
            continue
        if setting is None:
            yield f"`{name}: {yaml_value(now)}` does not fit: leave it out"
        else:
            yield f"set `{name}: {yaml_value(fits)}`: {setting.reason}"
    for column, found in proposal.columns.items():
        if column in dataset.events.columns and isinstance(found.value, dict):
            written = found.value.get("format")
            if written is not None and dataset.events.formats.get(column) != written:
                yield (
                    f"set `format: {yaml_value(written)}` for the column "
                    f"{yaml_value(column)}: {found.reason}"
                )
