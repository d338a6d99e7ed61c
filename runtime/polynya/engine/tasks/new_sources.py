"""Source tables that were not there before, and what the policy says of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from polynya.model.config.evolution import Policy, SchemaEvolution
from polynya.model.config.sources import is_declared
from polynya.model.config.task import StorageTask
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
