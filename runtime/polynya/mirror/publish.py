"""Keep the views of a dataset in the Glue catalog as its table is."""

from __future__ import annotations

from polynya.lake.fold.shape import Shape
from polynya.mirror.glue_view import DEFINITION, MAX_TEXT, table_input
from polynya.mirror.trino import trino_views
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.target import ResolvedTarget
from polynya.model.errors import OperationError
from polynya.store.aws.glue import GlueViews


class GlueMirror:
    """The views of a target's datasets in its Glue catalog, for Athena and Trino."""

    def __init__(self, target: ResolvedTarget) -> None:
        self._glue = GlueViews(target.aws, target.catalog_id, DEFINITION)

    def publish(self, dataset: ResolvedDataset, shape: Shape) -> list[str]:
        """Make the views that are not there or have changed; return their names.

        Raises:
            OperationError: a name is taken (POLYNYA-VIEW-001), or a view is too long for Glue
                (POLYNYA-VIEW-003).
            PolynyaError: what `GlueViews.publish` raises.
        """
        database = dataset.relations.schema.lower()
        published = []
        for view in trino_views(dataset, shape):
            made = table_input(view, database)
            if len(made["ViewOriginalText"]) > MAX_TEXT:
                raise OperationError(
                    "POLYNYA-VIEW-003",
                    f"the view {database}.{view.name} is longer than Glue takes",
                    where=f"{database}.{view.name}",
                    state="the tables are right; other engines have no such view of them",
                    fix="leave columns out with `except_columns`",
                )
            if self._glue.publish(database, made):
                published.append(f"{database}.{view.name}")
        return published

    def stale(self, dataset: ResolvedDataset, shape: Shape) -> list[str]:
        """The views that are missing, or are not what `publish` would make. Writes nothing."""
        database = dataset.relations.schema.lower()
        names = []
        for view in trino_views(dataset, shape):
            wanted = table_input(view, database)["Parameters"][DEFINITION]
            stored = self._glue.find(database, view.name)
            if stored is None or stored.parameters.get(DEFINITION) != wanted:
                names.append(f"{database}.{view.name}")
        return names
