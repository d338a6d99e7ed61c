"""A reload of a landed stream from its source: what had landed, exactly, or an error that says why.

The landed batches are gone, but for the newest; the source goes on.
"""

from __future__ import annotations

from typing import Any

import pytest

from polynya.engine.commands.reload import ReloadRequest, abandon_begun, reload
from polynya.model.config.dataset import KEEPING
from polynya.model.errors import OperationError
from tests.engine.tasks.direct_table import MERGED, PowerCut, killed, message
from tests.lab.lab import Lab
from tests.lab.landed import LandedTable
from tests.lab.streamed import StreamedTable
from tests.streams.kafka.fake import FakeKafka, FakeTopic

slow = pytest.mark.slow


def streamed(
    lab: Lab, *partitions: list[bytes], **transform: Any
) -> tuple[StreamedTable, FakeTopic]:
    """A table of a topic whose messages have landed in batches of two and were copied."""
    source = FakeKafka("clicks")
    topic = source.topic("clicks", len(partitions))
    facts = StreamedTable(
        lab, source, {**MERGED, **transform}, landing={"batch": {"max_records": 2}}
    )
    for partition, messages in zip(topic.partitions, partitions, strict=True):
        partition.add(*messages)
    facts.run()
    return facts, topic


def forget(facts: StreamedTable) -> None:
    """Delete the landed batches but for the newest, as `folder_retention` does."""
    for number in facts.log.numbers()[:-1]:
        facts.log.delete(number)


def damage(facts: StreamedTable, key: int) -> None:
    """Remove a record, which no step of the engine does."""
    current = f"{facts.look.relation} WHERE hdr__partition = 'current'"
    facts.lab.spark.sql(f"DELETE FROM {current} AND id = {key}")


def current(facts: StreamedTable) -> list[Any]:
    return facts.look.current("id", "name", "hdr__deleted")


def test_a_damaged_table_is_right_again_and_what_comes_later_comes_once(lab: Lab) -> None:
    facts, topic = streamed(
        lab,
        [message(1, name="a"), b"no json", message(2, name="b"), message(1, name="c")],
        [message(3, name="d"), message(3, gone=True)],
    )
    before, rejected, totals = current(facts), facts.look.rejected(), facts.look.totals()
    history = facts.look.history("id", "name")
    forget(facts)
    damage(facts, 2)
    # What has landed and was not copied yet is read by the reload, and copied no more.
    topic.partitions[0].add(message(4, name="later"))
    facts.land()
    # What has not landed yet is not.
    topic.partitions[0].add(message(5, name="latest"))
    done = facts.reload()
    reloaded = current(facts)
    facts.run()

    assert done.loaded == 6
    assert [row for row in reloaded if row[0] != 4] == before
    assert (4, "later", False) in reloaded
    assert current(facts) == [*before, (4, "later", False), (5, "latest", False)]
    assert [row[:2] for row in facts.look.history("id", "name") if row[0] == 1] == [
        row[:2] for row in history if row[0] == 1
    ]
    # What could not be read stays in quarantine, once.
    assert facts.look.rejected() == rejected
    assert facts.look.totals()["quarantined"] == totals["quarantined"] == 1


@slow
def test_a_table_that_is_right_is_not_changed(lab: Lab) -> None:
    facts, _ = streamed(lab, [message(key % 3, name=str(key)) for key in range(7)])
    before = current(facts), facts.look.history("id", "name")
    forget(facts)

    done = facts.reload()

    assert (done.loaded, done.current, done.prior, done.removed) == (7, 0, 0, 0)
    assert (current(facts), facts.look.history("id", "name")) == before


@slow
@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("at", range(1, 6))
def test_a_reload_that_was_killed_goes_on_while_landing_does(
    lab: Lab, at: int, before: bool
) -> None:
    facts, topic = streamed(lab, [message(1, name="a"), message(2, name="b"), message(1, name="c")])
    forget(facts)
    damage(facts, 1)
    with killed(at, before=before), pytest.raises(PowerCut):
        facts.reload()
    topic.partitions[0].add(message(4, name="d"))
    # Where it has begun a run leaves the table to it.
    facts.run()
    # Without saying again where from.
    facts.reload(from_source=facts.look.table().state.copy.reloading is None)
    facts.run()

    assert [row[:2] for row in current(facts)] == [(1, "c"), (2, "b"), (4, "d")]


@slow
def test_what_the_source_has_deleted_is_kept_only_on_demand(lab: Lab) -> None:
    facts, topic = streamed(lab, [message(1, name="a"), message(2, name="b"), message(3, name="c")])
    damage(facts, 3)
    topic.partitions[0].expire(before=1)
    with pytest.raises(OperationError) as refused:
        facts.reload()
    facts.reload(KEEPING)

    assert refused.value.code == "POLYNYA-STR-066"
    assert [row[:2] for row in current(facts)] == [(1, "a"), (2, "b"), (3, "c")]


