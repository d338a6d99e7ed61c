"""What reading a capture needs to know of the tables of a task."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from polynya.formats.debezium.flat import DEFAULT_PREFIX, Flattening
from polynya.formats.debezium.scope import DebeziumScope, TableSettings
from polynya.lake.table.dataset import DatasetTable
from polynya.model.config.delivery import Delivery
from polynya.model.config.evolution import Policy, SchemaEvolution
from polynya.model.config.settings import Dataset
from polynya.model.config.sources import is_declared
from polynya.model.config.task import StorageTask, resolved
from polynya.model.errors import TaskStoppedError


@dataclass(frozen=True, slots=True)
class NewSources:
    """Source tables that appeared after the first run, and the policy for them."""

    policy: Policy
    names: frozenset[str]

    @property
    def ignored(self) -> frozenset[str]:
        """Those that are left out."""
        return self.names if self.policy == "ignore" else frozenset()

    @property
    def suspended(self) -> frozenset[str]:
        """Those that wait for a decision."""
        return self.names if self.policy == "suspend" else frozenset()


def scope_of(task: StorageTask) -> DebeziumScope:
    """The tables of a task and their settings, by source table or by name."""
    by_source, by_name = {}, {}
    for dataset in task.datasets:
        settings = TableSettings.of(resolved(task, dataset))
        if dataset.source is not None:
            by_source[dataset.source] = settings
        else:
            by_name[dataset.name] = settings
    default = TableSettings.of(resolved(task, Dataset(name="discovered")))
    return DebeziumScope(
        include=task.include,
        exclude=task.exclude,
        tables=by_source,
        names=by_name,
        default=default,
        flattening=_flattening(task.landing),
    )


def _flattening(landing: Delivery) -> Flattening | None:
    if not landing.flattened:
        return None
    prefix = landing.add_fields_prefix
    return Flattening(DEFAULT_PREFIX if prefix is None else prefix, landing.add_fields)


def as_it_is(scope: DebeziumScope, targets: Mapping[str, DatasetTable]) -> DebeziumScope:
    """The scope with what was accepted when datasets were resumed, and with tables' newer names."""
    states = {source: target.state.copy for source, target in targets.items()}
    changed = {
        source: TableSettings.of(targets[source].reading)
        for source, state in states.items()
        if state.decisions.accepted
    }
    # What has become a dataset of its own is no other's new name any more.
    called = {
        state.membership.called: source
        for source, state in states.items()
        if state.membership.called and state.membership.called not in states
    }
    return replace(scope, tables={**scope.tables, **changed}, called=called)


def policy_of_new(task: StorageTask, known: Collection[str], sources: Iterable[str]) -> NewSources:
    """What to do with source tables that were not there before.

    The tables of the first run, and those that the task declares, are what was asked for.

    Raises:
        TaskStoppedError: there is a new one, and the policy is `stop`.
    """
    policies = task.defaults.schema_evolution or SchemaEvolution()
    policy = policies.policy("new_dataset")
    new = sorted(
        source for source in set(sources) - set(known) if known and not is_declared(task, source)
    )
    if new and policy == "stop":
        raise TaskStoppedError(
            "POLYNYA-LAKE-018",
            f"there is a new source table {new[0]}, and the policy for that is `stop`",
            where=f"task {task.name}",
            state="nothing of this batch was copied; its files stay where they are",
            fix="declare the table, leave it out with `exclude`, or change "
            "`defaults.schema_evolution.new_dataset`",
        )
    return NewSources(policy, frozenset(new))
