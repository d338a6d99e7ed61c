"""A plugin of dbt-duckdb that loads the live views of Polynya."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from dbt.adapters.duckdb.plugins import BasePlugin
from dbt.adapters.duckdb.utils import SourceConfig

import polynya


class Plugin(BasePlugin):
    """Reads a view at its newest commit. `config` of the profile: `project`, and `target`."""

    def initialize(self, plugin_config: dict[str, Any]) -> None:
        """Open the project."""
        self._lake = polynya.open(plugin_config.get("project", "."), plugin_config.get("target"))

    def load(self, source_config: SourceConfig) -> pa.Table:
        """The rows of the view that a source of `polynya dbt sources` names."""
        table = self._lake.table(source_config["dataset"])
        reads = {"current": table.current, "history": table.history, "changes": table.changes}
        return reads[source_config["view"]]().to_arrow()
