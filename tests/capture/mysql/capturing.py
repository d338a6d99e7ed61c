"""The capture process of MariaDB in tests, and what has landed, folded as the tables do it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from examples.servers.mariadb import Server
from examples.servers.mysql import MysqlServer
from polynya.capture.mysql.database import MysqlDatabase
from polynya.capture.wire import CaptureRequest, WorkerSettings
from polynya.formats.debezium.order import native_position
from tests.mariadb import access_to, busy_neighbour, numbers

FOLDER = "shop_db"
PAGE = Path(__file__).parents[3] / "docs" / "capture-mariadb.md"
#: Who has the rights that the page gives, and no other.
LIMITED = {"user": "polynya", "password": "a-secret"}


def rights(server: Server) -> list[str]:
    """The statements of the page that make the user of a capture, those of MySQL behind."""
    blocks = PAGE.read_text("utf-8").split("```sql\n")[1:]
    sql = blocks[server.kind == MysqlServer.kind].partition("```")[0]
    return [one.strip() for one in sql.split(";") if one.strip()]


def settings_of(server: Server, landing: Path, **more: Any) -> WorkerSettings:
    """A capture of the database `shop`."""
    given = {"mode": "follow", "include": ("shop.%",), "chunk_rows": 500, "roll_seconds": 0.2}
    access = access_to(server, **more.pop("access", {}))
    return WorkerSettings(
        task="shop_db", access=access, landing=str(landing), folder=FOLDER, **given | more
    )


class Process:
    """The capture as a process that can be killed."""

    def __init__(
        self, settings: WorkerSettings, module: str = "polynya.capture.worker", *given: str
    ) -> None:
        command = [sys.executable, "-m", module, *given]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.events: list[dict[str, Any]] = []
        assert self._process.stdin is not None
        self._process.stdin.write(settings.line())
        self._process.stdin.flush()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.events.append(json.loads(line))

    def landed(self) -> int:
        """The number of the newest batch that this process has landed."""
        return max((one["number"] for one in self.events if one["type"] == "landed"), default=0)

    def wait_for(self, what: str) -> None:
        """Wait for an event."""
        self._await(lambda: any(one["type"] == what for one in self.events), every=0.05)

    def wait_until_landed(self, number: int) -> None:
        """Wait for the batch of a number."""
        self._await(lambda: self.landed() >= number, every=0.002)

    def _await(self, there: Callable[[], bool], *, every: float) -> None:
        deadline = time.monotonic() + 240
        while not there():
            assert self._listener.is_alive(), self.events[-3:]
            assert time.monotonic() < deadline, self.events[-3:]
            time.sleep(every)

    def wait(self, seconds: float = 240) -> int:
        """Wait until it has ended and its last event is known; its code."""
        code = self._process.wait(seconds)
        self._listener.join(seconds)
        return code

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self.wait()

    def ask(self, request: CaptureRequest) -> None:
        """Ask it for something."""
        assert self._process.stdin is not None
        self._process.stdin.write(request.line())
        self._process.stdin.flush()

    def stop(self) -> int:
        """Ask it to end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self.wait()


def lines(landing: Path) -> Iterator[dict[str, Any]]:
    """All events that have landed, in the order of the batches."""
    for path in sorted((landing / FOLDER).glob("capture-*.jsonl.zst")):
        with pa.input_stream(str(path), compression="zstd") as content:
            for line in content.read().splitlines()[1:]:
                yield json.loads(line)


def header(landing: Path) -> dict[str, Any]:
    """The header of the newest batch."""
    path = max((landing / FOLDER).glob("capture-*.jsonl.zst"))
    with pa.input_stream(str(path), compression="zstd") as content:
        return json.loads(content.read().splitlines()[0])["polynya_capture"]


def folded(landing: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """What the tables have after all events in the order of their places; rows by their keys."""
    found = []
    for event in lines(landing):
        place = native_position(event["value"])
        assert place is not None
        found.append((place[0], event))
    tables: dict[str, dict[str, dict[str, Any]]] = {}
    for _, event in sorted(found, key=lambda one: one[0]):
        _apply(tables, event)
    return tables


def _apply(tables: dict[str, dict[str, dict[str, Any]]], event: dict[str, Any]) -> None:
    value, source = event["value"], event["value"]["source"]
    if "ddl" in value:
        return
    rows = tables.setdefault(f"{source['db']}.{source['table']}", {})
    key = json.dumps(event["key"], sort_keys=True)
    if value["op"] == "t":
        rows.clear()
    elif value["op"] == "d":
        rows.pop(key, None)
    else:
        rows[key] = value["after"]


def fill(server: Server) -> None:
    """Two tables of 3000 rows."""
    server.execute(
        "CREATE TABLE orders (id INT PRIMARY KEY, s VARCHAR(20), n BIGINT, b BLOB)",
        "CREATE TABLE notes (a INT, b INT, t TEXT, PRIMARY KEY (a, b))",
        f"INSERT INTO orders SELECT seq, CONCAT('s', seq), seq, NULL FROM {numbers(3000)}",
        f"INSERT INTO notes SELECT seq % 100, seq, 'n' FROM {numbers(3000)}",
        database="shop",
    )


def finish(server: Server, landing: Path, **more: Any) -> None:
    """Capture all that there is up to now."""
    with busy_neighbour(server):
        process = Process(settings_of(server, landing, mode="once", **more))
        assert process.wait() == 0, process.events[-1]["error"]


def source_rows(server: Server, name: str) -> dict[str, dict[str, Any]]:
    """A table as the source has it, in the encoding of events."""
    database = MysqlDatabase(access_to(server))
    (table,) = database.tables([name], [])
    snapshot = database.resume([table])
    chunk = snapshot.read(table, None, 10_000_000, None)
    snapshot.close()
    database.close()
    events = [json.loads(line) for line in chunk.lines.splitlines()]
    return {json.dumps(one["key"], sort_keys=True): one["value"]["after"] for one in events}


def same(server: Server, landing: Path, *names: str) -> None:
    """Assert that tables are what the source has."""
    tables = folded(landing)
    for name in names:
        there, here = source_rows(server, name), tables.get(name, {})
        assert here.keys() == there.keys(), name
        assert [key for key in there if here[key] != there[key]] == [], name
