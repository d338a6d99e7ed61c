"""Tables that would be captured, as people read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from polynya.cli.inspect.words import size_in_words
from polynya.model.config.capture.masks import MaskSetting

if TYPE_CHECKING:
    from polynya.gateway.source import SourceTable


def preview_lines(table: SourceTable, masks: Mapping[str, MaskSetting]) -> Iterator[str]:
    """A table that would be captured."""
    rows = "rows unknown" if table.rows_estimate is None else f"about {table.rows_estimate:,} rows"
    size = "" if table.bytes_estimate is None else f", {size_in_words(table.bytes_estimate)}"
    key = f"key {', '.join(table.key)}" if table.key else "no key"
    yield f"{table.name}: {rows}{size}, {key}"
    for column in table.columns:
        mask = masks.get(column.name)
        masked = "" if mask is None else f"  ({_mask_in_words(mask)})"
        null = "" if column.nullable else " not null"
        yield f"  {column.name:<24}{column.type_name}{null}{masked}"


def _mask_in_words(mask: MaskSetting) -> str:
    return "left out" if mask == "drop" else f"masked: {', '.join(mask.chosen)}"