@slow
@pytest.mark.parametrize("gone", ["deleted", "recreated", "truncated"])
def test_a_topic_that_is_not_what_it_was_is_named(lab: Lab, gone: str) -> None:
    facts, topic = streamed(lab, [message(1, name="a"), message(2, name="b")])
    source = facts.source
    assert isinstance(source, FakeKafka)
    if gone == "deleted":
        del source.topics["clicks"]
    elif gone == "recreated":
        source.topic("clicks", id="id-2").partitions[0].add(message(3), message(4), message(5))
    else:
        topic.partitions[0].end = 1
        del topic.partitions[0].records[1]
    with pytest.raises(OperationError) as refused:
        facts.reload()
    facts.reload(KEEPING, accept_incomplete=True)

    assert refused.value.code == "POLYNYA-STR-066"
    assert f"({gone})" in refused.value.message
    assert [row[:2] for row in current(facts)] == [(1, "a"), (2, "b")]


@slow
def test_a_compacted_topic_has_fewer_messages_than_had_landed(lab: Lab) -> None:
    facts, topic = streamed(lab, [message(1, name="a"), message(2, name="b"), message(1, name="c")])
    del topic.partitions[0].records[1]
    with pytest.raises(OperationError) as refused:
        facts.reload()
    abandon_begun(facts.context(), [facts.look.dataset])
    facts.reload(KEEPING)

    assert refused.value.code == "POLYNYA-STR-072"
    assert "returned 2 messages" in refused.value.message
    assert [row[:2] for row in current(facts)] == [(1, "c"), (2, "b")]


@slow
def test_a_record_in_two_partitions_needs_a_column_that_orders_it(lab: Lab) -> None:
    """The landing read the first partition before the second got anything; a reload reads both."""
    facts, topic = streamed(lab, [message(1, name="new")], [message(2, name="x")])
    topic.partitions[1].add(message(1, name="newest"))
    facts.run()
    with pytest.raises(OperationError) as refused:
        facts.reload()
    assert refused.value.code == "POLYNYA-STR-073"
    assert "clicks/0 and in clicks/1" in refused.value.message


@slow
def test_a_record_in_two_partitions_is_ordered_by_a_column(lab: Lab) -> None:
    newer, older = message(1, name="a", seq=2), message(1, name="b", seq=1)
    facts, _ = streamed(lab, [newer], [older], sequence_by=["seq"])
    damage(facts, 1)

    facts.reload()

    assert [row[:2] for row in current(facts)] == [(1, "a")]


@slow
def test_it_begins_where_the_landing_began(lab: Lab) -> None:
    source = FakeKafka("clicks", start="now")
    topic = source.topic("clicks")
    topic.partitions[0].add(message(9, name="before"))
    facts = StreamedTable(lab, source, dict(MERGED))
    facts.land()
    topic.partitions[0].add(message(1, name="a"), message(2, name="b"))
    facts.run()
    forget(facts)
    damage(facts, 1)

    facts.reload()

    assert [row[:2] for row in current(facts)] == [(1, "a"), (2, "b")]


@slow
@pytest.mark.parametrize(
    ("transform", "says"),
    [
        ({"columns": [*MERGED["columns"], {"name": "at", "expression": "get_processing_time()"}]},
         "the time of landing"),
        ({"columns": [*MERGED["columns"], {"name": "u", "expression": "uuid_generator()"}]},
         "where a record has landed"),
    ],
)  # fmt: skip
def test_what_only_landed_batches_tell_is_no_matter_of_a_source(
    lab: Lab, transform: dict[str, Any], says: str
) -> None:
    facts, _ = streamed(lab, [message(1, name="a")], **transform)
    with pytest.raises(OperationError) as refused:
        facts.reload()

    assert refused.value.code == "POLYNYA-STR-070"
    assert says in refused.value.message


@slow
def test_a_landing_that_does_not_say_where_it_began_is_refused(lab: Lab) -> None:
    """As those of older versions."""
    facts = LandedTable(lab, dict(MERGED))
    facts.take({"id": 1, "name": "a", "gone": False})
    context = lab.context()
    with pytest.raises(OperationError, match="no landing of this project") as unknown:
        reload(
            context, ReloadRequest(facts.task, facts.look.dataset, mode=KEEPING, from_source=True)
        )
    context.landed_readers.know([facts.task, facts.landing])
    with pytest.raises(OperationError, match="an older version landed") as refused:
        reload(
            context,
            ReloadRequest(
                facts.task,
                facts.look.dataset,
                mode=KEEPING,
                from_source=True,
                source=FakeKafka("clicks"),
            ),
        )

    assert unknown.value.code == refused.value.code == "POLYNYA-STR-070"


@slow
def test_what_was_begun_from_landed_batches_does_not_go_on_at_the_source(lab: Lab) -> None:
    facts, _ = streamed(lab, [message(1, name="a"), message(2, name="b"), message(3, name="c")])
    with killed(3, before=False), pytest.raises(PowerCut):
        facts.reload(from_source=False)
    with pytest.raises(OperationError) as refused:
        facts.reload()

    assert refused.value.code == "POLYNYA-LAKE-012"
