"""What a batch of a test of a stream lands: its messages, in one landed batch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from polynya.model.config.task_tests import Batch, moment
from polynya.model.contract.stream_headers import STREAM_HEADER_NAMES, StreamSource
from polynya.model.errors import ConfigError
from polynya.model.formats.registry import rules_of
from polynya.model.reading.task_test_loader import LoadedTest
from polynya.streaming.landing.by_hand import ByHand, Message


def landed_messages(test: LoadedTest, number: int) -> Mapping[str, bytes]:
    """The landed batch of the batch with this number (from 0), by its path in the landing zone.

    Raises ConfigError for a header column that the source does not have.
    """
    given = test.test.given
    clocks = [test.test.clock, *(one.clock for one in given[: number + 1] if one.clock)]
    before = sum(len(_messages(batch)) for batch in given[:number])
    try:
        path, content = _table(test).batch(
            number + 1, before, _messages(given[number]), moment(clocks[-1])
        )
    except ValueError as error:
        raise ConfigError(
            "POLYNYA-TEST-002",
            f"the batch cannot land: {error}",
            where=test.where("given", number),
            state="the test was not run; the project's own tables are never touched",
            fix="give the header columns of the source, with values of their types",
        ) from error
    return {f"{test.task.landing.path}/{path}": content}


def _table(test: LoadedTest) -> ByHand:
    """The landed table that the dataset reads; where a glob names several, one of them."""
    dataset, stream = test.dataset, test.stream
    glob = dataset.path or rules_of(test.task.landing.format).path.format(name=dataset.name)
    table = "".join(_letters(glob.rpartition("/")[0])) or dataset.name
    if stream is None:
        return ByHand(test.task.name, table)
    source: StreamSource = next(
        one for one in get_args(StreamSource) if one in stream.source.chosen
    )
    return ByHand(stream.name, table, source, stream.content)


def _letters(glob: str) -> Iterator[str]:
    return (letter for letter in glob if letter not in "*?[]")


def _messages(batch: Batch) -> Sequence[Message]:
    if batch.lines is not None:
        return [Message(line.encode(), {}) for line in batch.lines.splitlines()]
    found = []
    for event in batch.events or ():
        headers = {name: value for name, value in event.items() if name in STREAM_HEADER_NAMES}
        record = {name: value for name, value in event.items() if name not in headers}
        found.append(Message(json.dumps(record, ensure_ascii=False).encode(), headers))
    return found
