"""Column names in the keys of events, compared with the keys of the table (`change_key`).

A table keeps the keys that it was created with. Events whose keys name other columns would merge
several records into one, or split one record into several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from polynya.model.config.evolution import Policy, SchemaChange

Names = tuple[str, ...]


@dataclass(slots=True)
class KeyNames:
    """The keys of one table in the course of a read.

    Attributes:
        configured: keys of the settings; empty: the first event says them.
        keys: of the table, in its order.
        known: the names that keys of events have had, each in the order in which it came first.
        policy: for keys with other names.
        change: says that there were some.
    """

    configured: Names
    keys: Names
    known: list[Names] = field(default_factory=list)
    policy: Policy = "suspend"
    change: SchemaChange | None = None
    _last: Names | None = None

    @classmethod
    def of(
        cls, configured: Sequence[str], keys: Sequence[str], known: Sequence[Names], policy: Policy
    ) -> KeyNames:
        """Those that a table knows; tables of older versions know their keys only."""
        names = [tuple(entry) for entry in known]
        if not names and keys and not configured:
            names = [tuple(keys)]
        return cls(tuple(configured), tuple(configured or keys), names, _without_apply(policy))

    def copy(self) -> KeyNames:
        """The same, for when what follows has to be forgotten."""
        return replace(self, known=list(self.known))

    def met(self, names: Names) -> None:
        """Take the names in the key of an event, none where it has no key."""
        if names == self._last:
            return
        self._last = names
        if not self.known and not self.configured:
            self.keys = names
        if self._is_known(names):
            return
        if self.known:
            before, now = _said(self.known[0]), _said(names)
            self.change = self.change or SchemaChange("change_key", now, self.policy, before, now)
        self.known.append(names)

    def _is_known(self, names: Names) -> bool:
        wanted = set(names)
        if any(wanted == set(keys) for keys in self.known):
            return True
        # What is configured tells rows apart at least as well.
        return bool(self.known and self.configured) and wanted <= set(self.configured)


def _without_apply(policy: Policy) -> Policy:
    """No table can follow: its versions are matched by the keys that it has."""
    return "suspend" if policy == "apply" else policy


def key_columns(said: str | None) -> list[str]:
    """The names in `old` or `new` of a change of key."""
    return (said or "").removeprefix("(").removesuffix(")").split(", ")


def _said(names: Names) -> str:
    return f"({', '.join(names)})" if names else "no key"
