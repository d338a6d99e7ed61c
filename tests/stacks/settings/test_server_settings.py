"""`server` of a stage file: what it adds to a stage, and what it cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from polynya_constructs.cluster.instance_types import Architecture
from stacks.settings.checks import stage_problems
from stacks.settings.quotas import need
from stacks.settings.server_checks import served_cluster, unreached_login
from stacks.settings.stage import StageConfig

CERTIFICATE = (
    "arn:aws:acm:eu-central-1:123456789012:certificate/1a2b3c4d-0000-4000-8000-0000000000aa"
)
BALANCED = {"certificate_arn": CERTIFICATE, "networks": ["10.0.0.0/8"]}


def stage(**settings: Any) -> StageConfig:
    head = {"apiVersion": "polynya/v1", "kind": "stage", "name": "dev"}
    return StageConfig.model_validate({**head, **settings})


def problems(**settings: Any) -> list[tuple[str, str]]:
    """Place and message of each problem of a stage."""
    return [
        (".".join(map(str, problem.path)), str(problem.error))
        for problem in stage_problems(stage(**settings), "dev")
    ]


@pytest.mark.parametrize(
    ("settings", "place", "said"),
    [
        ({"server": {"node": "network_agent"}}, "server.node", "no network agent"),
        ({"server": {"node": "network_agent"}, "network_agent": {"boot": "tests/stacks/boot.sh"}},
         "server.node", "script of yours"),
        ({"server": {"node": "network_agent", "spot": False}, "network_agent": {}},
         "server.spot", "means nothing"),
        ({"server": {"node": "network_agent", "tables": True}, "network_agent": {}},
         "server.tables", "t4g.small is smaller"),
        ({"server": {"instance_type": "t4g.tiny"}}, "server.instance_type", "did you mean"),
        ({"server": {"tables": True}}, "server.instance_type", "t4g.micro is smaller"),
        ({"server": {"cluster": "main"}}, "server.cluster", "no cluster `main`"),
        ({"server": {"cluster": "main"}, "clusters": [{"name": "main", "project": "other"}]},
         "server.cluster", "another project"),
        ({"server": {}, "clusters": [{"name": "a"}, {"name": "b"}]}, "server", "a, b share"),
        ({"server": {"load_balancer": BALANCED}, "region": "eu-west-1"},
         "server.load_balancer.certificate_arn", "the stage in eu-west-1"),
        ({"server": {}, "network": {"interface_endpoints": ["logs"]}},
         "network.interface_endpoints", "ssm, ssmmessages"),
        ({"clusters": [{"name": "server"}]}, "clusters.0.name", "name of the server"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_named_with_its_place(
    settings: dict[str, Any], place: str, said: str
) -> None:
    found = problems(**settings)

    assert [one for one in found if one[0] == place and said in one[1]], found


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ({"load_balancer": {"networks": ["10.0.0.0/8"]}}, "certificate_arn"),
        ({"load_balancer": {"certificate_arn": CERTIFICATE, "networks": []}}, "at least 1"),
        ({"load_balancer": {**BALANCED, "networks": ["0.0.0.0/0"]}}, "is not private"),
        ({"load_balancer": {**BALANCED, "certificate_arn": "arn:aws:acm:x"}}, "a certificate"),
        ({"port": 443}, "1024"),
        ({"node": "elsewhere"}, "network_agent"),
        ({"target": "a b"}, "target"),
    ],
)
def test_a_wrong_value_is_refused(server: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        stage(server=server)


def test_a_stage_with_a_server_has_what_the_server_needs() -> None:
    plain, served = stage(stream={"enabled": False}), stage(stream={"enabled": False}, server={})

    assert problems(server={}, clusters=[{"name": "main"}]) == []
    assert set(served.endpoints) - set(plain.endpoints) == {"ssm", "ssmmessages"}
    assert set(stage(server={"iam_identities": True, "secrets": ["oidc"]}).endpoints) >= {
        "sts", "secretsmanager",
    }  # fmt: skip
    assert served.package_architectures == (Architecture.ARM64,)
    assert (need(served).spot, need(served).on_demand) == (2, 0)
    assert need(stage(server={"spot": False})).on_demand == 2
    on_agent = stage(server={"node": "network_agent"}, network_agent={})
    assert need(on_agent) == need(stage(network_agent={}))


def test_the_cluster_of_a_server_is_the_one_with_its_project() -> None:
    two = [{"name": "a", "databases": []}, {"name": "b", "project": "web", "databases": []}]
    for server, name in (
        ({}, "a"),
        ({"project": "web"}, "b"),
        ({"project": "web", "cluster": "b"}, "b"),
        ({"project": "none"}, None),
    ):
        found = stage(server=server, clusters=two)
        assert found.server is not None
        cluster = served_cluster(found, found.server)
        assert (cluster and cluster.name) == name


def test_a_login_that_a_closed_network_does_not_reach_is_told() -> None:
    closed = stage(server={"load_balancer": BALANCED})

    assert "oidc" in str(unreached_login(closed))
    opened = {"outbound": "internet"}
    assert unreached_login(stage(server={"load_balancer": BALANCED}, network=opened)) is None
    assert unreached_login(stage(server={})) is None
