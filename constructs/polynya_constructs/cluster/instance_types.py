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

# Graviton families carry a g after their generation (m7g, c7gn, im4gn, g5g); a1 is the first.
_GRAVITON: Final = re.compile(r"a1|[a-z]+\d+g[a-z]*")


# Graphics, inference, training, video and FPGA: paid for what no node uses. mac is Apple.
_SPECIAL: Final = re.compile(r"(p|g|inf|trn|dl|vt|f)\d|gr\d|mac|u-|hpc")

_LEAST_GIB: Final = 8
"""Spark's heap, what it needs beside it, and the system."""


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


def check_node_types(types: Sequence[str], architecture: Architecture) -> None:
    """Refuse also what EC2 has and no node can be: the wrong kind, or too small for Spark.

    Raises:
        ValueError: as `check_instance_types`, and for these.
    """
    check_instance_types(types, architecture)
    for name in types:
        family, _, size = name.partition(".")
        if size.startswith("metal"):
            raise ValueError(f"instance type {name} is a whole machine, which takes long to start")
        if _SPECIAL.match(family):
            raise ValueError(f"instance type {name} has processors that nodes have no use for")
        if memory_gib(name) < _LEAST_GIB:
            raise ValueError(f"instance type {name} is too small: a node needs {_LEAST_GIB} GiB")


def vcpus(name: str) -> int:
    """Virtual processors of a type, by its size; what quotas count."""
    size = name.partition(".")[2]
    if multiple := re.match(r"(\d+)xlarge|metal-(\d+)xl", size):
        return 4 * int(multiple[1] or multiple[2])
    return {"xlarge": 4, "medium": 1, "metal": 96}.get(size, 2)


def memory_gib(name: str) -> float:
    """Memory of a type in GiB, at least: what its family gives for each virtual processor.

    The nano, micro and small sizes are those of burstable types.
    """
    family, _, size = name.partition(".")
    if (small := {"nano": 0.5, "micro": 1.0, "small": 2.0}.get(size)) is not None:
        return small
    if family.startswith("t"):
        return {"medium": 4.0, "large": 8.0, "xlarge": 16.0}.get(size, 32.0)
    a_processor = 8 if family[0] in "rxzui" else 2 if family[0] == "c" else 4
    return float(vcpus(name) * a_processor)


def architecture_of(name: str) -> Architecture:
    """The processors of a type, by its family."""
    family = name.partition(".")[0]
    return Architecture.ARM64 if _GRAVITON.fullmatch(family) else Architecture.X86_64


@cache
def known_instance_types() -> frozenset[str]:
    """All types of the installed AWS SDK; one that is newer needs a newer SDK."""
    model = botocore.session.get_session().get_service_model("ec2")
    return frozenset(model.shape_for("InstanceType").enum)
