"""The formats that a task may name. Those of Polynya are here from the start."""

from __future__ import annotations

from typing import Final

from polynya.model.formats.debezium import DEBEZIUM
from polynya.model.formats.dms import DMS
from polynya.model.formats.native import NATIVE
from polynya.model.formats.replicate import REPLICATE
from polynya.model.formats.rules import FormatRules
from polynya.model.formats.stream import STREAM

#: A new format of Polynya is one more entry; it is published in the JSON Schema.
BUILT_IN: Final = (*NATIVE, DEBEZIUM, DMS, REPLICATE, STREAM)

_rules: Final = {rules.name: rules for rules in BUILT_IN}


def rules_of(name: str) -> FormatRules:
    """The rules of a format. Raises KeyError for a name that no format has."""
    return _rules[name]


def is_known(name: object) -> bool:
    """Whether a format has this name."""
    return isinstance(name, str) and name in _rules


def all_rules() -> tuple[FormatRules, ...]:
    """The rules of all formats, those of Polynya first."""
    return tuple(_rules.values())


def add_rules(rules: FormatRules) -> None:
    """Let tasks name one more format. Raises ValueError when the name is taken."""
    if rules.name in _rules:
        raise ValueError(f"there is a format {rules.name!r} already")
    _rules[rules.name] = rules


def remove_rules(name: str) -> None:
    """Take back what `add_rules` added."""
    if rules_of(name) not in BUILT_IN:
        del _rules[name]
