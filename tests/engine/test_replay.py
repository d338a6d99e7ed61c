"""What cannot be read again is said before anything is opened."""

from __future__ import annotations

from typing import cast

import pytest

from polynya.engine.commands.replay import replay
from polynya.engine.context import EngineContext
from polynya.engine.inventory import ProjectTable
from polynya.lake.spark.api import SparkSession
from polynya.model.config.task import StorageTask, resolved
from polynya.model.errors import OperationError
from polynya.testing.fakes import MemoryObjectStore


def test_records_of_full_extracts_are_not_replayed() -> None:
    task = StorageTask.model_validate(
        {
            "apiVersion": "polynya/v1",
            "kind": "storage",
            "name": "users",
            "schema": "shop",
            "landing": {"path": "in", "format": "csv"},
            "datasets": [{"name": "users", "keys": ["id"], "extracts": {}}],
        }
    )
    context = EngineContext(spark=cast("SparkSession", None), landing=MemoryObjectStore({}))

    with pytest.raises(OperationError) as refused:
        replay(context, ProjectTable(task, resolved(task, task.datasets[0]), None), None)

    assert refused.value.code == "POLYNYA-QUA-002"
