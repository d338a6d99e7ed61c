"""Pages of streams: what they are read from and landed in."""

from __future__ import annotations

from typing import Final

from polynya.model.errors.pages.page import ErrorPage

PAGES: Final = (
    ErrorPage(
        "POLYNYA-STR-001",
        "a streaming landing does not say what it reads, or where to",
        "`source` has exactly one key, such as `kafka`, and `into` is `{each: topic}` or "
        "`{table: NAME}`.",
    ),
    ErrorPage(
        "POLYNYA-STR-002",
        "a property of the Kafka client cannot be set",
        "Polynya reads records as bytes and keeps the position in the landed batches, so group, "
        "deserializers and the like are not for a file to set. All other properties are passed on "
        "as they are written, in the names that Kafka gives them.",
    ),
    ErrorPage(
        "POLYNYA-STR-004",
        "two landings write to one folder",
        "A landed table belongs to one task: its newest batch says how far the stream was read. "
        "Give each landing a `folder` that lies neither in nor around that of another.",
    ),
)
