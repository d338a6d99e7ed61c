"""The gate that refuses policies which AWS would refuse in the middle of a deployment."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import aws_cdk as cdk
import jsii

from polynya_constructs.policy_sizes import policy_sizes

RULE: Final = "PLY-POLICY-SIZE"
_FIX: Final = (
    "fewer `databases` in this cluster, and more clusters; for readers of many databases, "
    "`catalog.readers_see_all: true` (docs/deploy.md, Many schemas)"
)


@jsii.implements(cdk.IPolicyValidationPluginBeta1)
class PolicyLimits:
    """A plug-in of the CDK's synthesis: no policy is larger than AWS takes it."""

    @property
    def name(self) -> str:
        """Name in the report."""
        return "Polynya"

    @property
    def version(self) -> str:
        """Version in the report."""
        return "1"

    @property
    def rule_ids(self) -> list[str]:
        """The only rule."""
        return [RULE]

    def validate(self, context: cdk.IPolicyValidationContextBeta1) -> Any:
        """Check the templates of a synthesis."""
        found = list(_violations(context.template_paths))
        return cdk.PolicyValidationPluginReportBeta1(success=not found, violations=found)


def _violations(templates: Iterable[str]) -> Iterator[cdk.PolicyViolationBeta1]:
    for path in templates:
        for each in policy_sizes(json.loads(Path(path).read_text("utf-8"))):
            if each.size > each.limit:
                resource = cdk.PolicyViolatingResourceBeta1(
                    resource_logical_id=each.resource, template_path=path, locations=["Properties"]
                )
                yield cdk.PolicyViolationBeta1(
                    rule_name=RULE,
                    description=f"{each.resource} has {each.size} {each.what}, and AWS takes "
                    f"{each.limit}",
                    fix=_FIX,
                    violating_resources=[resource],
                )
