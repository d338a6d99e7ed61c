"""Connections of all kinds, the bindings of a target, and which of them wins."""

from __future__ import annotations

import pytest

from polynya.model.config.stream_landing import DirectTask
from polynya.model.errors import ConfigErrors
from polynya.model.loader import load_project
from tests.projects import CLICKS, PROJECT, USERS, write_project

TARGETS = PROJECT + "  prod: {landing: ./in, warehouse: ./tables}\n"
EVENTS = """\
type: kafka
bootstrap_servers: 127.0.0.1:9092
properties: {fetch.max.bytes: 1000}
targets:
  prod: {bootstrap_servers: "events.internal:9092", properties: {security.protocol: SSL}}
"""
BY_NAME = """\
apiVersion: polynya/v1
kind: streaming_landing
name: clicks
source:
  kafka:
    connection: events
    topics: [clicks]
"""
BOUND = """\
connections:
  events:
    bootstrap_servers: broker.prod:9093
    properties:
      sasl.jaas.config: >-
        org.apache.kafka.common.security.plain.PlainLoginModule required
        username="app" password="${secret:events#password}";
"""


@pytest.fixture
def written(tmp_path):
    """Write a project of files by their paths; the project file has two targets."""

    def write(project=TARGETS, **files):
        folder = write_project(tmp_path / "project", project=project, users=USERS)
        (folder / "tasks" / "users.yml").unlink()
        for path, text in files.items():
            place = folder / path.replace("__", "/").replace("_yml", ".yml")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        return folder

    return write


def kafka_of(folder, target=None, **environment):
    [task] = load_project(folder, target, environment=environment).landings
    return task.source.kafka


def errors_of(folder, target=None, **environment):
    with pytest.raises(ConfigErrors) as caught:
        load_project(folder, target, environment=environment)
    return [f"{error.code} {error}" for error in caught.value.errors]


def test_a_task_that_names_its_brokers_needs_no_connection(written):
    folder = written(tasks__clicks_yml=CLICKS)

    assert kafka_of(folder).bootstrap_servers == "broker:9092"


def test_a_task_takes_the_server_of_its_connection_in_each_target(written):
    folder = written(connections__events_yml=EVENTS, tasks__clicks_yml=BY_NAME)

    here, prod = kafka_of(folder), kafka_of(folder, "prod")

    assert here.bootstrap_servers == "127.0.0.1:9092"
    assert here.plain_properties() == {"fetch.max.bytes": "1000"}
    assert prod.bootstrap_servers == "events.internal:9092"
    assert prod.plain_properties() == {"fetch.max.bytes": "1000", "security.protocol": "SSL"}


def test_bindings_win_over_targets_and_targets_over_the_connection(written):
    folder = written(
        connections__events_yml=EVENTS, tasks__clicks_yml=BY_NAME, bindings__prod_yml=BOUND
    )

    project = load_project(folder, "prod", environment={})
    shown = {
        one.name: (one.value, one.where, one.reason) for one in project.effective["events"].settings
    }

    assert shown["bootstrap_servers"] == ("broker.prod:9093", "bindings/prod.yml:3:5", "bindings")
    assert shown["properties.security.protocol"] == ("SSL", "connections/events.yml:5:66", "target")
    assert shown["properties.fetch.max.bytes"] == (
        1000,
        "connections/events.yml:3:14",
        "connection",
    )
    assert "${secret:events#password}" in str(shown["properties.sasl.jaas.config"])
    assert project.unused == ("connections/events.yml:5:10: the bindings of the target replace it",)
    assert kafka_of(folder).bootstrap_servers == "127.0.0.1:9092"


def test_bindings_may_stand_outside_and_replace_those_of_the_project(written, tmp_path):
    folder = written(
        connections__events_yml=EVENTS, tasks__clicks_yml=BY_NAME, bindings__prod_yml=BOUND
    )
    outside = tmp_path / "etc"
    outside.mkdir()
    (outside / "prod.yml").write_text("connections: {events: {bootstrap_servers: 'b.prod:1'}}\n")

    for place in (outside, outside / "prod.yml"):
        project = load_project(folder, "prod", environment={"POLYNYA_BINDINGS": str(place)})
        [task] = project.landings
        assert task.source.kafka.bootstrap_servers == "b.prod:1"
        assert "sasl.jaas.config" not in task.source.kafka.properties
    assert any("bindings/prod.yml: " in one and "instead" in one for one in project.unused)


def test_bindings_never_work_in_another_target(written, tmp_path):
    folder = written(connections__events_yml=EVENTS, tasks__clicks_yml=BY_NAME)
    file = tmp_path / "prod.yml"
    file.write_text("{}\n")

    [error] = errors_of(folder, "local", POLYNYA_BINDINGS=str(file))
    [nowhere] = errors_of(folder, "prod", POLYNYA_BINDINGS=str(tmp_path / "none"))

    assert error.startswith("POLYNYA-CFG-051") and "not those of the target `local`" in error
    assert nowhere.startswith("POLYNYA-CFG-051")


