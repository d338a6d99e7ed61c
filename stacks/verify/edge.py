"""What a verification needs of the world; AWS is one, a stand-in for it another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

from stacks.verify.steps import Fidelity

#: Outputs of each stack, by the last part of its path, such as `Storage`.
Outputs: TypeAlias = Mapping[str, Mapping[str, str]]


class Edge(Protocol):
    """An account in a region, or what stands in for one.

    `endpoint` is the address of the stand-in, None for AWS; `account` is the one that the stage
    names, None for any.
    """

    account: str | None
    region: str
    endpoint: str | None

    def fidelity(self, step: str, /) -> tuple[Fidelity, str]:
        """How real a step is here, and why if it is not."""

    def client(self, service: str) -> Any:
        """A boto3 client."""

    def publish(self) -> str:
        """Put what nodes fetch into the bucket of assets; returns what was done."""

    def up(self) -> Outputs:
        """Deploy the stage."""

    def down(self) -> None:
        """Destroy its stacks."""

    def landed(self, group: str) -> None:
        """Do what AWS does by itself when an object lands."""

    def rows(self, view: str) -> int | None:
        """How many rows a live view has; None when it is not there yet."""

    def interrupt(self, instance: str) -> None:
        """Let Spot take an instance back."""

    def forget_faults(self) -> None:
        """Remove what `interrupt` left, whether or not it got far."""
