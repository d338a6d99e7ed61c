"""Loading landings of streams: beside storage tasks, with errors and secrets of their own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from polynya.model.errors import ConfigErrors
from polynya.model.loader import load_project
from tests.projects import CLICKS, USERS, write_project

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def landing_of(tmp_path, text=CLICKS, **variables):
    project = load_project(write_project(tmp_path, clicks=text), environment=variables)
    return project.landings[0]


def errors_of(tmp_path, text, **variables):
    with pytest.raises(ConfigErrors) as caught:
        landing_of(tmp_path, text, **variables)
    return [f"{error.code} {error}" for error in caught.value.errors]


def with_property(line):
    return CLICKS.replace("{security.protocol: SSL}", "{" + line + "}")


def test_a_landing_is_read_beside_storage_tasks(tmp_path):
    project = load_project(write_project(tmp_path, users=USERS, clicks=CLICKS))

    assert [task.name for task in project.tasks] == ["users"]
    assert [task.name for task in project.landings] == ["clicks"]
    assert [task.name for task in project.works] == ["clicks", "users"]
    assert project.where("clicks", "source", "kafka", "topics") == "tasks/clicks.yml:7:5"


def test_what_a_landing_does_by_default(tmp_path):
    task = landing_of(tmp_path, CLICKS.replace("content: {type: json}\n", ""))

    assert (task.place, task.into.each, task.start_from) == ("clicks", "topic", "earliest")
    assert (task.content.type, task.interval) == ("json", timedelta(minutes=1))
    assert task.folder_retention.keep == timedelta(days=7)
    assert (task.batch.max_bytes, task.on_new_topic) == (64 * 2**20, "apply")


@pytest.mark.parametrize(
    ("line", "attribute", "value"),
    [
        ("start_from: now", "start_from", "now"),
        (
            'start_from: "2026-01-31T01:00:00+01:00"',
            "start_from",
            datetime(2026, 1, 31, tzinfo=UTC),
        ),
        ("interval: 1s", "interval", timedelta(seconds=1)),
        ("folder: streams/clicks", "place", "streams/clicks"),
        ("on_new_topic: propagate", "on_new_topic", "apply"),
    ],
)
def test_settings_are_read(tmp_path, line, attribute, value):
    assert getattr(landing_of(tmp_path, f"{CLICKS}{line}\n"), attribute) == value


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("start_from: yesterday", "`yesterday` is not a start of a stream"),
        ("start_from: 2026-01-31T00:00:00", "`2026-01-31T00:00:00` has no offset from UTC"),
        ("interval: 500ms", "an `interval` is at least one second"),
        ("into: {each: topic, table: clicks}", "one of `each` and `table` is expected here"),
        ("into: {}", "one of `each` and `table` is expected here"),
        ("on_new_topic: add", "is not one of the possible values"),
    ],
)
def test_settings_that_are_wrong_say_where_and_what_instead(tmp_path, line, said):
    [error] = errors_of(tmp_path, f"{CLICKS}{line}\n")

    assert said in error
    assert "tasks/clicks.yml:10:" in error


def test_a_landing_reads_exactly_one_source(tmp_path):
    head, _, _ = CLICKS.partition("source:")

    [error] = errors_of(tmp_path, f"{head}source: {{}}\n")

    assert "POLYNYA-STR-001" in error
    assert "write one of: " in error


def test_an_unknown_kind_is_told_the_kinds_that_there_are(tmp_path):
    [error] = errors_of(tmp_path, CLICKS.replace("streaming_landing", "streaming_landin"))

    assert (
        "did you mean `streaming_landing`? allowed here: data_mart, instance, landing, mirror"
        in error
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "group.id: mine",
            "a task cannot set the property `group.id`: the position is in the landed batches",
        ),
        ("kafka.security.protocol: SSL", "write `security.protocol`"),
        ("Security.Protocol: SSL", "write `security.protocol`"),
    ],
)
def test_properties_that_would_break_a_landing_are_refused(tmp_path, line, said):
    [error] = errors_of(tmp_path, with_property(line))

    assert error.startswith("POLYNYA-STR-002")
    assert said in error


@pytest.mark.parametrize(
    "line",
    [
        "metric.reporters: evil.Class",
        "ssl.engine.factory.class: evil.Class",
        "security.providers: evil.Class",
        "sasl.login.class: evil.Class",
        "sasl.login.callback.handler.class: evil.Class",
        "sasl.client.callback.handler.class: evil.Class",
        "sasl.kerberos.kinit.cmd: /tmp/evil",
        "config.providers: file",
        "config.providers.file.class: org.apache.kafka.common.config.provider.FileConfigProvider",
        "java.naming.provider.url: ldap",
        "some.property.of.tomorrow: 1",
        "ssl.truststore.location: ca.pem",
        "ssl.keystore.location: /etc/polynya/secrets/../agent.env",
        "sasl.oauthbearer.token.endpoint.url: 'file:///etc/passwd'",
        "sasl.oauthbearer.token.endpoint.url: 'http://login.example'",
        "sasl.oauthbearer.jwks.endpoint.url: 'file:///etc/passwd'",
        "sasl.jaas.config: com.sun.security.auth.module.JndiLoginModule required a=b;",
        f"sasl.jaas.config: '{PLAIN} required username=a; evil.Login required;'",
        f"sasl.jaas.config: '{PLAIN} optional username=a;'",
        f"sasl.jaas.config: '{PLAIN} required serviceName=a username=b;'",
        f"sasl.jaas.config: '{PLAIN} required username=\"a'",
        f"sasl.jaas.config: '{PLAIN} required username=a'",
        f"sasl.jaas.config: '{OAUTH} required unsecuredLoginStringClaim_sub=admin;'",
    ],
)
def test_no_property_names_a_class_a_command_or_a_place(tmp_path, line):
    [error] = errors_of(tmp_path, with_property(line))

    assert error.startswith("POLYNYA-STR-002 tasks/clicks.yml:")


def test_what_a_client_needs_for_tls_and_each_login_is_allowed(tmp_path):
    handler = f"{OAUTH.removesuffix('Module')}CallbackHandler"
    line = (
        "security.protocol: SASL_SSL, sasl.mechanism: OAUTHBEARER, ssl.truststore.type: PEM, "
        "ssl.truststore.location: /etc/polynya/secrets/ca.pem, fetch.max.wait.ms: 100, "
        "sasl.oauthbearer.token.endpoint.url: 'https://login.example/token', "
        f"sasl.login.callback.handler.class: {handler}, "
        f'sasl.jaas.config: \'{OAUTH} required clientId=a clientSecret="${{env:S}}" '
        'extension_logicalCluster="lkc";\''
    )

    assert len(landing_of(tmp_path, with_property(line), S="x").source.kafka.properties) == 8


@pytest.mark.parametrize(
    "line",
    [
        "ssl.keystore.password: hunter2",
        'ssl.key.password: "${env:KEY:-hunter2}"',
        f'sasl.jaas.config: \'{PLAIN} required username="a" password="hunter2";\'',
        f"sasl.jaas.config: '{OAUTH} required clientSecret=hunter2;'",
    ],
)
def test_a_secret_in_the_file_is_refused_and_not_repeated(tmp_path, line):
    [error] = errors_of(tmp_path, with_property(line))

    assert error.startswith("POLYNYA-CFG-035")
    assert "hunter2" not in error


@pytest.mark.parametrize("login", ["user: ann", "password: '${env:PW}'"])
def test_a_login_goes_to_a_registry_elsewhere_by_https_or_said_not_to(tmp_path, login):
    def text(url, more=""):
        registry = f"{{type: avro_with_schema, schema_registry: {{url: '{url}', {login}{more}}}}}"
        return CLICKS.replace("{type: json}", registry)

    [error] = errors_of(tmp_path / "a", text("http://registry:8081"), PW="hunter2")

    assert error.startswith("POLYNYA-CFG-044 tasks/clicks.yml:")
    assert "allow_unencrypted" in error
    assert "hunter2" not in error
    for right in (
        text("http://registry:8081", ", allow_unencrypted: true"),
        text("https://registry:8081"),
        text("http://127.0.0.1:8081"),
    ):
        assert landing_of(tmp_path / "b", right, PW="hunter2").content.schema_registry.url


def test_a_login_goes_to_brokers_elsewhere_with_tls_or_said_not_to(tmp_path):
    line = f"security.protocol: SASL_PLAINTEXT, sasl.jaas.config: '{PLAIN} required username=a;'"
    text = with_property(line)

    [error] = errors_of(tmp_path / "a", text)

    assert error.startswith("POLYNYA-CFG-044 tasks/clicks.yml:")
    allowed = text.replace("    topics:", "    allow_unencrypted: true\n    topics:")
    assert landing_of(tmp_path / "b", allowed).source.kafka.allow_unencrypted
    here = text.replace("broker:9092", "localhost:9092")
    assert landing_of(tmp_path / "c", here).source.kafka.properties


def test_a_password_of_a_registry_in_the_file_is_refused(tmp_path):
    registry = "{type: avro_with_schema, schema_registry: {url: 'https://r', password: hunter2}}"

    [error] = errors_of(tmp_path, CLICKS.replace("{type: json}", registry))

    assert error.startswith("POLYNYA-CFG-035")


def test_secrets_come_from_the_environment_and_no_text_shows_them(tmp_path):
    line = (
        'ssl.key.password: "${env:KEY}", sasl.jaas.config: '
        f'\'{PLAIN} required username="a" password="${{env:LOGIN}}";\''
    )

    task = landing_of(tmp_path, with_property(line), KEY="hunter2", LOGIN="hunter3")

    assert task.source.kafka.plain_properties() == {
        "ssl.key.password": "hunter2",
        "sasl.jaas.config": f'{PLAIN} required username="a" password="hunter3";',
    }
    assert "hunter" not in f"{task} {task!r} {task.model_dump_json()}"


def test_names_clash_over_all_kinds_and_folders_over_landings(tmp_path):
    again = CLICKS.replace("name: clicks", "name: users")
    inside = CLICKS.replace("name: clicks", "name: more\nfolder: clicks/more")

    with pytest.raises(ConfigErrors) as caught:
        load_project(write_project(tmp_path, clicks=CLICKS, more=inside, users=USERS, zzz=again))

    assert [f"{error.code} {error.where}" for error in caught.value.errors] == [
        "POLYNYA-STR-004 tasks/more.yml:4:1",
        "POLYNYA-CFG-012 tasks/zzz.yml:3:1",
    ]


FILES = """\
apiVersion: polynya/v1
kind: streaming_landing
name: exports
source:
  files:
    url: in
    pattern: "<yyyy>/<MM>/<dd>/part-*.json.gz"
