"""From the name of a format to how it is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from polynya.formats.base import LandingFormat
from polynya.formats.debezium.format import DebeziumFormat
from polynya.formats.dms import DmsFormat
from polynya.formats.loads import LoadFormat
from polynya.formats.native.format import NativeFormat
from polynya.formats.native.loads import NativeLoads
from polynya.formats.replicate.format import ReplicateFormat
from polynya.formats.stream.format import StreamFormat
from polynya.model.config.task import StorageTask
from polynya.model.formats import (
    DEBEZIUM,
    DMS,
    NATIVE,
    REPLICATE,
    STREAM,
    FormatRules,
    add_rules,
    remove_rules,
)

#: Makes the landing zone of a task as its format reads it.
FormatOf: TypeAlias = Callable[[StorageTask], LandingFormat]

_formats: Final[dict[str, FormatOf]] = {
    **{rules.name: NativeFormat for rules in NATIVE},
    DEBEZIUM.name: DebeziumFormat,
    DMS.name: DmsFormat,
    REPLICATE.name: ReplicateFormat,
    STREAM.name: StreamFormat,
}
_BUILT_IN: Final = frozenset(_formats)
_loads: Final[dict[str, LoadFormat]] = {rules.name: NativeLoads() for rules in NATIVE}


def format_of(task: StorageTask) -> LandingFormat:
    """The landing zone of a task, as its format reads it."""
    return _formats[task.landing.format](task)


def loads_of(task: StorageTask) -> LoadFormat | None:
    """How large full loads of its format are read by tasks; None when they are read in batches."""
    return _loads.get(task.landing.format)


def register(rules: FormatRules, reads: FormatOf) -> None:
    """Let tasks name one more format. Raises ValueError when the name is taken."""
    add_rules(rules)
    _formats[rules.name] = reads


def unregister(name: str) -> None:
    """Take back what `register` added."""
    if name not in _BUILT_IN:
        remove_rules(name)
        del _formats[name]
