"""Which catalog has the tables of a warehouse, after they were moved or while they are."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from polynya.model.config.target import ResolvedTarget
from polynya.model.error_catalogue.warehouse import CATALOG_MOVE_UNFINISHED, CATALOG_MOVED
from polynya.model.errors import OperationError
from polynya.model.names import shown
from polynya.store.object_store import ObjectStore

#: Below the warehouse: for each schema of tables, which catalog has them.
FOLDER: Final = ".polynya/catalogs"
_MAX_FILE_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Which catalog has the tables of a schema, or is getting them."""

    start: str
    place: str
    is_finished: bool


def identity(target: ResolvedTarget) -> str:
    """The catalog of a target in a line, without a login."""
    if target.rest is not None:
        named = target.rest.warehouse or target.rest.prefix
        return f"rest {target.rest.uri}" + (f" {named}" if named else "")
    if target.on_glue:
        return "glue" + (f" {target.catalog_id}" if target.catalog_id else "")
    return target.catalog_uri.partition("?")[0]


def whereabouts(store: ObjectStore, schema: str) -> Whereabouts | None:
    """Where the tables of a schema belong; None where they were never moved."""
    try:
        data = store.read(f"{FOLDER}/{schema}.json", _MAX_FILE_BYTES).data
        found = json.loads(data)
        return Whereabouts(str(found["from"]), str(found["to"]), found["finished"] is True)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        # Whoever wrote that: nothing may be written before it is cleared up.
        return Whereabouts("?", f"what {FOLDER}/{schema}.json should say", is_finished=False)


def refuse_moved(store: ObjectStore, target: ResolvedTarget, schemas: Collection[str]) -> None:
    """Raise OperationError when another catalog has the tables of a schema.

    POLYNYA-LAKE-066, or POLYNYA-LAKE-067 while they are moved.
    """
    # Nodes may list everything below the warehouse, and read only the folders of their tables.
    moved = {info.path for info in store.list(FOLDER)}
    for schema in sorted(schemas):
        found = whereabouts(store, schema) if f"{FOLDER}/{schema}.json" in moved else None
        if found is None:
            continue
        if not found.is_finished:
            raise unfinished(schema, found)
        if found.place != identity(target):
            raise CATALOG_MOVED(where=f"target {target.name}", schema=schema, place=found.place)


def unfinished(schema: str, found: Whereabouts) -> OperationError:
    """The error of a move that was interrupted."""
    return CATALOG_MOVE_UNFINISHED(
        where=schema, schema=schema, start=found.start, place=shown(found.place)
    )
