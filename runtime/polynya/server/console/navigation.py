"""The pages that the navigation of the console lists, in its order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from polynya.server.access.actions import Action


@dataclass(frozen=True, slots=True)
class Entry:
    """A page of the navigation: its path, its name, its icon, and the action that opens it.

    `others` are paths of pages to which it leads, and that have no entry of their own.
    """

    path: str
    title: str
    icon: str
    action: Action
    others: tuple[str, ...] = ()

    def is_at(self, path: str) -> bool:
        """Whether this entry stands for a path: its own, one below it, or one that it leads to."""
        below = (self.path, *self.others) if self.path != "/console" else ()
        return path == self.path or any(f"{path}/".startswith(f"{one}/") for one in below)


#: Pages that are about a row, a step or a new file of what the entry lists.
_OF_DATASETS: Final = ("/console/record", "/console/why")
_OF_EVENTS: Final = ("/console/runs", "/console/errors")
_OF_TRANSFORMS: Final = ("/console/new-flow",)
_OF_DOCUMENTS: Final = ("/console/new-document",)


ENTRIES: Final = (
    Entry("/console", "Overview", "house", Action.VIEW_PROJECT),
    Entry("/console/tasks", "Tasks", "layers", Action.VIEW_PROJECT),
    Entry("/console/datasets", "Datasets", "table-2", Action.VIEW_PROJECT, _OF_DATASETS),
    Entry("/console/captures", "Captures", "database", Action.VIEW_PROJECT),
    Entry("/console/streams", "Streams", "radio", Action.VIEW_PROJECT),
    Entry("/console/events", "Events", "scroll-text", Action.VIEW_OPERATIONS, _OF_EVENTS),
    Entry("/console/query", "Query", "terminal", Action.QUERY_DATA),
    Entry("/console/lineage", "Lineage", "git-branch", Action.VIEW_LINEAGE),
    Entry(
        "/console/transforms", "Transforms", "workflow", Action.VIEW_PROJECT, ("/console/new-flow",)
    ),
    Entry("/console/plans", "Plans", "git-compare", Action.VIEW_OPERATIONS),
    Entry("/console/documents", "Documents", "file-code-2", Action.VIEW_DOCUMENTS, _OF_DOCUMENTS),
    Entry("/console/operations", "Operations", "play", Action.VIEW_OPERATIONS),
    Entry("/console/automations", "Automations", "calendar-clock", Action.VIEW_AUTOMATIONS),
    Entry("/console/notifications", "Notifications", "bell", Action.VIEW_NOTIFICATIONS),
    Entry("/console/clusters", "Clusters", "server", Action.VIEW_CLUSTER),
    Entry("/console/access", "Access", "users", Action.OWN_TOKENS),
)
