"""Pages of stage and pipeline files, from which the cloud stacks are made (STG)."""

from __future__ import annotations

from typing import Final

from polynya.model.errors.pages.page import ErrorPage

PAGES: Final = (
    ErrorPage(
        "POLYNYA-STG-001",
        "a stage that is not there, or not called so",
        "Each file in `config/` but `pipeline.yml` is a stage, and its `name` is the name of the "
        "file. The pipeline names stages that exist. Nothing was synthesized.",
    ),
    ErrorPage(
        "POLYNYA-STG-002",
        "settings of a stage contradict each other",
        "Settings for something new are given together with something that exists, a list has a "
        "member twice or too few, there is only one Availability Zone, or a key or stream is in "
        "another region than the stage. Nothing was synthesized.",
    ),
    ErrorPage(
        "POLYNYA-STG-003",
        "networks that overlap or do not fit",
        "The network of a stage overlaps that of another stage or a connected network, which no "
        "route could tell apart; its subnets do not fit into it; or they are too small for their "
        "endpoints and nodes. A VPC cannot be resized later: choose with room. Nothing was "
        "synthesized.",
    ),
    ErrorPage(
        "POLYNYA-STG-004",
        "the package of a cluster's nodes is not built",
        "Templates can be synthesized without it, for tests and a look; nothing can be deployed, "
        "because nodes would find nothing to start. `make deploy` and `make diff` build it first; "
        "`make package` builds it alone.",
    ),
    ErrorPage(
        "POLYNYA-STG-005",
        "streams that the nodes of a cluster could not read or land",
        "`streams` of a cluster names sources and no folder to land them in, topics of MSK and no "
        "brokers, a name twice, a key of another region than what it encrypts, or something to "
        "which the endpoints of a closed network do not lead. Nothing was synthesized.",
    ),
)