def test_a_project_in_git_names_no_host_of_production(written, tmp_path):
    """What the connection leaves out, the bindings add."""
    folder = written(
        connections__events_yml="type: kafka\n",
        tasks__clicks_yml=BY_NAME,
        bindings__prod_yml="connections: {events: {bootstrap_servers: 'b.prod:1'}}\n",
    )

    assert kafka_of(folder, "prod").bootstrap_servers == "b.prod:1"
    [error] = errors_of(folder, "local")
    assert error.startswith("POLYNYA-CFG-008 connections/events.yml:1:1")
    assert "bootstrap_servers" in error


def test_variables_of_a_target_fill_settings(written):
    folder = written(
        project=PROJECT + "  prod: {landing: './${var:PLACE}', warehouse: ./tables}\n",
        tasks__clicks_yml=CLICKS.replace("[clicks, ", '["${var:TOPIC:-clicks}", '),
        bindings__prod_yml="variables: {TOPIC: visits, PLACE: in, COUNT: 3}\n",
    )

    project = load_project(folder, "prod", environment={})

    assert project.landings[0].source.kafka.topics[0] == "visits"
    assert project.target.landing == folder.resolve() / "in"
    assert project.variables["TOPIC"] == ("tasks/clicks.yml:7:14",)
    assert project.unused == ("bindings/prod.yml:1:39: no file names this variable",)
    # A target that is not chosen needs no value.
    assert kafka_of(folder, "local").topics[0] == "clicks"


def test_what_a_target_replaces_needs_no_value_in_it(written):
    events = EVENTS.replace("127.0.0.1:9092", "${env:MINE}").replace("SSL", "'${env:THEIRS}'")
    folder = written(connections__events_yml=events, tasks__clicks_yml=BY_NAME)

    assert kafka_of(folder, "prod", THEIRS="SSL").bootstrap_servers == "events.internal:9092"
    assert kafka_of(folder, "local", MINE="b:1").bootstrap_servers == "b:1"
    [error] = errors_of(folder, "local")
    assert error.startswith("POLYNYA-CFG-006 connections/events.yml:2:1")


def test_a_variable_that_is_not_bound_says_where_to_bind_it(written):
    folder = written(tasks__clicks_yml=CLICKS.replace("broker:9092", "'${var:BROKERS}'"))

    [error] = errors_of(folder, "prod")

    assert error.startswith("POLYNYA-CFG-050 tasks/clicks.yml:6:5")
    assert "add `BROKERS` to `variables` in the bindings of the target" in error


def test_what_a_variable_brings_is_text(written):
    """It can add neither references nor structure."""
    jaas = (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="${var:WHO}" password="${file:/run/pw}";'
    )
    task = CLICKS.replace("SSL}", f"SASL_SSL, sasl.jaas.config: '{jaas}'}}")
    folder = written(
        tasks__clicks_yml=task, bindings__prod_yml="variables: {WHO: '$${file:/run/other}'}\n"
    )

    text = kafka_of(folder, "prod").plain_properties()["sasl.jaas.config"]

    assert 'username="$${file:/run/other}"' in text
    assert 'password="${file:/run/pw}"' in text


@pytest.mark.parametrize(
    ("bindings", "said"),
    [
        ("connections: {evnts: {user: a}}", "POLYNYA-GTW-060 bindings/prod.yml:1:15"),
        ("connections: {events: {bootstrap: 'b:1'}}", "did you mean `bootstrap_servers`"),
        ("connections: {events: {type: kinesis}}", "POLYNYA-CFG-007 bindings/prod.yml:1:24"),
        (
            "connections: {events: {properties: {ssl.key.password: hunter2}}}",
            "POLYNYA-CFG-035 bindings/prod.yml:1:37",
        ),
        (
            "connections: {events: {properties: {ssl.engine.factory.class: X}}}",
            "POLYNYA-STR-0",
        ),
        ("connections: {events: {bootstrap_servers: '${file:/run/x}'}}", "cannot stand here"),
        ("variables: {A: '${secret:x}'}", "cannot stand here"),
        ("variables: {A: '${var:B}'}", "cannot stand here"),
        ("variables: {A: [1]}", "POLYNYA-CFG-009 bindings/prod.yml:1:13"),
        ("conections: {}", "did you mean `connections`"),
    ],
)
def test_what_is_wrong_with_bindings_says_where(written, bindings, said):
    folder = written(
        connections__events_yml=EVENTS, tasks__clicks_yml=BY_NAME, bindings__prod_yml=bindings
    )

    found = errors_of(folder, "prod")

    assert any(said in error for error in found), found
    assert all("bindings/prod.yml:" in error for error in found), found
    assert not any("hunter2" in error for error in found)


