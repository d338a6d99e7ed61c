"""Readers and mirrors in a stage file: whom and what cannot be is said with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from polynya.model.errors import ConfigErrors
from stacks.settings.cluster_checks import unreached_mirrors
from stacks.settings.loader import load_deployment
from stacks.settings.stage import StageConfig
from tests.stacks.synthesis import READER, WORKGROUP

HEAD = "apiVersion: polynya/v1\nkind: stage\nname: dev\nregion: eu-central-1\n"
SHOP = "catalog: {databases: [shop]}\n"
ACCOUNT = "arn:aws:iam::210987654321"
USER = f"{ACCOUNT}:user/abcd"
OUTSIDE = "consumption: {snowflake: {volume: {"
GOVERNED = "consumption: {lake_formation: {"
MIRRORS = "clusters: [{name: a, mirrors: {"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("consumption: {snowflake: {}}", "snowflake: `snowflake` finds no database to read"),
        (
            SHOP + "consumption: {databricks: {databases: [shpo]}}",
            "databricks.databases[0]: the stage has no database `shpo`",
        ),
        (
            SHOP + OUTSIDE + f"user_arn: '{USER}', external_id: '0000'}}}}}}",
            "volume.external_id: `0000` is not an external id: 8 to 1224",
        ),
        (
            SHOP + OUTSIDE + f"user_arn: '{USER}', external_id: 'ACME SFCRole'}}}}}}",
            "volume.external_id: `ACME SFCRole` is not an external id",
        ),
        (
            SHOP + OUTSIDE + "user_arn: '*', external_id: 'ACME_SFCRole'}}}",
            "volume.user_arn: `*` is not the ARN of an IAM user or role",
        ),
        (
            SHOP + OUTSIDE + f"user_arn: '{ACCOUNT}:root', external_id: 'ACME_R=2'}}}}}}",
            "volume.user_arn: `arn:aws:iam::210987654321:root` is not the ARN of an IAM user",
        ),
        (
            SHOP + OUTSIDE + f"user_arn: '{ACCOUNT}:user/*', external_id: 'ACME_R=2'}}}}}}",
            "volume.user_arn: `arn:aws:iam::210987654321:user/*` is not the ARN of an IAM user",
        ),
        (SHOP + OUTSIDE + f"user_arn: '{USER}'}}}}}}", "volume: missing key `external_id`; add"),
        (
            SHOP + "consumption: {databricks: {external_id: '0000'}}",
            "databricks.external_id: `0000` is not the id of a Databricks account",
        ),
        (
            SHOP + "storage: {warehouse: {existing: {name: acme.lake}}}\n"
            "consumption: {snowflake: {}}",
            "snowflake: `snowflake` reads no bucket with a dot in its name, such as acme.lake",
        ),
        (
            SHOP + GOVERNED + f"grants: [{{reader: '{READER}'}}]}}}}",
            "grants[0]: name either `database` or `tags`",
        ),
        (
            SHOP + GOVERNED + f"grants: [{{reader: '{READER}', database: shop, rows: a=1}}]}}}}",
            "grants[0]: `columns` and `rows` are those of a `table`; name it",
        ),
        (
            SHOP + GOVERNED + f"grants: [{{reader: '{READER}', database: sales}}]}}}}",
            "grants[0].database: the stage has no database `sales`",
        ),
        (
            SHOP + GOVERNED + "grants: [{reader: '*', database: shop}]}}",
            "grants[0].reader: `*` is not the ARN of an IAM user or role",
        ),
        (
            SHOP + GOVERNED + f"grants: [{{reader: '{READER}', tags: {{domain: [hr]}}}}]}}}}",
            "grants[0].tags.domain: no database gets tag `domain` with value `hr`",
        ),
        (
            SHOP + GOVERNED + "tags: {domain: {hr: [shop], it: [shop]}}}}",
            "tags.domain.it[0]: `shop` gets tag `domain` twice; it can have one value of it",
        ),
        (
            (f"{SHOP}{GOVERNED}readers: ['{READER}'], "
            f"grants: [{{reader: '{READER}', database: shop}}]}}}}"),
            "grants[0].reader: this reader is among `readers`, who read every database",
        ),
        (MIRRORS + "}}]", "mirrors: `mirrors` names nothing to use"),
        (MIRRORS + "secrets: [a, a]}}]", "mirrors.secrets[1]: `a` is named twice"),
        (MIRRORS + "redshift: [{}]}}]", "redshift[0]: name either `workgroup_arn` or `cluster`"),
        (
            MIRRORS + "redshift: [{cluster: a}]}}]",
            "redshift[0]: `cluster` and `database` belong together",
        ),
        (
            MIRRORS + "redshift: [{workgroup_arn: '*'}]}}]",
            "redshift[0].workgroup_arn: `*` is not the ARN of a workgroup",
        ),
        (
            f"account: '999999999999'\n{MIRRORS}redshift: [{{workgroup_arn: '{WORKGROUP}'}}]}}}}]",
            "workgroup_arn: the workgroup is in account 123456789012, the nodes are in 9999999999",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "dev.yml").write_text(f"{HEAD}{text}\n")

    with pytest.raises(ConfigErrors) as raised:
        load_deployment(tmp_path, environment={})

    (only,) = str(raised.value).splitlines()
    assert said in only


def test_secrets_of_mirrors_are_of_no_use_in_a_closed_network() -> None:
    def said(mirrors: object, **network: object) -> str | None:
        cluster = {"name": "a", "mirrors": mirrors}
        head = {"apiVersion": "polynya/v1", "kind": "stage", "name": "dev"}
        stage = StageConfig.model_validate({**head, "clusters": [cluster], "network": network})
        return unreached_mirrors(stage, stage.clusters[0])

    secrets = {"secrets": ["snowflake/analytics"]}
    assert "fix: set `network.outbound: internet`" in str(said(secrets))
    assert said(secrets, outbound="internet") is None
    assert said({"redshift": [{"workgroup_arn": WORKGROUP}]}) is None


def test_what_mirrors_call_has_an_endpoint() -> None:
    mirrors = {"secrets": ["a"], "redshift": [{"cluster": "reports", "database": "dev"}]}
    head = {"apiVersion": "polynya/v1", "kind": "stage", "name": "dev"}
    with_mirrors = StageConfig.model_validate(
        {**head, "clusters": [{"name": "a", "mirrors": mirrors}]}
    )
    without = StageConfig.model_validate({**head, "clusters": [{"name": "a"}]})

    added = {*with_mirrors.endpoints} - {*without.endpoints}
    assert added == {"redshift-data", "secretsmanager"}


def test_what_notifications_call_has_an_endpoint() -> None:
    told = {"topics": ["arn:aws:sns:eu-central-1:123456789012:ops"], "secrets": ["a"]}
    head = {"apiVersion": "polynya/v1", "kind": "stage", "name": "dev"}
    one = StageConfig.model_validate({**head, "clusters": [{"name": "a", "notifications": told}]})
    without = StageConfig.model_validate({**head, "clusters": [{"name": "a"}]})

    assert {*one.endpoints} - {*without.endpoints} == {"sns", "secretsmanager"}
