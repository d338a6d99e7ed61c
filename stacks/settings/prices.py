"""Prices for the monthly figures: US dollars, us-east-1, one dated table.

The On-Demand price is twice that of m7g.large as a price survey of June 2026 quotes it
(factualminds.com, "Amazon EC2 On-Demand Pricing", 2026-06-17). The others are AWS's list prices
as they were known when this was written; look them up before relying on them. Spot has no list
price: 60 % off is an assumption, in the range that AWS's Spot advisor shows for such types.
"""

from __future__ import annotations

from typing import Final

AS_OF: Final = "2026-11-21"
HOURS_A_MONTH: Final = 730.0

NODE: Final = "m7g.xlarge"
ON_DEMAND_HOUR: Final = 2 * 0.0816
SPOT_DISCOUNT: Final = 0.6
GP3_GIB_MONTH: Final = 0.08
ALARM_MONTH: Final = 0.10
METRIC_MONTH: Final = 0.30
DASHBOARD_MONTH: Final = 3.00
ENDPOINT_ZONE_HOUR: Final = 0.01
SHARD_HOUR: Final = 0.015
PUBLIC_ADDRESS_HOUR: Final = 0.005
KEY_MONTH: Final = 1.00
SECRET_MONTH: Final = 0.40
T4G_SMALL_HOUR: Final = 0.0168
T4G_MICRO_HOUR: Final = 0.0084
LOAD_BALANCER_HOUR: Final = 0.0225
LOAD_BALANCER_UNIT_HOUR: Final = 0.008
ATHENA_TB: Final = 5.00
REDSHIFT_UNIT_HOUR: Final = 0.375
EMR_VCPU_HOUR: Final = 0.042094
EMR_GB_HOUR: Final = 0.004628
FIREHOSE_GB: Final = 0.029
QUICKSIGHT_AUTHOR_MONTH: Final = 24.00
S3_LIST_OR_WRITE_THOUSAND: Final = 0.005
S3_READ_THOUSAND: Final = 0.0004
LAMBDA_REQUEST: Final = 0.20 / 1_000_000
LAMBDA_ARM_GB_SECOND: Final = 0.0000133334
SQS_REQUEST: Final = 0.40 / 1_000_000
FAULT_ACTION_MINUTE: Final = 0.10


def node_hours(*, spot: float, on_demand: float, root_volume_gib: int) -> float:
    """The price of so many instance-hours, with their root volumes."""
    volume_hour = root_volume_gib * GP3_GIB_MONTH / HOURS_A_MONTH
    return (
        spot * ON_DEMAND_HOUR * (1 - SPOT_DISCOUNT)
        + on_demand * ON_DEMAND_HOUR
        + (spot + on_demand) * volume_hour
    )
