"""Files of notifications: what they say, and what is wrong in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from polynya.model.errors import ConfigErrors
from polynya.model.loader import LoadedProject, load_project
from polynya.notify.decide import routes_of
from polynya.store.configuration import project_files
from polynya.store.project_archive import secrets_in
from tests.projects import write_project

HEAD = "apiVersion: polynya/v1\nkind: notification\n"
CHANNELS = """\
channels:
  ops:
    {type: mail, host: smtp.acme.org, user: p, password: "${file:/s/mail}", from: p@acme.org,
     to: [ops@acme.org]}
  hook: {type: webhook, url: "https://hooks.acme.org/x", secret: "${secret:hooks#key}"}
"""
RULES = "rules: {all: {}, urgent: {severity: critical, to: [ops]}}\n"


def loaded(folder: Path, text: str, name: str = "oncall.yml") -> LoadedProject:
    write_project(folder)
    (folder / "notifications").mkdir(exist_ok=True)
    (folder / "notifications" / name).write_text(text)
    return load_project(folder)


def test_rules_send_to_the_channels_that_they_name(tmp_path: Path) -> None:
    project = loaded(tmp_path, HEAD + CHANNELS + RULES)

    routes = [route.id for route in routes_of(project.notifications)]
    assert routes == ["oncall.all.ops", "oncall.all.hook", "oncall.urgent.ops"]
    assert "notifications/oncall.yml" in list(project_files(tmp_path))


@pytest.mark.parametrize(
    ("channels", "rules", "said"),
    [
        (CHANNELS, "rules: {all: {to: [opz]}}", "POLYNYA-NTF-001 notifications/oncall.yml:8:20"),
        (CHANNELS.replace("${file:/s/mail}", "abc"), RULES, "POLYNYA-CFG-035"),
        (CHANNELS.replace("${secret:hooks#key}", "abc"), RULES, "POLYNYA-CFG-035"),
        (CHANNELS.replace("https://hooks", "http://hooks"), RULES, "POLYNYA-NTF-002"),
        (CHANNELS.replace("hooks.acme.org/x", "hooks.acme.org/${secret:x}"), RULES, "`token`"),
        (CHANNELS.replace("https://hooks", "https://u:p@hooks"), RULES, "no secrets"),
        (CHANNELS.replace("host:", "tls: none, host:"), RULES, "POLYNYA-NTF-002"),
        (CHANNELS.replace("user: p, ", ""), RULES, "`user` and `password`"),
        (CHANNELS.replace("[ops@acme.org]", '["a@b.c, d@e.f"]'), RULES, "not a mail address"),
        (CHANNELS.replace("[ops@acme.org]", '["a@b.c\\nBcc: d@e.f"]'), RULES, "not a mail address"),
        ('channels: {chat: {type: apprise, url: "slack://token"}}\n', RULES, "POLYNYA-CFG-035"),
        (
            CHANNELS.replace("secret:", "allowed_networks: [127.0.0.0/8], secret:", 1),
            RULES,
            "POLYNYA_LOCAL_APIS",
        ),
        (CHANNELS, "rules: {a: {remind_every: 1m}}", "`remind_every` is shorter"),
        (CHANNELS, "rules: {a: {quiet: [{rrule: FREQ=YEARS, duration: 1h}]}}", "rrule"),
        (CHANNELS, "rules: {a: {causes: [rain]}}", "rain"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(
    channels: str, rules: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigErrors) as caught:
        loaded(tmp_path, HEAD + channels + rules)

    texts = [f"{one.code} {one.where} {one} {one.fix}" for one in caught.value.errors]
    assert any(said in text for text in texts), texts
    assert all("notifications/oncall.yml:" in text for text in texts)


def test_a_broken_file_stops_no_task(tmp_path: Path) -> None:
    with pytest.raises(ConfigErrors):
        loaded(tmp_path, "kind: notification\n")

    project = load_project(tmp_path, tolerant=True)
    assert project.errors and not project.notifications


def test_an_archive_of_a_project_takes_no_secret_of_a_channel_along() -> None:
    text = HEAD + CHANNELS.replace("${secret:hooks#key}", "abc") + RULES

    [error] = secrets_in("notifications/oncall.yml", text.encode())
    assert (error.code, error.where) == ("POLYNYA-CFG-035", "notifications/oncall.yml:7:58")
