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
        ("snowflake:", "redshift:", "redshift"),
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
