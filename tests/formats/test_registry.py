"""Every format stands where its name says, and everything that has rules can be read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from polynya.formats.native.format import NativeFormat
from polynya.formats.registry import format_of, register, unregister
from polynya.model.config.settings import Dataset
from polynya.model.config.task import StorageTask, resolved
from polynya.model.formats import BUILT_IN, FormatRules, is_known


def a_task(name: str) -> StorageTask:
    return StorageTask.model_validate(
        {
            "apiVersion": "polynya/v1",
            "kind": "storage",
            "name": "t",
            "schema": "s",
            "landing": {"path": "in", "format": name},
        }
    )


@pytest.mark.parametrize("name", [rules.name for rules in BUILT_IN])
def test_what_has_rules_can_be_read(name: str) -> None:
    task = a_task(name)

    found = format_of(task).unread([], {}, resolved(task, Dataset(name="t")))

    assert (found.files, found.changed) == ((), ())


def test_every_format_is_a_module_or_has_a_module_called_format() -> None:
    modules = {format_of(a_task(rules.name)).__module__ for rules in BUILT_IN}

    assert modules == {
        "polynya.formats.native.format",
        "polynya.formats.debezium.format",
        "polynya.formats.dms",
        "polynya.formats.replicate.format",
        "polynya.formats.stream.format",
    }


@pytest.fixture
def toy() -> Iterator[None]:
    register(FormatRules("toy"), NativeFormat)
    yield
    unregister("toy")


def test_one_more_is_known_until_it_is_taken_back(toy: None) -> None:
    assert isinstance(format_of(a_task("toy")), NativeFormat)

    unregister("toy")

    assert not is_known("toy")
    register(FormatRules("toy"), NativeFormat)


def test_a_name_is_taken_once(toy: None) -> None:
    with pytest.raises(ValueError, match="a format 'csv' already"):
        register(FormatRules("csv"), NativeFormat)


def test_those_of_polynya_stay() -> None:
    unregister("csv")

    assert isinstance(format_of(a_task("csv")), NativeFormat)
