"""Settings of a dataset that need facts only landed batches hold, which no source gives again."""

from __future__ import annotations

from collections.abc import Iterator

from polynya.model.config.dataset import ResolvedDataset
from polynya.model.headers import LANDED_AT
from polynya.transform.expressions import tells_place
from polynya.transform.mapping import flattened
from polynya.transform.named_columns import named_columns


def landed_only(dataset: ResolvedDataset) -> str | None:
    """The use of such a fact, in words; None when the settings use none."""
    for column in named_columns(dataset):
        if column.column == LANDED_AT:
            return f"`{column.setting}` uses the time of landing"
    for text in _expressions(dataset):
        if tells_place(flattened(text).text):
            return f"`{text}` depends on where a record has landed"
    return None


def _expressions(dataset: ResolvedDataset) -> Iterator[str]:
    yield from (column.expression for column in dataset.mapping.columns or ())
    events = dataset.events
    for text in (dataset.mapping.where, events.apply_as_deletes, events.apply_as_truncates):
        if text is not None:
            yield text
