"""A capture process of a test's own, what it has landed, and what that comes to."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from polynya.capture.source import Access
from polynya.capture.wire import Mode, WorkerSettings
from polynya.formats.debezium.captured import header_of, read_header
from polynya.formats.debezium.order import native_position

#: What stands in `landed()` for the text by which a process says that a column was not sent.
UNSENT = "(not sent)"
_PATIENCE = 240


@dataclass
class CaptureProcess:
    """One after the other, into one folder."""

    landing: Path
    access: Access
    settings: Mapping[str, Any] = field(default_factory=dict)
    module: tuple[str, ...] = ("polynya.capture.worker",)
    process: subprocess.Popen[bytes] | None = None

    def start(self, mode: Mode = "follow") -> None:
        given = {"include": ("public.*",), "chunk_rows": 200, "roll_seconds": 0.2, "parallel": 2}
        settings = WorkerSettings(
            task="shop", mode=mode, access=self.access, landing=str(self.landing), folder="shop",
            **{**given, **self.settings},
        )  # fmt: skip
        out = (self.landing.parent / "capture.out").open("ab")
        said = (self.landing.parent / "capture.err").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", *self.module],
            stdin=subprocess.PIPE, stdout=out, stderr=said, env=dict(os.environ),
        )  # fmt: skip
        assert self.process.stdin is not None
        self.process.stdin.write(settings.line())
        self.process.stdin.flush()

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        """Tell it to end, and wait until it has."""
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(_PATIENCE) == 0, self.events()[-1]

    def finish(self, mode: Mode = "once") -> None:
        """Take all there is now, and end. Raises AssertionError when it does not."""
        self.start(mode)
        assert self.process is not None
        code = self.process.wait(_PATIENCE)
        assert code == 0, self.events()[-1]

    def wait_for(self, event: str, *, times: int = 1) -> None:
        until = time.monotonic() + _PATIENCE
        while sum(one["type"] == event for one in self.events()) < times:
            self._assert_goes_on(until)
            time.sleep(0.1)

    def wait_for_line(self, table: str, **key: Any) -> None:
        """Wait until the event of a row has landed."""
        until = time.monotonic() + _PATIENCE
        while not any(
            line["key"] == key and line["value"]["source"]["table"] == table
            for line in self.landed()
        ):
            self._assert_goes_on(until)
            time.sleep(0.2)

    def _assert_goes_on(self, until: float) -> None:
        """A process that ended by what another try may settle begins again, as a task has it."""
        told = self.events()[-3:]
        assert time.monotonic() < until, told
        failed = [one["error"] for one in told if one["type"] == "failed"]
        if failed and self.process is not None and self.process.poll() is not None:
            assert failed[-1]["retryable"], told
            self.start()

    def events(self) -> list[dict[str, Any]]:
        lines = (self.landing.parent / "capture.out").read_bytes().splitlines()
        return [json.loads(one) for one in lines if one.endswith(b"}")]

    def landed(self) -> list[dict[str, Any]]:
        """The lines of all batches, in the order in which they landed."""
        found = []
        for file in sorted((self.landing / "shop").glob("capture-*.zst")):
            content = pa.CompressedInputStream(io.BytesIO(file.read_bytes()), "zstd").read()
            unsent = header_of(content.splitlines()[0], file.name).unsent
            assert unsent, "each process has one"
            lines = content.decode().replace(unsent, UNSENT).split("\n")[1:]
            found += [json.loads(line) for line in lines if line]
        return found

    def shapes(self, table: str) -> list[Any]:
        """The schemas of a table's envelopes, in the order in which they landed."""
        found = []
        for file in sorted((self.landing / "shop").glob("capture-*.zst")):
            with file.open("rb") as data:
                header = read_header(data, file.name)
            found += [one.schema for one in header.schemas.get(table, ())]
        return found

    def ordered(self) -> list[dict[str, Any]]:
        """The lines of all batches, in the order of their places."""
        return sorted(self.landed(), key=lambda line: native_position(line["value"]) or ("", None))

    def tables(self) -> dict[str, dict[str, dict[str, Any]]]:
        """What the landed lines come to: rows by table and by the text of their key."""
        tables: dict[str, dict[str, dict[str, Any]]] = {}
        for line in self.ordered():
            value, source = line["value"], line["value"]["source"]
            rows = tables.setdefault(f"{source['schema']}.{source['table']}", {})
            if value["op"] == "t":
                rows.clear()
                continue
            key = json.dumps(line["key"])
            before = rows.pop(key, {})
            if value["op"] != "d":
                after = value["after"]
                unsent = {name for name, one in after.items() if one == UNSENT}
                rows[key] = {**after, **{name: before.get(name) for name in unsent}}
        return tables
