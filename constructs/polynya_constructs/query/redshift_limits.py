"""What Redshift Serverless can be, checked when it is written down. Pure: no aws_cdk here."""

from __future__ import annotations

from typing import Final

LEAST_ZONES: Final = 3
"""Zones in which it wants subnets (Redshift Management Guide, "Considerations when using Amazon
Redshift Serverless")."""

_LEAST, _MOST, _STEP = 8, 512, 8  # Redshift processing units


def check_capacity(base_capacity: int, max_capacity: int) -> None:
    """Refuse capacities that there are not.

    Raises:
        ValueError: for one that is not 8 to 512 in steps of 8, or a maximum below the base.
    """
    for what, units in (("base_capacity", base_capacity), ("max_capacity", max_capacity)):
        if units % _STEP or not _LEAST <= units <= _MOST:
            raise ValueError(f"{what} is {units}; it is {_LEAST} to {_MOST} in steps of {_STEP}")
    if max_capacity < base_capacity:
        raise ValueError(f"max_capacity {max_capacity} is below base_capacity {base_capacity}")