"""


def test_the_folder_of_a_source_of_files_is_relative_to_the_project(tmp_path):
    files = landing_of(tmp_path, FILES).source.files

    assert files.url == str((tmp_path / "in").resolve())
    assert (files.look_back, files.delete_after_load) == (timedelta(days=1), False)
    remote = landing_of(tmp_path, FILES.replace("url: in", "url: s3://partner-drop/exports/"))
    assert remote.source.files.url == "s3://partner-drop/exports"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("url: in", "url: gs://bucket", "POLYNYA-CFG-018 tasks/clicks.yml:6:5: "),
        ("<dd>", "<mm>", "`<mm>` is not a date without `<dd>`"),
        ("<dd>", "<day>", "`<day>` is none of <yyyy> <MM> <dd> <HH> <mm>"),
        ("url: in", "initial_load: '../x'\n    url: in", "leaves its folder"),
        (
            '<yyyy>/<MM>/<dd>/part-*.json.gz"',
            'part-*"\nstart_from: 2026-01-31T00:00:00Z',
            "POLYNYA-STR-043",
        ),
        (
            "source:",
            "content: {type: avro_with_schema, schema_registry: {url: 'http://r'}}\nsource:",
            "POLYNYA-STR-044",
        ),
        ("source:", "readers: 4\nsource:", "POLYNYA-STR-056"),
    ],
)
def test_what_is_wrong_with_a_source_of_files_is_said_with_its_place(tmp_path, old, new, said):
    [error] = errors_of(tmp_path, FILES.replace(old, new, 1))

    assert said in error


def test_streams_of_kinesis_are_read_by_name(tmp_path):
    head, _, _ = CLICKS.partition("source:")

    task = landing_of(
        tmp_path, f"{head}source:\n  kinesis: {{streams: [clicks], region: eu-west-1}}\n"
    )

    assert task.source.kinesis.streams == ("clicks",)
    assert task.source.kinesis.region == "eu-west-1"


def test_secrets_that_are_read_at_their_use_stay_references(tmp_path):
    jaas = f'{PLAIN} required username="${{env:P}}" password="${{secret:msk/clicks#password}}";'
    line = f"ssl.truststore.password: '${{file:/run/trust}}', sasl.jaas.config: '{jaas}'"
    source = landing_of(tmp_path, with_property(line), P="${secret:x}").source.kafka

    assert source.plain_properties() == {
        "ssl.truststore.password": "${file:/run/trust}",
        # What the environment holds is no reference.
        "sasl.jaas.config": f'{PLAIN} required username="$${{secret:x}}" '
        'password="${secret:msk/clicks#password}";',
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (with_property('ssl.key.password: "${file:trust}"'), "names no absolute path"),
        (with_property('ssl.key.password: "${file:/a/../b}"'), "names no absolute path"),
        (
            with_property('ssl.key.password: "${secret:a b}"'),
            "write `${secret:NAME}` or",
        ),
        (CLICKS.replace("clicks", '"${secret:a}"', 1), "cannot stand here, only in prop"),
        (
            CLICKS.replace("clicks", '"${file:/a}"', 1),
            "cannot stand here, only in prop",
        ),
    ],
)
def test_a_reference_to_a_secret_stands_where_it_is_read_at_its_use(tmp_path, text, said):
    (error,) = errors_of(tmp_path, text)

    assert error.startswith("POLYNYA-CFG-006 tasks/clicks.yml:")
    assert said in error