def test_bindings_of_a_target_that_is_not_there_are_named(written):
    folder = written(bindings__prd_yml="{}\n")

    [error] = errors_of(folder, "prod")

    assert error.startswith("POLYNYA-CFG-017 bindings/prd.yml")
    assert "did you mean `prod`" in error


def test_an_operator_who_binds_a_login_binds_the_address_too(written, tmp_path):
    """Otherwise an edit of the project could send the login to another server."""
    folder = written(connections__events_yml=EVENTS, tasks__clicks_yml=BY_NAME)
    outside = tmp_path / "etc"
    outside.mkdir()
    without = "\n".join(line for line in BOUND.splitlines() if "broker.prod" not in line)
    (outside / "prod.yml").write_text(without)

    [error] = errors_of(folder, "prod", POLYNYA_BINDINGS=str(outside))

    assert error.startswith(f"POLYNYA-CFG-052 {outside}/prod.yml:2:3")
    assert "also bind `bootstrap_servers`" in error


def test_certificates_beside_bindings_outside_are_those_of_the_operator(written, tmp_path):
    shop = "type: postgresql\nhost: 127.0.0.1\nuser: reader\n"
    folder = written(connections__shop_yml=shop)
    outside = tmp_path / "etc"
    outside.mkdir()
    bound = "connections: {shop: {host: db.prod, database: shop, tls: {ca: ./rds.pem}}}\n"
    (outside / "prod.yml").write_text(bound)

    connection = load_project(
        folder, "prod", environment={"POLYNYA_BINDINGS": str(outside)}
    ).connections["shop"]

    assert connection.tls.ca == str(outside / "rds.pem")
    assert (connection.host, connection.user) == ("db.prod", "reader")


@pytest.mark.parametrize(
    ("slot", "said"),
    [
        ("connection: evnts", "POLYNYA-GTW-060 tasks/clicks.yml:6:5"),
        ("connection: events\n    bootstrap_servers: x:1", "POLYNYA-CFG-052 tasks/clicks.yml:7:5"),
        ("connection: events\n    properties: {fetch.max.bytes: 1}", "already sets `fetch.max"),
        ("connection: stream", "is of type kinesis, and `kafka` needs one of type kafka"),
        ("allow_unencrypted: true", "or `connection: NAME`"),
    ],
)
def test_a_task_cannot_contradict_its_connection(written, slot, said):
    folder = written(
        connections__events_yml=EVENTS,
        connections__stream_yml="type: kinesis\nregion: eu-central-1\n",
        tasks__clicks_yml=BY_NAME.replace("connection: events", slot),
    )

    [error] = errors_of(folder)

    assert said in error


def test_a_task_may_add_properties(written):
    task = BY_NAME.replace(
        "connection: events", "connection: events\n    properties: {client.id: c}"
    )
    folder = written(connections__events_yml=EVENTS, tasks__clicks_yml=task)

    assert set(kafka_of(folder).properties) == {"fetch.max.bytes", "client.id"}


def test_a_capture_needs_a_connection_to_a_database(written):
    capture = (
        "apiVersion: polynya/v1\nkind: landing\nname: shop\nconnection: events\n"
        "tables: {include: [public.orders]}\n"
    )
    folder = written(connections__events_yml=EVENTS, tasks__shop_yml=capture)

    [error] = errors_of(folder)

    assert error.startswith("POLYNYA-CFG-052 tasks/shop.yml:4:1")


def test_kinesis_stores_and_registries_are_reached_by_name(written):
    stream = BY_NAME.replace("kafka", "kinesis").replace("topics", "streams")
    files = (
        "apiVersion: polynya/v1\nkind: streaming_landing\nname: files\nsource:\n"
        "  files: {connection: minio, url: 's3://landed/x', pattern: '*.json'}\n"
    )
    avro = (
        "apiVersion: polynya/v1\nkind: streaming_landing\nname: avro\n"
        "source: {kafka: {bootstrap_servers: 'b:1', topics: [avro]}}\ndirect: true\n"
        "content: {type: avro_with_schema, schema_registry: {connection: schemas}}\n"
    )
    table = (
        "apiVersion: polynya/v1\nkind: streaming_transform\nname: visits\nfrom: avro\n"
        "mode: append_only\n"
    )
    folder = written(
        connections__events_yml="type: kinesis\nregion: eu-central-1\n"
        "targets: {prod: {endpoint: 'https://vpce.example.com'}}\n",
        connections__minio_yml="type: s3\nendpoint: http://127.0.0.1:9000\naccess_key_id: app\n"
        "secret_access_key: '${file:/run/minio}'\n",
        connections__schemas_yml="type: schema_registry\nurl: https://registry:8081\nuser: app\n"
        "password: '${secret:registry#password}'\n",
        tasks__clicks_yml=stream,
        tasks__files_yml=files,
        tasks__avro_yml=avro,
        tasks__visits_yml=table,
    )  # fmt: skip

    project = load_project(folder, "prod", environment={})
    landings = {task.name: task for task in project.landings}
    [direct] = [task for task in project.tasks if isinstance(task, DirectTask)]

    assert landings["clicks"].source.kinesis.region == "eu-central-1"
    assert landings["clicks"].source.kinesis.endpoint == "https://vpce.example.com"
    store = landings["files"].source.files.store
    assert (store.endpoint, store.access_key_id) == ("http://127.0.0.1:9000", "app")
    assert store.secret_access_key.get_secret_value() == "${file:/run/minio}"
    registry = direct.landing.schema_registry
    assert (registry.url, registry.user) == ("https://registry:8081", "app")
    assert registry.password.get_secret_value() == "${secret:registry#password}"


