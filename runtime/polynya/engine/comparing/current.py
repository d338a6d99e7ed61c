"""Rows of a view Current, by the first engine that suffices, as they come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from polynya.engine.answers import Answers
from polynya.engine.embedded import stream_embedded
from polynya.engine.plan.inventory import Entry
from polynya.lake.read.inspect import shape
from polynya.lake.read.statements import Statement
from polynya.mirror.embedded.refusal import NotEmbeddedError
from polynya.mirror.embedded.views import columns_of
from polynya.model.contract.identifiers import quote, quote_path
from polynya.model.datatypes import DataType


class CurrentView:
    """See `polynya.gateway.compare.comparing.CurrentTable`."""

    def __init__(self, entry: Entry, answers: Answers) -> None:
        self._entry, self._answers = entry, answers

    def columns(self) -> Mapping[str, DataType]:
        """Names and types of its columns."""
        entry = self._entry
        assert entry.table is not None, "only a dataset with a table is compared"
        known = shape(entry.table, entry.dataset)
        found = columns_of(entry.dataset, known, entry.dataset.relations.view) or {}
        return {name: kind for name, kind in found.items() if not name.startswith("hdr__")}

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Its rows as of the newest commit. Raises what `Answers.answer` raises."""
        relations = self._entry.dataset.relations
        names = ", ".join(quote(one) for one in columns)
        text = f"SELECT {names} FROM {quote_path(relations.schema, relations.view)}"
        if self._entry.dataset.kept.delete_mode == "soft":
            text += " WHERE NOT hdr__deleted"
        rows = stream_embedded(self._answers.project, text)
        try:
            first = next(rows, None)
        except NotEmbeddedError:
            self._answers.see_newest()
            yield from self._answers.answer(Statement(text)).batches
            return
        if first is not None:
            yield first
            yield from rows
