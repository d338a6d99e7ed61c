"""The pages that the navigation of the console lists, in its order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from polynya.server.access.actions import Action


@dataclass(frozen=True, slots=True)
class Entry:
    """A page of the navigation: its path, its name, its icon, and the action that opens it."""

    path: str
    title: str
    icon: str
    action: Action

    def is_at(self, path: str) -> bool:
        """Whether this entry stands for a path: its own, or one below it."""
        return path == self.path or (self.path != "/console" and path.startswith(f"{self.path}/"))


ENTRIES: Final = (
    Entry("/console", "Overview", "house", Action.VIEW_PROJECT),
    Entry("/console/tasks", "Tasks", "layers", Action.VIEW_PROJECT),
    Entry("/console/datasets", "Datasets", "table-2", Action.VIEW_PROJECT),
    Entry("/console/captures", "Captures", "database", Action.VIEW_PROJECT),
    Entry("/console/streams", "Streams", "radio", Action.VIEW_PROJECT),
    Entry("/console/events", "Events", "scroll-text", Action.VIEW_OPERATIONS),
    Entry("/console/query", "Query", "terminal", Action.QUERY_DATA),
    Entry("/console/lineage", "Lineage", "git-branch", Action.VIEW_LINEAGE),
    Entry("/console/transforms", "Transforms", "workflow", Action.VIEW_PROJECT),
    Entry("/console/plans", "Plans", "git-compare", Action.VIEW_OPERATIONS),
    Entry("/console/documents", "Documents", "file-code-2", Action.VIEW_DOCUMENTS),
    Entry("/console/operations", "Operations", "play", Action.VIEW_OPERATIONS),
    Entry("/console/automations", "Automations", "calendar-clock", Action.VIEW_AUTOMATIONS),
    Entry("/console/notifications", "Notifications", "bell", Action.VIEW_NOTIFICATIONS),
    Entry("/console/clusters", "Clusters", "server", Action.VIEW_CLUSTER),
    Entry("/console/access", "Access", "users", Action.OWN_TOKENS),
)
