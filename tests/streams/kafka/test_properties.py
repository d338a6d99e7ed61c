"""Properties of a client of Kafka: secrets are read at each use, and no message shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from polynya.model.config.stream_landing import KafkaSource
from polynya.model.errors import OperationError
from polynya.store.vault import Vault
from polynya.streams.kafka.errors import explained
from polynya.streams.kafka.reading import client_properties


def source(properties: dict[str, str]) -> KafkaSource:
    return KafkaSource.model_validate(
        {"bootstrap_servers": "broker:9092", "topics": ["clicks"], "properties": properties}
    )


PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.fixture(autouse=True)
def folder_of_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYNYA_SECRETS", str(tmp_path))


def test_a_secret_that_was_exchanged_is_taken_at_the_next_use(tmp_path: Path) -> None:
    file = tmp_path / "password"
    read = source({"sasl.jaas.config": f'{PLAIN} required password="${{file:{file}}}";'})

    for password in ("first", "second"):
        file.write_text(password)
        found = client_properties(read).values
        assert found["sasl.jaas.config"] == f'{PLAIN} required password="{password}";'
        assert found["bootstrap.servers"] == "broker:9092"
        assert found["isolation.level"] == "read_committed"


def test_no_message_shows_a_secret_that_was_read() -> None:
    read = source(
        {
            "sasl.jaas.config": f'{PLAIN} required password="${{secret:a}}" username="plain";',
            "ssl.keystore.key": "${secret:b}",
        }
    )
    found = client_properties(read, Vault({"a": 'x"y', "b": "PRIVATE"}.__getitem__))
    said = 'bad login x"y x\\"y PRIVATE'
    chain = [("org.apache.kafka.common.errors.SaslAuthenticationException", said)]

    error = explained(chain, "task clicks", found.secrets)

    assert error is not None
    assert error.code == "POLYNYA-STR-008"
    for secret in ("x", "PRIVATE"):
        assert secret not in error.render().partition("bad login")[2].partition("\n")[0]
    assert "PRIVATE" not in f"{found} {read!r} {read.model_dump_json()}"


@pytest.mark.parametrize("name", ["ssl.truststore.location", "ssl.keystore.location"])
def test_a_file_of_the_client_is_among_the_secrets_of_the_node(tmp_path: Path, name: str) -> None:
    (tmp_path / "ca.pem").write_text("x")
    (tmp_path / "link").symlink_to("/etc/passwd")

    assert client_properties(source({name: f"{tmp_path}/ca.pem"})).values[name].endswith("ca.pem")
    for outside in ("/etc/passwd", f"{tmp_path}/link"):
        with pytest.raises(OperationError, match="may not read") as raised:
            client_properties(source({name: outside}))
        assert "POLYNYA_SECRETS" in raised.value.render()


def test_a_key_tab_is_among_the_secrets_of_the_node() -> None:
    module = "com.sun.security.auth.module.Krb5LoginModule"
    read = source({"sasl.jaas.config": f'{module} required useKeyTab=true keyTab="/etc/krb5";'})

    with pytest.raises(OperationError, match="may not read"):
        client_properties(read)


def test_a_class_that_came_past_the_checks_never_reaches_the_client() -> None:
    for name in ("metric.reporters", "sasl.kerberos.kinit.cmd", "config.providers"):
        with pytest.raises(OperationError) as raised:
            client_properties(source({name: "evil.Class"}))
        assert raised.value.code == "POLYNYA-STR-002"
