"""A mirror in a project: what is loaded, and what is refused with its place."""

from __future__ import annotations

import pytest

from polynya.model.errors import ConfigErrors
from polynya.model.loader import load_project
from tests.projects import USERS, write_project

MIRROR = """\
apiVersion: polynya/v1
kind: mirror
name: sales
from: users
target:
  snowflake: {connection: sf, database: LAKE, schema: SHOP, warehouse: XS,
              external_volume: VOL, catalog_integration: GLUE}
"""
ACCOUNT = """\
type: snowflake
account: ACME-ONE
user: polynya
private_key: "${file:/etc/polynya/secrets/snowflake.pem}"
"""


def project(folder, mirror=MIRROR, account=ACCOUNT):
    write_project(folder, users=USERS, sales=mirror)
    (folder / "connections").mkdir()
    (folder / "connections" / "sf.yml").write_text(account)
    return folder


def test_a_mirror_knows_its_account_and_the_task_that_it_shows(tmp_path):
    loaded = load_project(project(tmp_path))
    (mirror,) = loaded.mirrors
    assert mirror.source.name == "users"
    assert mirror.account.address == "https://ACME-ONE.snowflakecomputing.com"
    assert mirror in loaded.works
    assert loaded.unused == ()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("from: users", "from: user", "POLYNYA-CFG-060"),
        ("connection: sf", "connection: fs", "fs"),
        ("snowflake:", "redshift:", "warehouse"),
        ("snowflake:", "bigquery:", "bigquery"),
        ("target:", "target:\n  redshift: {connection: sf, database: d, schema: s}", "one target"),
        (", catalog_integration: GLUE", "", "catalog_integration"),
        ("from: users", "from: users\nrefresh: {after: apply, automatic: true}", "exclude each"),
        ("from: users", "from: users\nrefresh: {hold_snapshots: 2d}", "24 hours"),
    ],
)
def test_a_wrong_setting_is_refused_in_its_line(tmp_path, old, new, says):
    with pytest.raises(ConfigErrors) as caught:
        load_project(project(tmp_path, MIRROR.replace(old, new)))
    shown = " ".join(f"{one.code} {one} {one.fix}" for one in caught.value.errors)
    assert says in shown
    assert "tasks/sales.yml:" in shown


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('private_key: "${file:/etc/polynya/secrets/snowflake.pem}"\n', "", "POLYNYA-CFG-061"),
        ("user:", 'token: "${file:/etc/polynya/secrets/token}"\nuser:', "POLYNYA-CFG-061"),
        ("user:", "url: http://db.example.com\nuser:", "POLYNYA-CFG-052"),
        ('"${file:/etc/polynya/secrets/snowflake.pem}"', "secret", "POLYNYA-CFG-035"),
    ],
)
def test_an_account_without_one_safe_login_is_refused(tmp_path, old, new, code):
    with pytest.raises(ConfigErrors) as caught:
        load_project(project(tmp_path, account=ACCOUNT.replace(old, new)))
    assert code in {one.code for one in caught.value.errors}


REDSHIFT = """\
apiVersion: polynya/v1
kind: mirror
name: sales
from: users
target:
  redshift: {connection: sf, database: dev, schema: shop}
"""
DATABRICKS = """\
apiVersion: polynya/v1
kind: mirror
name: sales
from: users
target:
  databricks: {connection: sf, warehouse_id: 1a2b, catalog: main, schema: shop,
               foreign_catalog: glue}
"""
ENTRY = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:x"
WORKGROUP = "type: redshift\nworkgroup: lake\n"
WORKSPACE = "type: databricks\nurl: https://dbc.example.com\ntoken: ${file:/etc/polynya/token}\n"


@pytest.mark.parametrize(("mirror", "account"), [(REDSHIFT, WORKGROUP), (DATABRICKS, WORKSPACE)])
def test_a_mirror_in_each_warehouse_is_loaded(tmp_path, mirror, account):
    loaded = load_project(project(tmp_path, mirror, account))
    (task,) = loaded.mirrors
    assert task.account.type == task.target.family
    assert loaded.unused == ()


@pytest.mark.parametrize(
    ("mirror", "account", "says"),
    [
        (f"{REDSHIFT}views: {{secure: true}}\n", WORKGROUP, "no secure views"),
        (f"{DATABRICKS}views: {{secure: true}}\n", WORKSPACE, "no secure views"),
        (f"{REDSHIFT}refresh: {{at_most_every: 60s}}\n", WORKGROUP, "remove `at_most_every`"),
        (f"{REDSHIFT}refresh: {{hold_snapshots: 1h}}\n", WORKGROUP, "remove `hold_snapshots`"),
        (
            f"{DATABRICKS}refresh: {{automatic: true, at_most_every: 60s}}\n",
            WORKSPACE,
            "remove `at_most_every`",
        ),
        (REDSHIFT, WORKSPACE, "the target is Redshift"),
        (REDSHIFT.replace("schema: shop", "schema: Shop"), WORKGROUP, "schema"),
        (
            MIRROR.replace("external_volume: VOL, catalog_integration: GLUE", "linked_database: L")
            + "refresh: {after: commit}\n",
            ACCOUNT,
            "remove `after`",
        ),
    ],
)
def test_what_means_nothing_to_a_target_is_refused_by_name(tmp_path, mirror, account, says):
    with pytest.raises(ConfigErrors) as caught:
        load_project(project(tmp_path, mirror, account))
    shown = " ".join(f"{one.code} {one} {one.fix}" for one in caught.value.errors)
    assert says in shown
    assert "tasks/sales.yml:" in shown


@pytest.mark.parametrize(
    ("account", "says"),
    [
        (f"{WORKGROUP}cluster: c1\n", "either `workgroup` or `cluster`"),
        (f"{WORKGROUP}user: loader\n", "takes no `user`"),
        (f"type: redshift\ncluster: c1\nuser: a\nsecret_arn: {ENTRY}\n", "POLYNYA-CFG-061"),
        (f"{WORKGROUP}endpoint: http://db.example.com\n", "POLYNYA-CFG-052"),
        (f"{WORKSPACE}client_id: app\n", "POLYNYA-CFG-061"),
        (WORKSPACE.replace("https", "http"), "POLYNYA-CFG-052"),
        (WORKSPACE.replace("${file:/etc/polynya/token}", "dapi123"), "POLYNYA-CFG-035"),
    ],
)  # fmt: skip
def test_a_connection_that_is_unclear_or_unsafe_is_refused(tmp_path, account, says):
    mirror = REDSHIFT if "redshift" in account else DATABRICKS
    with pytest.raises(ConfigErrors) as caught:
        load_project(project(tmp_path, mirror, account))
    assert says in " ".join(f"{one.code} {one} {one.fix}" for one in caught.value.errors)
    assert "dapi123" not in str(caught.value)
