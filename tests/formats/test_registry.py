"""Every format stands where its name says, and everything that has rules can be read."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from polynya import formats
from polynya.formats.base import LandingFormat
from polynya.formats.native.format import NativeFormat
from polynya.formats.registry import format_of, register, unregister
from polynya.model.config.settings import Dataset
from polynya.model.config.task import StorageTask, resolved
from polynya.model.formats import BUILT_IN, FormatRules, is_known

FOLDER = Path(formats.__file__).parent


def signatures(kind: type) -> dict[str, str]:
    """The public methods of a class, with their parameters and results."""
    methods = inspect.getmembers(kind, inspect.isfunction)
    return {
        name: str(inspect.signature(method)) for name, method in methods if not name.startswith("_")
    }


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


def test_every_format_is_one_class_in_a_module_called_format_or_like_it() -> None:
    """AWS DMS fits in one module; every other format is a package with a module `format`."""
    classes = {type(format_of(a_task(rules.name))) for rules in BUILT_IN}
    packages = {path.parent.name for path in FOLDER.glob("*/format.py")}

    assert packages == {"debezium", "native", "replicate", "stream"}
    assert {(kind.__module__, kind.__name__) for kind in classes} == {
        ("polynya.formats.dms", "DmsFormat"),
        *((f"polynya.formats.{name}.format", f"{name.capitalize()}Format") for name in packages),
    }


@pytest.mark.parametrize("name", [rules.name for rules in BUILT_IN])
def test_every_format_has_the_methods_of_the_protocol_and_no_others(name: str) -> None:
    kind = type(format_of(a_task(name)))

    assert LandingFormat in kind.__mro__
    assert signatures(kind) == signatures(LandingFormat)
    assert {"unread", "read", "reread_groups", "reread", "full_load"} <= set(vars(kind))


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
