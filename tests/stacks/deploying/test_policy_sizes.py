"""No policy is larger than AWS takes it, whatever is in the stage file; or synthesis says so."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from polynya_constructs.policy_sizes import MANAGED_POLICY, policy_sizes
from stacks.settings.loader import Deployment, load_deployment
from stacks.settings.stage import StageConfig
from tests.absent import absent
from tests.stacks.house_rules import resources
from tests.stacks.synthesis import Assembly, synthesize_deployment

pytestmark = pytest.mark.synth


def schemas(first: int, last: int) -> list[str]:
    """Names as long as people choose them."""
    return [f"warehouse_{number:03}_prod" for number in range(first, last)]


def synthesized(directory: Path, **settings: Any) -> Assembly:
    if shutil.which("node") is None:
        absent("the CDK library needs Node.js, without which no gate of the stacks can be run")
    stage = StageConfig.model_validate(
        {"apiVersion": "polynya/v1", "kind": "stage", "name": "large", **settings}
    )
    deployment = Deployment((stage,), None)
    return synthesize_deployment(directory, deployment, packages=directory, removable="none")


def clusters(number: int, of: int) -> list[dict[str, Any]]:
    return [
        {"name": f"c{index}", "databases": schemas(index * of, (index + 1) * of)}
        for index in range(number)
    ]


def largest(assembly: Assembly) -> float:
    return max(
        each.size / each.limit
        for template in assembly.templates.values()
        for each in policy_sizes(template)
    )


def large_stage(folder: Path, clusters: list[dict[str, Any]]) -> Assembly:
    """A stage with 500 schemas."""
    return synthesized(
        folder,
        catalog={
            "databases": schemas(0, 100),
            "existing_databases": schemas(100, 500),
            "readers_see_all": True,
        },
        clusters=clusters,
        network_agent={},
    )


def test_every_policy_of_the_stages_fits(assembly: Assembly) -> None:
    assert largest(assembly) <= 1


def test_a_large_stage_has_policies_that_fit(tmp_path: Path) -> None:
    assembly = large_stage(tmp_path, clusters(2, of=25))

    assert 0.5 < largest(assembly) <= 1
    # Readers of everything need one policy for it, of which people are attached to few.
    assert len(resources(assembly.templates["large/Consumption"], "AWS::IAM::ManagedPolicy")) == 1


@pytest.mark.slow
def test_five_hundred_schemas_in_twenty_clusters_have_policies_that_fit(tmp_path: Path) -> None:
    assert 0.5 < largest(large_stage(tmp_path, clusters(20, of=25))) <= 1


def test_readers_of_many_databases_have_several_policies(tmp_path: Path) -> None:
    assembly = synthesized(tmp_path, catalog={"databases": schemas(0, 60)})

    template = assembly.templates["large/Consumption"]
    sizes = [each for each in policy_sizes(template) if each.limit == MANAGED_POLICY]
    assert len(sizes) > 1
    assert all(each.size <= each.limit for each in sizes)
    # Each database is in one of them.
    text = str(template)
    assert all(text.count(f"table/{name}/*") == 1 for name in schemas(0, 60))


def test_what_does_not_fit_is_refused_with_its_number(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError) as raised:
        synthesized(tmp_path, catalog={"existing_databases": schemas(0, 200)},
                    athena={"enabled": False}, clusters=clusters(1, of=200))  # fmt: skip

    assert "managed policies, and AWS takes 10" in str(raised.value)
    assert "fewer `databases` in this cluster" in str(raised.value)


def test_more_databases_than_a_stack_has_resources_are_refused(tmp_path: Path) -> None:
    names = ", ".join(schemas(0, 230))
    (tmp_path / "large.yml").write_text(
        f"apiVersion: polynya/v1\nkind: stage\nname: large\ncatalog: {{databases: [{names}]}}\n"
    )

    with pytest.raises(Exception, match="460 Glue databases with those of internal tables; one"):
        load_deployment(tmp_path, environment={})
