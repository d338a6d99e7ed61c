"""What an AWS account allows before anything is deployed: quotas, and who may read new tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from polynya.cli.operate.checks import Check, guarded
from polynya.model.config.aws import AwsAccess
from polynya.store.aws.account import (
    ON_DEMAND_QUOTA,
    SPOT_QUOTA,
    new_tables_open_to_iam,
    vcpu_quota,
)
from polynya.store.retry import Retry

_PATIENCE: Final = Retry(deadline=2.0)

#: A node of the default types, and the one that takes its place in a deploy.
_ONE_NODE, _TWO_NODES = 4, 8


def account_checks(access: AwsAccess) -> Iterator[Check]:
    """One check for each quota of nodes, and one for Lake Formation."""
    for name, code in (("spot quota", SPOT_QUOTA), ("on-demand quota", ON_DEMAND_QUOTA)):
        yield guarded(name, partial(_quota, name, code, access))
    yield guarded("lake formation", partial(_lake_formation, access))


def _quota(name: str, code: str, access: AwsAccess) -> Check:
    has = vcpu_quota(access, code, _PATIENCE)
    detail = f"{has} vCPU at once; a node of the default types has {_ONE_NODE}"
    fix = f"ask for more in Service Quotas, Amazon EC2, {code}"
    if has < _ONE_NODE:
        return Check(name, "fail", f"{detail}, so none can start", fix)
    if has < _TWO_NODES:
        detail += f"; a cluster that always has a node needs {_TWO_NODES} while it is deployed"
        return Check(name, "warn", detail, fix)
    return Check(name, "ok", detail)


def _lake_formation(access: AwsAccess) -> Check:
    if new_tables_open_to_iam(access, _PATIENCE):
        return Check("lake formation", "ok", "IAM decides who reads new tables")
    return Check(
        "lake formation",
        "warn",
        "new tables are closed to IAM: nodes make tables that nobody may read, themselves included",
        "grant the roles of the nodes, in Lake Formation, ALL on their databases and tables and "
        "DATA_LOCATION_ACCESS on the warehouse; or open the default to IAM_ALLOWED_PRINCIPALS",
    )