@pytest.mark.parametrize(
    ("connection", "said"),
    [
        ("type: kafak\nbootstrap_servers: b:1\n", "did you mean `kafka`"),
        ("type: s3\nendpoint: https://minio.example.com\n", "allow_remote_endpoint: true"),
        ("type: s3\nendpoint: http://127.0.0.1:1\naccess_key_id: a\n", "go together"),
        (
            "type: s3\nendpoint: http://127.0.0.1\naccess_key_id: a\nsecret_access_key: pw123\n",
            "POLYNYA-CFG-035 connections/x.yml:4:1",
        ),
        ("type: schema_registry\nurl: http://r:1\nuser: u\n", "POLYNYA-CFG-044"),
        (
            EVENTS.replace("127.0.0.1", "b").replace(
                "1000", "1, security.protocol: SASL_PLAINTEXT"
            ),
            "POLYNYA-CFG-044 connections/x.yml:3:34",
        ),
        ("type: kafka\nbootstrap_servers: b:1\ntargets: {prd: {}}\n", "no target `prd`"),
        (
            "type: kafka\nbootstrap_servers: b:1\ntargets: {prod: {topics: [a]}}\n",
            "POLYNYA-CFG-007 connections/x.yml:3:18",
        ),
        ("type: kinesis\nregion: x\nstreams: [a]\n", "POLYNYA-CFG-007 connections/x.yml:3:1"),
    ],
)
def test_what_is_wrong_with_a_connection_says_where(written, connection, said):
    folder = written(connections__x_yml=connection)

    found = errors_of(folder)

    assert any(said in error for error in found), found
    assert all("connections/x.yml:" in error for error in found)
    assert not any("pw123" in error for error in found)


def test_a_wrong_connection_stops_only_the_tasks_that_name_it(written):
    folder = written(
        connections__events_yml="type: kafka\nbootstrap: x\n",
        tasks__clicks_yml=BY_NAME,
        tasks__users_yml=USERS,
    )

    project = load_project(folder, tolerant=True, environment={})

    assert [task.name for task in project.works] == ["users"]
    assert all((error.where or "").startswith("connections/events.yml") for error in project.errors)


def test_a_rest_api_is_bound_like_any_server_and_shows_references_only(written, tmp_path):
    api = (
        "type: http\nurl: http://127.0.0.1:1\nauth: {type: bearer, token: '${env:TOKEN}'}\n"
        "headers: {X-Api-Key: 'Key ${env:TOKEN}'}\n"
    )
    task = (
        "apiVersion: polynya/v1\nkind: streaming_landing\nname: api\n"
        "source: {http: {connection: shop, resources: {orders: {path: /orders}}}}\n"
    )
    folder = written(connections__shop_yml=api, tasks__api_yml=task)
    outside = tmp_path / "etc"
    outside.mkdir()
    login = "auth: {type: bearer, token: '${secret:shop#token}'}"
    given = {"POLYNYA_BINDINGS": str(outside), "TOKEN": "hunter2"}

    (outside / "prod.yml").write_text(f"connections: {{shop: {{{login}}}}}\n")
    [alone] = errors_of(folder, "prod", **given)
    (outside / "prod.yml").write_text(
        f"connections: {{shop: {{url: 'https://api.example.com', {login}}}}}\n"
    )
    project = load_project(folder, "prod", environment=given)

    assert "also bind `url`" in alone
    [landing] = project.landings
    assert landing.source.http.api.url == "https://api.example.com"
    assert landing.source.http.api.auth.token.get_secret_value() == "${secret:shop#token}"
    shown = {one.name: one.value for one in project.effective["shop"].settings}
    assert shown["auth"] == {"type": "bearer", "token": "${secret:shop#token}"}
    assert shown["headers"] == {"X-Api-Key": "Key ${env:TOKEN}"}
    assert project.unused == ()
