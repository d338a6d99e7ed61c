"""Instance types: whether there is one of that name, and which processors it has. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from enum import StrEnum
from functools import cache
from typing import Final

import botocore.session


class Architecture(StrEnum):
    """The processors of a node, as machine images name them."""

    ARM64 = "arm64"
    X86_64 = "x86_64"


# 4 or 8 cores with 4 to 8 GiB for each: a merge is as much memory as processor. Several families
# of several generations are several Spot pools, which is what Spot nodes live from.
DEFAULT_INSTANCE_TYPES: Final = {
    Architecture.ARM64: (
        "m7g.xlarge",
        "m6g.xlarge",
        "m8g.xlarge",
        "r7g.xlarge",
        "r6g.xlarge",
        "m7gd.xlarge",
    ),
    Architecture.X86_64: (
        "m7i.xlarge",
        "m6i.xlarge",
        "m7a.xlarge",
        "m6a.xlarge",
        "r6i.xlarge",
        "m5.xlarge",
    ),
}

# Graviton families carry a g behind their generation (m7g, c7gn, im4gn, g5g); a1 is the first.
_GRAVITON: Final = re.compile(r"a1|[a-z]+\d+g[a-z]*")


def check_instance_types(types: Sequence[str], architecture: Architecture) -> None:
    """Refuse what EC2 would refuse only at the first launch.

    Raises:
        ValueError: for no type, a type twice, a type that there is not, or one of the other
            architecture.
    """
    if not types:
        raise ValueError("instance_types is empty; name at least one")
    for name in types:
        if name not in known_instance_types():
            close = difflib.get_close_matches(name, sorted(known_instance_types()), n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ValueError(f"there is no instance type {name!r}{hint}")
        if architecture_of(name) is not architecture:
            raise ValueError(
                f"instance type {name} is {architecture_of(name)}, the cluster {architecture}"
            )
        if types.count(name) > 1:
            raise ValueError(f"instance type {name} is named twice")


def architecture_of(name: str) -> Architecture:
    """The processors of a type, by its family."""
    family = name.partition(".")[0]
    return Architecture.ARM64 if _GRAVITON.fullmatch(family) else Architecture.X86_64


@cache
def known_instance_types() -> frozenset[str]:
    """All types of the installed AWS SDK; one that is newer needs a newer SDK."""
    model = botocore.session.get_session().get_service_model("ec2")
    return frozenset(model.shape_for("InstanceType").enum)
