"""Secrets by reference: read at their use, from files and Secrets Manager, and never shown."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from polynya.model.errors import DependencyError
from polynya.store.vault import FRESH_SECONDS, STALE_SECONDS, Vault
from polynya.testing.fakes import FakeClock
from tests.aws import REGION, aws_server, client

JAAS = 'ScramLoginModule required username="lake" password="{}";'


class Entries(dict[str, str]):
    """Secrets Manager in memory, which counts what it is asked."""

    asked = 0

    def __call__(self, name: str) -> str:
        self.asked += 1
        if name not in self:
            raise DependencyError("POLYNYA-AWS-003", "AWS did not read the secret")
        return self[name]


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the node names, with a text that nobody may see beside it."""
    folder = tmp_path / "secrets"
    folder.mkdir()
    (tmp_path / "other").write_text("hidden")
    monkeypatch.setenv("POLYNYA_SECRETS", str(folder))
    return folder


def test_a_file_is_read_at_each_use_without_its_line_end(secrets: Path) -> None:
    file, vault = secrets / "password", Vault()
    file.write_text("first\n")
    assert vault.open(f"a${{file:{file}}}b").text == "afirstb"

    file.write_text("second\r\n")
    assert vault.open(f"${{file:{file}}}").text == "second"


def test_an_entry_is_asked_for_again_after_a_while_and_outlives_an_outage() -> None:
    entries, clock = Entries(a="first"), FakeClock()
    vault = Vault(entries, clock)
    assert vault.open("${secret:a}/${secret:a}").text == "first/first"
    assert entries.asked == 1

    entries["a"] = "second"
    assert vault.open("${secret:a}").text == "first"
    clock.sleep(FRESH_SECONDS)
    assert vault.open("${secret:a}").text == "second"

    del entries["a"]
    clock.sleep(FRESH_SECONDS)
    assert vault.open("${secret:a}").text == "second"
    clock.sleep(STALE_SECONDS)
    with pytest.raises(DependencyError, match="did not read the secret"):
        vault.open("${secret:a}")


def test_a_field_of_an_entry_is_taken_by_its_name() -> None:
    vault = Vault(Entries({"msk/clicks": json.dumps({"username": "lake", "password": "pw"})}))

    assert vault.open("${secret:msk/clicks#password}").text == "pw"


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("${secret:a#user}", "not a JSON object with text in that field"),
        ("${secret:a#n}", "not a JSON object with text in that field"),
        ("${secret:text#n}", "not a JSON object with text in that field"),
        ("${file:SECRETS/nowhere}", "No such file"),
        ("${file:SECRETS/large}", "more than 65536 bytes"),
        ("${file:SECRETS/pipe}", "is not a file"),
        ("${file:SECRETS}", "is not a file"),
        ("${file:SECRETS/loop}", "not below"),
        ("${file:SECRETS/link}", "`POLYNYA_SECRETS`"),
        ("${file:/dev/zero}", "`POLYNYA_SECRETS`"),
        ("${file:/etc/passwd}", "`POLYNYA_SECRETS`"),
        ("${file:SECRETS-of-others/password}", "`POLYNYA_SECRETS`"),
    ],
)
def test_what_cannot_be_read_is_said_without_what_was_read(
    secrets: Path, reference: str, why: str
) -> None:
    (secrets / "large").write_bytes(bytes(70_000))
    os.mkfifo(secrets / "pipe")
    (secrets / "link").symlink_to(secrets.parent / "other")
    (secrets / "loop").symlink_to(secrets / "loop")
    reference = reference.replace("SECRETS", str(secrets))
    vault = Vault(Entries(a='{"n": 1, "x": "hidden"}', text="hidden"))

    with pytest.raises(DependencyError) as raised:
        vault.open(f"password={reference}")

    shown = raised.value.render()
    assert raised.value.code == "POLYNYA-STR-090"
    assert reference in shown
    assert why in shown
    assert "hidden" not in shown


def test_a_link_inside_the_folder_is_followed(secrets: Path) -> None:
    (secrets / "v1").mkdir()
    (secrets / "v1" / "password").write_text("pw")
    (secrets / "current").symlink_to("v1")

    assert Vault().open(f"${{file:{secrets}/current/password}}").text == "pw"


def test_a_secret_does_not_end_the_quotes_in_which_it_stands() -> None:
    nasty = 'a"; other="b\\'
    found = Vault(Entries(a=nasty)).open(JAAS.format("${secret:a}"), quoted=True)

    assert found.text == JAAS.format('a\\"; other=\\"b\\\\')
    assert nasty in found.secrets
    assert nasty not in repr(found)


def test_what_is_escaped_or_comes_from_a_secret_is_no_reference() -> None:
    vault = Vault(Entries(a="${file:/etc/passwd}"))

    assert vault.open("$${secret:a}").text == "${secret:a}"
    assert vault.open("${secret:a}").text == "${file:/etc/passwd}"
    assert vault.open("plain $ {text}").text == "plain $ {text}"


def test_entries_are_those_of_secrets_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    with aws_server() as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", endpoint)
        monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
        manager = client("secretsmanager", endpoint)
        arn = manager.create_secret(Name="kafka/clicks", SecretString="pw")["ARN"]
        manager.create_secret(Name="binary", SecretBinary=b"pw")

        assert Vault().open("${secret:kafka/clicks}").text == "pw"
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
        assert Vault().open(f"${{secret:{arn}}}").text == "pw"
        for name in ("kafka/clicks", "binary"):
            with pytest.raises(DependencyError, match="a secret of a stream") as raised:
                Vault().open(f"${{secret:{name}}}")
            assert raised.value.code == "POLYNYA-STR-090"
