"""Tables go to another catalog; their files stay where they are.

Each step can be taken again: which tables are where is read from the two catalogs, and files in the
warehouse say where the tables of a schema belong. From the first step on runs are refused, and a
table leaves its former catalog only after the new one names the same metadata file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from polynya.lake.warehouse.catalogs import CatalogEntry
from polynya.lake.warehouse.moved import FOLDER, identity, unfinished, whereabouts
from polynya.lake.warehouse.registers import Register
from polynya.model.config.target import ResolvedTarget
from polynya.model.error_catalogue.warehouse import (
    CATALOG_MOVE_IMPOSSIBLE,
    CATALOG_MOVE_OVERTAKEN,
    CATALOG_MOVED,
    CATALOG_NAMES_TAKEN,
)
from polynya.store.object_store import ObjectStore

_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """What a move would do.

    `register` are entries that the new catalog does not have yet, each with what it has under the
    name; `release` are all that leave the former one. `left` are views that the next run makes.
    """

    register: Sequence[tuple[CatalogEntry, CatalogEntry | None]]
    release: Sequence[CatalogEntry]
    left: Sequence[CatalogEntry] = ()
    is_resumed: bool = False


@dataclass(frozen=True, slots=True)
class CatalogMove:
    """A move between the catalogs of two targets.

    `tables` and `views` are the schemas of the project; `store` is the warehouse of both targets.
    `on_step` is told of each entry before something is done with it.
    """

    start: ResolvedTarget
    end: ResolvedTarget
    former: Register
    new: Register
    store: ObjectStore
    tables: frozenset[str]
    views: frozenset[str]
    on_step: Callable[[str, CatalogEntry], None] = lambda _step, _entry: None

    def plan(self) -> PlannedMove:
        """What is left to do. Writes nothing.

        Raises:
            OperationError: the targets do not go together (POLYNYA-LAKE-069), names are taken
                (068), the tables were moved elsewhere (066) or are being moved elsewhere (067).
        """
        self._refuse_impossible()
        resumed = self._is_begun()
        schemas = self.tables | self.views
        have = {(one.namespace, one.name): one for one in self.new.entries(schemas)}
        release = self.former.entries(schemas)
        moved = [one for one in release if self.new.keeps_views or not one.is_view]
        register = [
            (one, other)
            for one in moved
            if (other := have.get((one.namespace, one.name))) is None or not _same(one, other)
        ]
        # Views that this move has not made are those of others, whatever they say.
        taken = [
            one.full_name
            for one in moved
            if (other := have.get((one.namespace, one.name))) is not None
            and (one.is_view or not _same(one, other))
        ]
        if taken and not resumed:
            more = f" and {len(taken) - _NAMED} more" if len(taken) > _NAMED else ""
            raise CATALOG_NAMES_TAKEN(
                where=identity(self.end), target=self.end.name,
                tables=", ".join(taken[:_NAMED]) + more,
            )  # fmt: skip
        left = [one for one in release if one not in moved]
        return PlannedMove(register, release, left, is_resumed=resumed)

    def carry_out(self) -> PlannedMove:
        """Move everything; what was done, of a move that was interrupted only the rest.

        Raises as `plan`, and ConflictError when a run commits meanwhile (POLYNYA-LAKE-070).
        """
        first = self.plan()
        if not first.release and not first.is_resumed:
            return first
        self._mark(is_finished=False)
        # A run that began before the mark may have committed since the first look.
        plan = replace(self.plan(), is_resumed=first.is_resumed)
        for entry, former in plan.register:
            self.on_step("register", entry)
            self.new.put(entry, former)
        self._check(plan)
        # Tables last: until then a reader of the former catalog finds them.
        for entry in sorted(plan.release, key=lambda one: not one.is_view):
            self.on_step("release", entry)
            if not self.former.release(entry):
                where = identity(self.start)
                raise CATALOG_MOVE_OVERTAKEN(where=where, table=entry.full_name)
        self._mark(is_finished=True)
        return plan

    def _check(self, plan: PlannedMove) -> None:
        """Both catalogs have to name the same metadata files before one of them forgets them."""
        schemas = self.tables | self.views
        have = {(one.namespace, one.name): one for one in self.new.entries(schemas)}
        for one in plan.release:
            other = have.get((one.namespace, one.name))
            if one not in plan.left and (other is None or not _same(one, other)):
                raise CATALOG_MOVE_OVERTAKEN(where=identity(self.end), table=one.full_name)

    def _is_begun(self) -> bool:
        """Whether this move was interrupted."""
        begun = False
        for schema in sorted(self.tables):
            found = whereabouts(self.store, schema)
            if found is None:
                continue
            ours = (found.start, found.place) == (identity(self.start), identity(self.end))
            if not found.is_finished and not ours:
                raise unfinished(schema, found)
            if found.is_finished and found.place not in (
                identity(self.start), identity(self.end),
            ):  # fmt: skip
                where = f"target {self.start.name}"
                raise CATALOG_MOVED(where=where, schema=schema, place=found.place)
            begun = begun or (ours and not found.is_finished)
        return begun

    def _mark(self, *, is_finished: bool) -> None:
        text = json.dumps(
            {"from": identity(self.start), "to": identity(self.end), "finished": is_finished}
        )
        for schema in sorted(self.tables):
            self.store.put(f"{FOLDER}/{schema}.json", text.encode())

    def _refuse_impossible(self) -> None:
        reason = None
        if self.start.warehouse != self.end.warehouse:
            reason = f"the targets {self.start.name} and {self.end.name} have different warehouses"
        elif identity(self.start) == identity(self.end):
            reason = f"the targets {self.start.name} and {self.end.name} have the same catalog"
        elif self.end.on_glue or self.start.on_glue:
            names = sorted(one for one in self.tables if one != one.lower())
            names += [
                one.full_name
                for one in self.former.entries(self.tables)
                if not one.is_view and one.name != one.name.lower()
            ]
            if names:
                reason = f"Glue has no capitals, and {names[0]} has some"
        if reason is not None:
            raise CATALOG_MOVE_IMPOSSIBLE(where=f"target {self.end.name}", reason=reason)


def _same(one: CatalogEntry, other: CatalogEntry) -> bool:
    """Whether two catalogs mean the same; of a view each has a file of its own."""
    return one.is_view == other.is_view and (one.is_view or one.metadata == other.metadata)
