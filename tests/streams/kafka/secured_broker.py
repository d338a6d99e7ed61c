"""What lands from listeners with TLS and log-ins: run by `test_real_broker.py`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from polynya.engine.context import EngineContext
from polynya.engine.runner import run_once, units
from polynya.model.errors import PolynyaError
from polynya.model.loader import load_project
from polynya.store.object_store import LocalObjectStore
from tests.oracle.packs.driver import CliDriver
from tests.projects import write_project
from tests.streams.kafka.broker import Broker, Secured, kafka_broker
from tests.streams.kafka.certificates import Authority

pytestmark = pytest.mark.slow

SECRET, WRONG = "s3cr3t-of-lake", "n0t-the-s3cr3t"
MODULES = {"PLAIN": "plain.PlainLoginModule", "SCRAM-SHA-512": "scram.ScramLoginModule"}
MESSAGES = [b'{"n": 1}', b'{"n": 2}']


@dataclass(frozen=True)
class Secure:
    """A broker with listeners of each kind, and the files that its clients need."""

    broker: Broker
    ours: Authority
    other: Authority
    #: A key and its certificate; the key is as it is, and encrypted in two ways.
    client: Path
    taken: Path
    refused: Path

    def trust(self, **more: str) -> dict[str, str]:
        """Properties of a client that trusts our authority; `_` stands for a dot."""
        given = {
            "security_protocol": "SSL",
            "ssl_truststore_type": "PEM",
            "ssl_truststore_location": str(self.ours.certificate),
            **more,
        }
        return {name.replace("_", "."): value for name, value in given.items()}

    def login(self, mechanism: str) -> dict[str, str]:
        """Properties of a client that logs in with the password of the environment."""
        module = f"org.apache.kafka.common.security.{MODULES[mechanism]}"
        words = f'{module} required username="lake" password="${{env:KAFKA_PASSWORD}}";'
        more = {"sasl_mechanism": mechanism, "sasl_jaas_config": words}
        return self.trust(security_protocol="SASL_SSL", **more)


@pytest.fixture(scope="module")
def secure(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    folder = tmp_path_factory.mktemp("secured")
    ours, other = Authority.of(folder, "ours"), Authority.of(folder, "other")
    right = ours.signs("right", host="IP:127.0.0.1")
    elsewhere = ours.signs("elsewhere", host="DNS:elsewhere.example")
    listeners = {"TLS": right, "ELSEWHERE": elsewhere, "MUTUAL": right, "LOGIN": right}
    secured = Secured(
        tuple(listeners),
        _settings(listeners, ours.certificate),
        (f"SCRAM-SHA-512=[name=lake,password={SECRET}]",),
    )
    with kafka_broker(folder, spark, secured) as broker:
        broker.create("orders")
        broker.send("orders", MESSAGES)
        client = ours.signs("client")
        taken = ours.encrypted(client, "keyp4ss", "-v1", "PBE-SHA1-3DES")
        refused = ours.encrypted(client, "keyp4ss", "-v2", "aes256")
        yield Secure(broker, ours, other, client, taken, refused)


@pytest.fixture(autouse=True)
def folder_of_secrets(secure: Secure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYNYA_SECRETS", str(secure.client.parent))


def _settings(listeners: Mapping[str, Path], authority: Path) -> str:
    kinds = {name: "SASL_SSL" if name == "LOGIN" else "SSL" for name in listeners}
    kinds |= {"CONTROLLER": "PLAINTEXT", "PLAINTEXT": "PLAINTEXT"}
    protocols = ",".join(f"{name}:{kind}" for name, kind in kinds.items())
    lines = [f"listener.security.protocol.map={protocols}"]
    for name, file in listeners.items():
        lines += _store(name, "keystore", file)
    lines += ["listener.name.mutual.ssl.client.auth=required"]
    lines += _store("mutual", "truststore", authority)
    lines += [f"listener.name.login.sasl.enabled.mechanisms={','.join(MODULES)}"]
    for mechanism, module in MODULES.items():
        user = f' user_lake="{SECRET}"' if mechanism == "PLAIN" else ""
        words = f"org.apache.kafka.common.security.{module} required{user};"
        lines += [f"listener.name.login.{mechanism.lower()}.sasl.jaas.config={words}"]
    return "\n".join(lines) + "\n"


def _store(listener: str, store: str, file: Path) -> list[str]:
    place = f"listener.name.{listener.lower()}.ssl.{store}"
    return [f"{place}.type=PEM", f"{place}.location={file}"]


def project(folder: Path, address: str, properties: Mapping[str, str]) -> Path:
    """A project that lands the topic from a listener."""
    kafka = {
        "bootstrap_servers": address,
        "topics": ["orders"],
        "properties": {**properties, "default.api.timeout.ms": 8000, "request.timeout.ms": 4000},
    }
    task = {
        "apiVersion": "polynya/v1",
        "kind": "streaming_landing",
        "name": "in",
        "source": {"kafka": kafka},
    }
    return write_project(folder / "project", landing=json.dumps(task))


@dataclass
class Landing:
    """Runs of a project in this process."""

    spark: Any
    folder: Path

    def run(self, address: str, properties: Mapping[str, str], password: str = SECRET) -> Any:
        """What the one landing failed with, None when it did not."""
        place = project(self.folder, address, properties)
        loaded = load_project(place, environment={"KAFKA_PASSWORD": password})
        store = LocalObjectStore(place / "landing")
        self.events: list[Any] = []
        context = EngineContext(spark=self.spark, landing=store, sink=self.events.append)
        failures = run_once(context, units(context, loaded.works)).failures
        return next(iter(failures.values()), None)

    def values(self) -> list[bytes]:
        files = sorted(self.folder.glob("project/landing/in/orders/*.parquet"))
        return [value for one in files for value in parquet.read_table(one)["value"].to_pylist()]


@pytest.fixture
def landing(spark: Any, tmp_path: Path) -> Landing:
    return Landing(spark, tmp_path)


def test_records_land_over_tls(landing: Landing, secure: Secure) -> None:
    assert landing.run(secure.broker.address_of("TLS"), secure.trust()) is None

    assert landing.values() == MESSAGES


@pytest.mark.parametrize("file", ["client", "taken"])
def test_records_land_with_a_certificate_of_our_own(
    landing: Landing, secure: Secure, file: str
) -> None:
    own = secure.trust(ssl_keystore_type="PEM", ssl_keystore_location=str(getattr(secure, file)))
    if file != "client":
        own["ssl.key.password"] = "${env:KAFKA_PASSWORD}"

    assert landing.run(secure.broker.address_of("MUTUAL"), own, password="keyp4ss") is None

    assert landing.values() == MESSAGES


@pytest.mark.parametrize("mechanism", MODULES)
def test_records_land_after_a_login(landing: Landing, secure: Secure, mechanism: str) -> None:
    assert landing.run(secure.broker.address_of("LOGIN"), secure.login(mechanism)) is None

    assert landing.values() == MESSAGES


@pytest.mark.parametrize("mechanism", MODULES)
def test_a_wrong_password_is_named_and_not_shown(
    landing: Landing, secure: Secure, mechanism: str
) -> None:
    address = secure.broker.address_of("LOGIN")

    failure = landing.run(address, secure.login(mechanism), password=WRONG)

    _is_said(failure, "POLYNYA-STR-008", address)
    assert WRONG not in failure.render() + str(landing.events)
    assert landing.values() == []


def test_a_certificate_that_is_not_trusted_is_named(landing: Landing, secure: Secure) -> None:
    address = secure.broker.address_of("TLS")

    for properties in (
        secure.trust(ssl_truststore_location=str(secure.other.certificate)),
        {"security.protocol": "SSL"},
    ):
        _is_said(landing.run(address, properties), "POLYNYA-STR-080", address)


def test_a_certificate_for_another_host_is_named(landing: Landing, secure: Secure) -> None:
    address = secure.broker.address_of("ELSEWHERE")

    failure = landing.run(address, secure.trust())

    _is_said(failure, "POLYNYA-STR-081", address)
    assert "127.0.0.1" in failure.why


def test_a_certificate_that_the_brokers_miss_is_named(landing: Landing, secure: Secure) -> None:
    address = secure.broker.address_of("MUTUAL")

    _is_said(landing.run(address, secure.trust()), "POLYNYA-STR-008", address)


def test_a_file_that_cannot_be_used_is_named(landing: Landing, secure: Secure) -> None:
    address = secure.broker.address_of("MUTUAL")
    keys = {"ssl_keystore_type": "PEM", "ssl_key_password": "${env:KAFKA_PASSWORD}"}

    nowhere = str(secure.client.parent / "nowhere.pem")
    missing = landing.run(address, secure.trust(ssl_truststore_location=nowhere))
    locked = landing.run(
        address, secure.trust(**keys, ssl_keystore_location=str(secure.taken)), password=WRONG
    )
    modern = landing.run(address, secure.trust(**keys, ssl_keystore_location=str(secure.refused)))

    for failure, said in ((missing, "/nowhere.pem"), (locked, ""), (modern, "PBES2")):
        _is_said(failure, "POLYNYA-STR-082", address)
        assert said in failure.why
        assert WRONG not in failure.render()


def test_a_listener_of_another_protocol_does_not_answer(landing: Landing, secure: Secure) -> None:
    for address, properties in (
        (secure.broker.address_of("TLS"), {}),
        (secure.broker.address, secure.trust()),
        (secure.broker.address_of("LOGIN"), secure.trust()),
    ):
        failure = landing.run(address, properties)

        _is_said(failure, "POLYNYA-STR-005", address)
        assert "security.protocol" in failure.fix


def test_settings_that_the_client_does_not_take_are_named(landing: Landing, secure: Secure) -> None:
    address = secure.broker.address_of("LOGIN")

    failure = landing.run(address, {**secure.login("PLAIN"), "security.protocol": "TLS"})

    _is_said(failure, "POLYNYA-STR-009", address)
    assert SECRET not in failure.render()


def test_no_command_prints_or_writes_a_password(
    tmp_path: Path, secure: Secure, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = project(tmp_path, secure.broker.address_of("LOGIN"), secure.login("SCRAM-SHA-512"))
    log = tmp_path / "run.log"
    run = ("run", "--once", "--debug", "--log-file", str(log), "--project", str(place))
    printed = []
    for password in (WRONG, SECRET):
        monkeypatch.setenv("KAFKA_PASSWORD", password)
        for line in (run, (*run, "--json"), ("status", "--verbose", "--project", str(place))):
            done = CliDriver().call(*line)
            printed += [done.output, done.errors]

    everything = "".join(printed) + log.read_text()
    assert "POLYNYA-STR-008" in everything
    assert "2 records" in everything
    assert SECRET not in everything
    assert WRONG not in everything
    found = subprocess.run(
        ["grep", "-rlE", f"{SECRET}|{WRONG}", str(tmp_path)], capture_output=True, text=True
    )
    assert found.stdout == ""


def _is_said(failure: PolynyaError | None, code: str, address: str) -> None:
    assert failure is not None
    assert failure.code == code, failure.render()
    assert address in str(failure.where)
    assert SECRET not in failure.render()
