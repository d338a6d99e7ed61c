"""The steps that remove what the trial made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from stacks.verify.edge import Edge
from stacks.verify.leftovers import empty_buckets, forget_logs, left_over, stacks_of
from stacks.verify.run import Action, StepError

_TRIES: Final = 3


class TearDown:
    """Each step works whatever the trial got to; `remains` lists what is there after the last."""

    def __init__(self, edge: Edge) -> None:
        """Remove from `edge`."""
        self._edge = edge
        self.remains: tuple[str, ...] = ()

    def by_name(self) -> Mapping[str, Action]:
        """The action of each step."""
        steps: Sequence[Callable[[], str]] = (self.unfault, self.empty, self.destroy, self.left)
        return {step.__name__: step for step in steps}

    def unfault(self) -> str:
        """Remove what the fault injection needed."""
        self._edge.forget_faults()
        return "removed"

    def empty(self) -> str:
        """Delete every object version of the stage."""
        return f"{empty_buckets(self._edge.client)} object versions deleted"

    def destroy(self) -> str:
        """Destroy the stacks; once more when something was written after the buckets were emptied.

        By then the nodes are gone: stacks that use others are destroyed before them.
        """
        failed: StepError | None = None
        for _ in range(_TRIES):
            try:
                self._edge.down()
            except StepError as error:
                failed = error
            there = stacks_of(self._edge.client)
            if not there:
                return (
                    f"no stack is left; {forget_logs(self._edge.client)} logs of functions deleted"
                )
            empty_buckets(self._edge.client)
        raise StepError(f"still there: {', '.join(there)}") from failed

    def left(self) -> str:
        """Look for what is there all the same."""
        self.remains = left_over(self._edge.client)
        return f"{len(self.remains)} left" if self.remains else "nothing is left"
