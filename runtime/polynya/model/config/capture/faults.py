"""What a capture does when something fails."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from polynya.model.config.fields import Duration, Frozen

TableFault: TypeAlias = Literal["suspend", "stop"]


class EnvironmentErrors(Frozen):
    """The database, the network or the landing zone does not answer: what may pass by itself."""

    retry: Annotated[int, Field(ge=0)] | Literal["forever"] = Field(
        default="forever",
        description="Number of consecutive retries, or `forever`. Default: `forever`.",
    )
    from_: Duration = Field(
        default=timedelta(seconds=5),
        alias="from",
        description="Pause before the first retry; each following pause is twice as long. "
        "Default: `5s`.",
    )
    to: Duration = Field(
        default=timedelta(minutes=30), description="The longest pause. Default: `30m`."
    )


class TableErrors(Frozen):
    """One table cannot be read, while others can."""

    retry: int = Field(default=3, ge=0, description="Number of retries.")
    then: TableFault = Field(
        default="suspend",
        description="`suspend` leaves the table out until an operator resumes it, and the others "
        "continue; `stop` ends the task. Default: `suspend`.",
    )


class Faults(Frozen):
    """Failures, and what follows from each."""

    environment: EnvironmentErrors = Field(
        default_factory=EnvironmentErrors,
        description="The database, the network or the landing zone does not answer.",
    )
    table: TableErrors = Field(default_factory=TableErrors, description="One table cannot be read.")


def pause_seconds(policy: EnvironmentErrors, failures: int) -> float | None:
    """Seconds to wait after so many failures in a row, at least one; None: not tried again."""
    if policy.retry != "forever" and failures > policy.retry:
        return None
    first, longest = policy.from_.total_seconds(), policy.to.total_seconds()
    # The exponent is bounded: a float ends somewhere, and a retry forever does not.
    return float(min(longest, first * 2.0 ** min(failures - 1, 60)))
