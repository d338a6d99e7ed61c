"""Bring the views of a dataset up to date: the session's or catalog's, and those of other engines.

Views for other engines are a copy that any later start can make: when they cannot be published it
is said, once, and the data goes on.
"""

from __future__ import annotations

from polynya.engine.work.context import EngineContext
from polynya.lake.fold.shape import Shape
from polynya.lake.read.views import publish_views
from polynya.lake.table.dataset import DatasetTable
from polynya.model.errors import PolynyaError
from polynya.observe.events import Event


def publish(context: EngineContext, target: DatasetTable, shape: Shape) -> None:
    """Make the views that changed. The first time in a process all of a session are new."""
    changed = publish_views(target, shape)
    if context.mirror is None or not changed:
        return
    subject = target.dataset.relations.current
    try:
        names = context.mirror(target.dataset, shape)
    except PolynyaError as error:
        key = f"views of {subject}"
        if context.waiting.get(key) != error.message:
            context.waiting[key] = error.message
            context.sink(Event("views.failed", subject, {"error": str(error), "code": error.code}))
        return
    if names:
        context.sink(Event("views.published", subject, {"views": names}))
