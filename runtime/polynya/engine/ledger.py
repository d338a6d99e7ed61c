"""The ledger: the position of a task that finds its tables in the data.

Each dataset's table remembers how far it read each file. The ledger remembers which tables there
are, and holds everything that belongs to no dataset. Where one file feeds many datasets (Debezium),
it also remembers which files are done for all of them. It is an internal table without data
columns, so its commits are fenced and its quarantine is read like any other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.derived import ForeignTask
from polynya.model.config.settings import Dataset
from polynya.model.config.sources import named_datasets
from polynya.model.config.task import StorageTask, resolved
from polynya.model.formats import rules_of

if TYPE_CHECKING:
    from polynya.lake.spark.api import SparkSession

LEDGER_SUFFIX = "__landing"


def datasets_of(spark: SparkSession, task: StorageTask) -> tuple[list[ResolvedDataset], bool]:
    """The datasets of a task, and whether its first run may still find others."""
    if not rules_of(task.landing.format).finds_tables:
        return [resolved(task, dataset) for dataset in task.datasets], False
    # Start-up time: only a session needs what opens tables by Spark.
    from polynya.lake.spark.catalog import internal_path
    from polynya.lake.table.dataset import DatasetTable

    ledger = ledger_dataset(task)
    if not spark.catalog.tableExists(internal_path(spark, ledger)):
        return [], True
    members = DatasetTable.existing(spark, ledger).state.copy.membership.members
    return list(named_datasets(task, members).values()), True


def ledger_dataset(task: StorageTask) -> ResolvedDataset:
    """The pseudo dataset that the ledger of a task is stored under.

    A bad record that belongs to no dataset has none to suspend: it is quarantined, or ends the task
    where the defaults say so.
    """
    stops = task.defaults.on_bad_record == "stop"
    name = task.own_name if isinstance(task, ForeignTask) else task.name
    dataset = Dataset(
        name=f"{name}{LEDGER_SUFFIX}",
        mode="append_only",
        on_bad_record="stop" if stops else "quarantine",
    )
    # It has no rows; a record that belongs to no dataset may still have what a mask hides.
    withholds = any(rule.mask is not None for rule in task.rules)
    plain = task.model_copy(update={"rules": ()})
    return replace(resolved(plain, dataset), withholds=withholds)
