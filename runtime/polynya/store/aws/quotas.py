"""What an account allows of its quotas, and how much of them is used.

Every question answers a number, or why it cannot: a check of an account shows what it may see.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

from polynya.model.config.aws import AwsAccess
from polynya.model.error_catalogue.machine import AWS_NO_ANSWER
from polynya.store.aws.clients import (
    AWS_ERRORS,
    client,
    code_of,
    explained,
    is_denied,
    is_transient,
)
from polynya.store.clock import Retry


@dataclass(frozen=True, slots=True)
class Quota:
    """A quota of an account and region, by the codes of Service Quotas."""

    service: str
    code: str

    def __str__(self) -> str:
        """As the console of Service Quotas finds it."""
        return f"{self.service}, {self.code}"


#: Codes as Service Quotas lists them. Virtual processors are those of standard instance types.
SPOT_VCPUS: Final = Quota("ec2", "L-34B43A08")
ON_DEMAND_VCPUS: Final = Quota("ec2", "L-1216C47A")
ELASTIC_IPS: Final = Quota("ec2", "L-0263D0A3")
VPCS: Final = Quota("vpc", "L-F678F1CE")
INTERFACE_ENDPOINTS: Final = Quota("vpc", "L-29B6F2EB")
GLUE_DATABASES: Final = Quota("glue", "L-F953935E")
CONCURRENT_FUNCTIONS: Final = Quota("lambda", "L-B99A9384")

#: Families that count as standard: A, C, D, H, I, M, R, T, Z ("Amazon EC2 instance type quotas").
_STANDARD: Final = re.compile(r"(?:[acdhimrtz]|i[ms])\d")


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Why a question has no number: the right that is missing, or what AWS said.

    Attributes:
        reason: as the end of a sentence.
        fix: what helps; None when there is only waiting.
    """

    reason: str
    fix: str | None = None


T = TypeVar("T")
Answer: TypeAlias = T | Unanswered


class AccountQuotas:
    """Asks one account in one region.

    Credentials that are missing or wrong raise DependencyError (POLYNYA-AWS-001): then every
    question would fail alike.
    """

    def __init__(self, access: AwsAccess, retry: Retry) -> None:
        self._access = access
        self._retry = retry

    def allowed(self, quota: Quota) -> Answer[int]:
        """What Service Quotas says."""
        quotas = client("service-quotas", self._access)
        of = {"ServiceCode": quota.service, "QuotaCode": quota.code}

        def ask() -> int | None:
            try:
                return int(quotas.get_service_quota(**of)["Quota"]["Value"])
            except AWS_ERRORS as error:
                # A quota that was never changed may be known by its default only.
                if code_of(error) != "NoSuchResourceException":
                    raise
                return None

        found = self._asked(ask, "servicequotas:GetServiceQuota")
        if found is not None:
            return found
        return self._asked(
            lambda: int(quotas.get_aws_default_service_quota(**of)["Quota"]["Value"]),
            "servicequotas:GetAWSDefaultServiceQuota",
        )

    def vcpus_in_use(self) -> Answer[tuple[int, int]]:
        """Virtual processors of running standard instances: Spot, On-Demand."""
        return self._asked(
            lambda: _vcpus(self._pages("ec2", "describe_instances")), "ec2:DescribeInstances"
        )

    def vpcs_in_use(self) -> Answer[int]:
        """How many VPCs the region has."""
        return self._asked(
            lambda: sum(len(page["Vpcs"]) for page in self._pages("ec2", "describe_vpcs")),
            "ec2:DescribeVpcs",
        )

    def databases(self, catalog_id: str | None) -> Answer[frozenset[str]]:
        """The names of the databases that the caller sees in the Glue catalog."""
        of = {"CatalogId": catalog_id} if catalog_id else {}
        return self._asked(
            lambda: frozenset(
                database["Name"]
                for page in self._pages("glue", "get_databases", AttributesToGet=["NAME"], **of)
                for database in page["DatabaseList"]
            ),
            "glue:GetDatabases",
        )

    def functions(self) -> Answer[tuple[int, int]]:
        """How many Lambda functions may run at once, and how many of these others reserved.

        Lambda itself tells what is in force; a new account has less than Service Quotas says.
        """
        functions = client("lambda", self._access)

        def ask() -> tuple[int, int]:
            limit = functions.get_account_settings()["AccountLimit"]
            total = int(limit["ConcurrentExecutions"])
            return total, total - int(limit["UnreservedConcurrentExecutions"])

        return self._asked(ask, "lambda:GetAccountSettings")

    def _pages(self, service: str, operation: str, **asked: Any) -> Iterator[dict[str, Any]]:
        paginator = client(service, self._access).get_paginator(operation)
        yield from paginator.paginate(**asked)

    def _asked(self, question: Callable[[], T], right: str) -> Answer[T]:
        try:
            return self._retry.run(question, is_transient)
        except AWS_ERRORS as error:
            if is_denied(error):
                return Unanswered(f"no right for {right}", f"allow {right}")
            action = f"answer {right.partition(':')[2]}"
            said = explained(error, action=action, resource="the account", grant=right)
            if said.code != AWS_NO_ANSWER.code:
                raise said from error
            return Unanswered(said.message, said.fix)


def _vcpus(pages: Iterator[dict[str, Any]]) -> tuple[int, int]:
    """Spot and On-Demand; instances that start count, those that stop do not."""
    used = {True: 0, False: 0}
    for page in pages:
        for instance in (one for some in page["Reservations"] for one in some["Instances"]):
            counts = instance["State"]["Name"] in {"pending", "running"}
            if counts and _STANDARD.match(instance["InstanceType"]):
                cpu = instance["CpuOptions"]
                spot = instance.get("InstanceLifecycle") == "spot"
                used[spot] += cpu["CoreCount"] * cpu["ThreadsPerCore"]
    return used[True], used[False]
