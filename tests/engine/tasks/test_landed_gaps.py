"""A table whose landed batches were removed before it copied them says so, and goes on."""

from __future__ import annotations

import json

from polynya.engine.backlog import LandedReader, LandedReaders, copy_state_reader
from polynya.formats.landed import batch_name
from polynya.observe.streams import StreamLost
from tests.formats.stream.streams import landed
from tests.lab.events import upsert
from tests.lab.lab import Feed, Lab
from tests.oracle.emit import debezium_lines


def table_of_a_stream(lab: Lab) -> Feed:
    return lab.feed(
        "clicks",
        task={"landing": {"path": f"{lab.schema}", "format": "stream"}},
        path=None, sequence_by=None, timestamp=None, apply_as_deletes=None,
        apply_as_truncates=None, history=None, mode="append_only", keys=None, except_columns=None,
    )  # fmt: skip


def land(table: Feed, number: int, first: int, *keys: int) -> None:
    messages = [json.dumps({"id": key}).encode() for key in keys]
    (table.folder / batch_name(number)).write_bytes(landed(messages, number, first))


def test_batches_that_were_gone_are_told_counted_and_shown(lab: Lab) -> None:
    table = table_of_a_stream(lab)
    readers = LandedReaders(copy_state_reader(lab.spark))
    readers.know([table.task])
    folder = f"{lab.schema}/clicks"
    land(table, 1, 0, 1, 2)
    assert readers.of(folder) == (LandedReader(table.view, 1),)
    table.run()
    assert readers.of(folder) == (LandedReader(table.view, 2),)
    (table.folder / batch_name(1)).unlink()
    # The second and third held five messages, and nobody copied them.
    land(table, 4, 7, 8)
    table.run()
    table.run()

    [lost] = [event for event in lab.events if isinstance(event, StreamLost)]
    assert lost.text() == (
        f"lost     {table.view}: {lab.schema}/clicks: landed batches 2 to 3 with 5 messages "
        "were removed before the table copied them"
    )
    assert table.current("id") == [(1,), (2,), (8,)]
    landed_to = table.table().state.copy.position.landed
    assert landed_to is not None
    assert (landed_to.lost_batches, landed_to.lost_messages, landed_to.messages) == (2, 5, 8)


def test_a_task_whose_tables_share_files_says_so_too(lab: Lab) -> None:
    capture = lab.capture(history=False)
    folder = capture.folder / "users"
    folder.mkdir()

    def land_change(number: int, key: int) -> None:
        lines = debezium_lines([upsert(key, number, name="x")], lab.schema, "users", ["id"])
        messages = [json.dumps(line).encode() for line in lines]
        (folder / batch_name(number)).write_bytes(landed(messages, number, number))

    land_change(1, 1)
    capture.run()
    land_change(4, 2)
    capture.run()
    capture.run()

    [lost] = [event for event in lab.events if isinstance(event, StreamLost)]
    assert (lost.subject, lost.at) == (f"{lab.schema}_task", f"{lab.schema}/users")
    assert (lost.begin, lost.end, lost.records) == ("2", "3", None)
    read = capture.ledger().table().state.copy.position.files
    assert f"{lab.schema}/users/{batch_name(4)}" in read
