"""A source of files in memory, whose landed batches are kept in a list."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import TypeAdapter

from polynya.model.config.stream_content import Content, ContentSetting, JsonContent
from polynya.model.config.stream_landing import FilesSource
from polynya.streams.files.position import FilesPosition
from polynya.streams.files.source import FilesOfSource
from polynya.testing.fakes import FakeClock, MemorySourceStore

NOW = datetime(2026, 11, 23, 15, 30, tzinfo=UTC)
PATTERN = "<yyyy>/<MM>/<dd>/part-*.json"


@dataclass
class Landing:
    """What lands batches from the files of `store`; `again` is a new process."""

    settings: dict[str, Any] = field(default_factory=dict)
    content: Content = field(default_factory=JsonContent)
    start_from: Any = "earliest"
    store: MemorySourceStore = field(default_factory=MemorySourceStore)
    clock: FakeClock = field(default_factory=lambda: FakeClock(NOW))
    position: dict[str, Any] | None = None
    rows: list[tuple[str, int, bytes]] = field(default_factory=list)
    lost: list[tuple[str, str]] = field(default_factory=list)
    batches: int = 0

    def __post_init__(self) -> None:
        self.again()

    def again(self) -> None:
        """What is in memory is gone; the batches that were put are still there."""
        settings = FilesSource.model_validate({"url": "in", "pattern": PATTERN, **self.settings})
        self.source = FilesOfSource(self.store, settings, self.content, self.start_from, self.clock)

    def step(
        self, max_records: int = 1000, max_bytes: int = 10_000_000, *, put: bool = True
    ) -> bool:
        """Make the next batch; whether there was one. Without `put` it is lost before that."""
        before = None if self.position is None else FilesPosition.from_json(self.position)
        step = self.source.next(before, max_records=max_records, max_bytes=max_bytes)
        if step is None or not put:
            return False
        self.position = step.end.to_json()
        self.batches += 1
        self.lost += [(one.at, one.why) for one in step.lost]
        for row in step.rows.to_pylist():
            self.rows.append((row["hdr__file_name"], row["hdr__file_record"], row["value"]))
        return True

    def land(self, **limits: int) -> list[bytes]:
        """Land all there is; the messages that came, in their order."""
        known = len(self.rows)
        while self.step(**limits):
            pass
        return [value for _, _, value in self.rows[known:]]

    def put(self, name: str, *lines: str) -> None:
        """A file with lines."""
        self.store.put(name, "".join(f"{line}\n" for line in lines).encode())


def content(**settings: Any) -> Content:
    """Content as a task writes it."""
    found: Content = TypeAdapter(ContentSetting).validate_python(settings)
    return found


def day(days: int, name: str) -> str:
    """The path of a file dated some days ago."""
    return f"{NOW - timedelta(days=days):%Y/%m/%d}/part-{name}.json"
