"""`polynya doctor --aws`: whether the quotas of an account have room for a stage.

The stage file is not here, so the needs are those of a stage with one cluster of one node of the
default types, and of the databases of the project (docs/deploy.md, "Quotas").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Final

from polynya.cli.checks import Check, guarded
from polynya.cli.doctor_aws import schemas_of
from polynya.model.config.aws import AwsAccess
from polynya.model.loader import LoadedProject
from polynya.store.aws.account import new_tables_open_to_iam
from polynya.store.aws.quotas import (
    CONCURRENT_FUNCTIONS,
    ELASTIC_IPS,
    GLUE_DATABASES,
    INTERFACE_ENDPOINTS,
    ON_DEMAND_VCPUS,
    SPOT_VCPUS,
    VPCS,
    AccountQuotas,
    Answer,
    Quota,
    Unanswered,
)
from polynya.store.clock import Retry

#: Somebody waits for the answer.
_PATIENCE: Final = Retry(deadline=2.0)


@dataclass(frozen=True, slots=True)
class QuotaNeed:
    """What a stage needs of one quota.

    Attributes:
        name: of the check.
        quota: where more is asked for.
        least: without so many, a stage cannot be deployed, or cannot work.
        why: what needs them.
        while_deployed: how many a cluster that always has a node needs during a deployment; equal
            to `least` where a deployment needs no more.
    """

    name: str
    quota: Quota
    least: int
    why: str
    while_deployed: int


def _need(
    name: str, quota: Quota, least: int, why: str, while_deployed: int | None = None
) -> QuotaNeed:
    return QuotaNeed(name, quota, least, why, least if while_deployed is None else while_deployed)


#: A node of the default types has 4 virtual processors; a deployment starts the new one first.
_SPOT: Final = _need("spot quota", SPOT_VCPUS, 4, "vCPU of a node of the default types", 8)
_ON_DEMAND: Final = _need("on-demand quota", ON_DEMAND_VCPUS, 4, "vCPU that stand in for Spot", 8)
_ADDRESSES: Final = _need("elastic ips", ELASTIC_IPS, 0, "a stage has none")
_NETWORKS: Final = _need("vpcs", VPCS, 1, "the network of the stage")
#: autoscaling, glue, logs, kinesis-streams, emr-serverless, secretsmanager, ssm, ssmmessages.
_ENDPOINTS: Final = _need(
    "vpc endpoints", INTERFACE_ENDPOINTS, 8, "interface endpoints of a stage that uses everything"
)
#: Three of the cluster, and two that take events.
_FUNCTIONS: Final = _need(
    "lambda concurrency", CONCURRENT_FUNCTIONS, 5, "functions at once of one cluster and of events"
)


def judged(need: QuotaNeed, allowed: Answer[int], used: Answer[int] | None = None) -> Check:
    """The line of one quota: what is needed, allowed and used.

    Args:
        need: of the stage.
        allowed: by the account.
        used: of it, by whomever; None where it is not asked.
    """
    if isinstance(allowed, Unanswered):
        detail = f"needed {need.least} ({need.why}); not checked: {allowed.reason}"
        return Check(need.name, "warn", detail, allowed.fix)
    said = f"needed {need.least} ({need.why}), allowed {allowed}"
    left = allowed
    if isinstance(used, Unanswered):
        said += f"; what is used was not checked: {used.reason}"
    elif used is not None:
        said += f", used {used}"
        left = allowed - used
    fix = f"ask for more in Service Quotas: {need.quota}"
    if allowed < need.least:
        return Check(need.name, "fail", f"{said}: too few for any stage", fix)
    if left < need.least:
        # A stage that is deployed already is among the users.
        detail = f"{said}: {max(left, 0)} left, too few unless this stage is what uses them"
        return Check(need.name, "warn", detail, fix)
    if allowed < need.while_deployed:
        more = f"a cluster that always has a node needs {need.while_deployed} while it is deployed"
        return Check(need.name, "warn", f"{said}; {more}", fix)
    return Check(need.name, "ok", said)


def account_checks(project: LoadedProject) -> Iterator[Check]:
    """One check for each quota that AWS tells, and one for Lake Formation."""
    target = project.target
    account = AccountQuotas(target.aws, _PATIENCE)

    running = cache(account.vcpus_in_use)

    def vcpus(need: QuotaNeed, which: int) -> Check:
        used = running()
        mine = used if isinstance(used, Unanswered) else used[which]
        return judged(need, account.allowed(need.quota), mine)

    yield guarded(_SPOT.name, partial(vcpus, _SPOT, 0))
    yield guarded(_ON_DEMAND.name, partial(vcpus, _ON_DEMAND, 1))
    for need in (_ADDRESSES, _ENDPOINTS):
        yield guarded(need.name, partial(_of_service_quotas, need, account))
    yield guarded(
        _NETWORKS.name,
        lambda: judged(_NETWORKS, account.allowed(VPCS), account.vpcs_in_use()),
    )
    if target.on_glue:
        wanted = frozenset(name.lower() for pair in schemas_of(project) for name in pair)
        yield guarded("glue databases", partial(_databases, wanted, target.catalog_id, account))
    yield guarded(_FUNCTIONS.name, partial(_functions, account))
    yield guarded("lake formation", partial(_lake_formation, target.aws))


def _of_service_quotas(need: QuotaNeed, account: AccountQuotas) -> Check:
    return judged(need, account.allowed(need.quota))


def _databases(wanted: frozenset[str], catalog_id: str | None, account: AccountQuotas) -> Check:
    """Two databases for each schema; those that exist already count as used."""
    name, existing = "glue databases", account.databases(catalog_id)
    allowed = account.allowed(GLUE_DATABASES)
    if isinstance(existing, Unanswered):
        need = _need(name, GLUE_DATABASES, len(wanted), "two for each schema of the project")
        return judged(need, allowed, existing)
    missing = len(wanted - existing)
    why = f"{len(wanted)} for the schemas of the project, {len(wanted) - missing} of them exist"
    return judged(_need(name, GLUE_DATABASES, missing, why), allowed, len(existing))


def _functions(account: AccountQuotas) -> Check:
    settings = account.functions()
    if isinstance(settings, Unanswered):
        return judged(_FUNCTIONS, settings)
    allowed, reserved = settings
    return judged(_FUNCTIONS, allowed, reserved)


def _lake_formation(access: AwsAccess) -> Check:
    if new_tables_open_to_iam(access, _PATIENCE):
        return Check("lake formation", "ok", "IAM decides who reads new tables")
    return Check(
        "lake formation",
        "warn",
        "new tables are closed to IAM: nobody may read the tables of nodes, not even the nodes",
        "grant the roles of the nodes, in Lake Formation, ALL on their databases and tables and "
        "DATA_LOCATION_ACCESS on the warehouse; or open the default to IAM_ALLOWED_PRINCIPALS",
    )
