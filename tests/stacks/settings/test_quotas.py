"""What stages may run at once, against the quotas of their account."""

from __future__ import annotations

from typing import Any

from polynya_constructs.cluster.instance_types import vcpus
from stacks.settings.quotas import Need, need, quota_warnings
from stacks.settings.stage import StageConfig


def stage(name: str = "dev", **settings: Any) -> StageConfig:
    head = {"apiVersion": "polynya/v1", "kind": "stage", "name": name}
    return StageConfig.model_validate({**head, **settings})


CHEAP = {"name": "main", "strategy": "low_cost"}
STEADY = {"name": "main", "strategy": "no_scaling"}


def test_the_size_of_a_type_tells_its_processors() -> None:
    assert [vcpus(f"m7g.{size}") for size in ("medium", "large", "xlarge", "4xlarge")] == [
        1, 2, 4, 16,
    ]  # fmt: skip


def test_a_group_that_may_be_empty_fits_into_a_new_account() -> None:
    assert need(stage(clusters=[CHEAP])) == Need(spot=4, on_demand=4)
    assert list(quota_warnings([stage(clusters=[CHEAP])])) == []


def test_a_refresh_that_starts_the_new_node_first_does_not() -> None:
    steady = stage("prod", clusters=[STEADY])

    assert need(steady).spot == 8
    said = [text for _, text in quota_warnings([steady])]
    assert len(said) == 2
    assert "may need 8 vCPU at once of the quota `All Standard Spot" in said[0]
    enough = {"spot_vcpus": 8, "on_demand_vcpus": 8}
    assert list(quota_warnings([steady.model_copy(update={"quotas": enough_of(enough)})])) == []


def enough_of(numbers: dict[str, int]) -> Any:
    return stage(quotas=numbers).quotas


def test_stages_of_one_account_share_its_quota() -> None:
    two = [stage("one", clusters=[CHEAP]), stage("two", clusters=[CHEAP])]
    apart = [two[0], two[1].model_copy(update={"region": "eu-west-1"})]

    assert {short.name for short, _ in quota_warnings(two)} == {"one", "two"}
    assert list(quota_warnings(apart)) == []
