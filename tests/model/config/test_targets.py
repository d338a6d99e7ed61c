"""Targets on AWS: what they become, and every contradiction refused with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from polynya.lake.spark.catalog import secret_properties, spark_properties
from polynya.model.config.engines import SparkCluster
from polynya.model.config.target import ResolvedTarget
from polynya.model.errors import ConfigErrors
from polynya.model.loader import load_project
from polynya.model.names import PostgresAddress, S3Location
from tests.projects import write_project

DEV = {
    "landing": "s3://acme-landing/shop",
    "warehouse": "s3://acme-lake/",
    "catalog": "glue",
}
HEAD = "apiVersion: polynya/v1\nkind: project\nname: shop\ntargets:\n  dev:\n"


def target(folder: Path, **settings: str | None) -> ResolvedTarget:
    """The target `dev` with these settings instead of those of DEV; None leaves one out."""
    lines = {name: text for name, text in {**DEV, **settings}.items() if text is not None}
    text = HEAD + "".join(f"    {name}: {value}\n" for name, value in lines.items())
    return load_project(write_project(folder, project=text), "dev").target


def error(folder: Path, **settings: str | None) -> str:
    with pytest.raises(ConfigErrors) as caught:
        target(folder, **settings)
    [one] = caught.value.errors
    return f"{one.code} {one}"


def test_a_target_on_s3_and_glue(tmp_path: Path) -> None:
    aws = "{region: eu-central-1, kms_key: 'arn:aws:kms:eu-central-1:123456789012:key/a-b'}"
    dev = target(tmp_path, aws=aws, config="s3://acme-config/shop/", catalog="{type: glue}")

    assert dev.landing == S3Location("acme-landing", "shop")
    assert (str(dev.warehouse), str(dev.config)) == ("s3://acme-lake", "s3://acme-config/shop")
    assert (dev.on_aws, dev.on_glue, dev.catalog_type) == (True, True, "glue")
    assert dev.aws.region == "eu-central-1"


def test_target_says_how_rarely_an_idle_folder_on_s3_is_listed(tmp_path: Path) -> None:
    assert target(tmp_path, idle_poll="5s").idle_poll_seconds == 5.0
    assert target(tmp_path).idle_poll_seconds is None


def test_landing_may_be_elsewhere_than_the_tables(tmp_path: Path) -> None:
    near = target(tmp_path / "a", warehouse="./w", catalog=None)
    assert (near.on_aws, near.on_glue, near.catalog_type) == (True, False, "jdbc")
    assert target(tmp_path / "b", landing="./in").landing == (tmp_path / "b/in").resolve()


_DATABASE = "uri: 'jdbc:postgresql://db.acme:6432/lake?sslmode=verify-full'"


def test_a_catalog_on_postgresql_may_keep_tables_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_USER", "ann")
    monkeypatch.setenv("LAKE_PASSWORD", "s3cr3t")
    own = 'user: "${env:LAKE_USER}", password: "${env:LAKE_PASSWORD}"'
    aws = "{endpoint: 'https://store.acme:9000', allow_remote_endpoint: true, region: eu-west-1}"

    far = target(tmp_path / "a", catalog=f"{{{_DATABASE}, {own}}}", aws=aws)
    near = target(tmp_path / "b", catalog=f"{{{_DATABASE}}}", warehouse="./w")

    assert far.database == PostgresAddress("db.acme", "lake", 6432, "verify-full")
    assert (far.on_aws, far.on_glue, far.catalog_user) == (True, False, "ann")
    assert far.catalog_password is not None
    assert far.catalog_password.get_secret_value() == "s3cr3t"
    assert "s3cr3t" not in f"{far!r} {far} {spark_properties(far)}"
    assert secret_properties(far) == {"jdbc.user": "ann", "jdbc.password": "s3cr3t"}
    properties = spark_properties(far)
    assert properties["io-impl"].endswith("S3FileIO")
    assert properties["s3.endpoint"] == "https://store.acme:9000"
    assert properties["s3.path-style-access"] == "true"
    assert properties["jdbc.sslfactory"].endswith("DefaultJavaSSLFactory")
    assert "io-impl" not in spark_properties(near)


@pytest.mark.parametrize(
    ("catalog", "message"),
    [
        ("{uri: 'jdbc:postgresql://ann:s3cr3t@db/lake'}", "contains a login"),
        ("{uri: 'jdbc:postgresql://db/lake?user=ann&password=s3cr3t'}", "contains a login"),
        ("{uri: 'jdbc:postgresql://db'}", "no host and no database"),
        ("{uri: 'jdbc:postgresql://db/lake?sslmode=never'}", "`verify-full`"),
        ("{uri: 'jdbc:postgresql://db:x/lake'}", "cannot be read"),
        (
            "{uri: 'jdbc:postgresql://localhost/lake', properties: {jdbc.password: s3cr3t}}",
            "`catalog.password`",
        ),
        ("{user: ann}", "belong to a catalog on PostgreSQL"),
    ],
)
def test_what_a_database_cannot_be_told(tmp_path: Path, catalog: str, message: str) -> None:
    said = error(tmp_path, catalog=catalog, warehouse="./w")

    assert "CFG-016" in said
    assert message in said
    assert "s3cr3t" not in said


def test_properties_of_a_catalog_that_name_no_class_and_no_place_are_passed_on(
    tmp_path: Path,
) -> None:
    catalog = "{type: glue, properties: {s3.retry.num-retries: '9', glue.skip-archive: 'true'}}"

    given = spark_properties(target(tmp_path, catalog=catalog, aws="{region: eu-west-1}"))

    assert (given["s3.retry.num-retries"], given["glue.skip-archive"]) == ("9", "true")


@pytest.mark.parametrize("tls", ["", "?sslmode=disable", "?sslmode=require", "?sslmode=verify-ca"])
def test_a_catalog_elsewhere_is_verified_or_said_not_to_be(tmp_path: Path, tls: str) -> None:
    def catalog(host: str, more: str = "") -> str:
        return f"{{uri: 'jdbc:postgresql://{host}/lake{tls}'{more}}}"

    said = error(tmp_path / "a", catalog=catalog("db.acme"), warehouse="./w")

    assert "CFG-044" in said
    assert "polynya.yml:8:" in said
    allowed = target(
        tmp_path / "b", catalog=catalog("db.acme", ", allow_unverified: true"), warehouse="./w"
    )
    assert allowed.database is not None
    for host in ("localhost", "127.0.0.1", "[::1]"):
        assert target(tmp_path / "c", catalog=catalog(host), warehouse="./w").database is not None


@pytest.mark.parametrize("password", ["s3cr3t", "${env:LAKE_PASSWORD:-s3cr3t}", "x${env:HOME}"])
def test_a_password_never_stands_in_a_file(tmp_path: Path, password: str) -> None:
    catalog = f"{{uri: 'jdbc:postgresql://db/lake', user: ann, password: \"{password}\"}}"

    said = error(tmp_path, catalog=catalog, warehouse="./w")

    assert "CFG-035" in said
    assert "polynya.yml:" in said
    assert "s3cr3t" not in said


@pytest.mark.parametrize(
    ("settings", "code", "message"),
    [
        ({"catalog": None}, "CFG-016", "`catalog: glue`"),
        ({"catalog": "glu"}, "CFG-009", "did you mean `glue`?"),
        ({"warehouse": "./w"}, "CFG-016", "the Glue catalog needs a warehouse on S3"),
        ({"landing": "s3://acme-lake/in"}, "CFG-016", "the same folder"),
        ({"config": "s3://acme-landing/shop/config"}, "CFG-016", "config and landing"),
        ({"landing": "s3a://acme/x"}, "CFG-018", "`s3://BUCKET/PREFIX`"),
        ({"landing": "s3://Acme/x"}, "CFG-009", "is not the name of an S3 bucket"),
        ({"landing": "s3://acme/x//y"}, "CFG-011", "empty part"),
        ({"landing": "s3://acme/../y"}, "CFG-011", "leaves its folder"),
        ({"catalog": "{type: glue, uri: 'jdbc:x'}"}, "CFG-016", "`uri` belongs to a JDBC"),
        (
            {"catalog": "{uri: 'jdbc:mysql://me:secret@db/lake'}", "warehouse": "./w"},
            "CFG-016",
            "no driver for the catalog `jdbc:mysql:`",
        ),
        (
            {"catalog": "{type: glue, properties: {s3.endpoint: 'http://10.0.0.1'}}"},
            "CFG-016",
            "`aws.endpoint`",
        ),
        *(
            (
                {"catalog": f"{{type: glue, properties: {{{name}: x}}}}"},
                "CFG-016",
                "is not one that a project may set",
            )
            for name in (
                "catalog-impl",
                "client.factory",
                "client.assume-role.arn",
                "io-impl",
                "http-client.proxy-endpoint-x",
                "metrics-reporter-impl",
                "s3.access-key-id",
                "s3.client-factory-impl",
                "s3.write.table-tag-enabled-x",
                "table-default.write.location-provider.impl",
                "warehouse",
            )
        ),
        ({"catalog": "{type: glue, id: '12'}"}, "CFG-009", "targets.dev.catalog.id"),
        ({"aws": "{region: Frankfurt}"}, "CFG-009", "not a region"),
        ({"aws": "{regoin: eu-central-1}"}, "CFG-007", "did you mean `region`?"),
        ({"aws": "{kms_key: alias/x}"}, "CFG-009", "ARN of a KMS key"),
        ({"aws": "{endpoint: 'http://10.0.0.1:80'}"}, "CFG-009", "allow_remote_endpoint"),
        ({"aws": "{endpoint: 'http://u:p@127.0.0.1'}"}, "CFG-009", "not an address"),
        (
            {"aws": "{endpoint: 'http://minio.lan', allow_remote_endpoint: true}"},
            "CFG-009",
            "use https",
        ),
        (
            {"landing": "./in", "warehouse": "./w", "catalog": None, "aws": "{}"},
            "CFG-016",
            "nothing of this target is on AWS",
        ),
        ({"idle_poll": "1s"}, "CFG-009", "targets.dev.idle_poll"),
        (
            {"landing": "./in", "warehouse": "./w", "catalog": None, "idle_poll": "5s"},
            "CFG-016",
            "a folder is looked at every two seconds",
        ),
        ({"engine": "spark://10.0.0.5"}, "CFG-009", "such as `spark://10.0.0.5:7077`"),
        ({"engine": "yarn"}, "CFG-009", "such as `spark://10.0.0.5:7077`"),
        ({"engine": "spark://u:p@10.0.0.5:7077"}, "CFG-009", "such as `spark://10.0.0.5:7077`"),
        ({"engine": "spark://10.0.0.5:70777"}, "CFG-009", "such as `spark://10.0.0.5:7077`"),
        ({"engine": "spark://10.0.0.5:7077"}, "CFG-016", "with an address of this machine"),
        (
            {"engine": "{master: 'spark://a:1,127.0.0.1:2'}"},
            "CFG-016",
            "an address of this machine",
        ),
        ({"engine": "{master: 'spark://a:1', memory: 2t}"}, "CFG-009", "such as `2g` or `900m`"),
        ({"engine": "{master: 'spark://a:1', python: bin/x}"}, "CFG-009", "an absolute path"),
        ({"engine": "{master: 'spark://a:1', hots: b}"}, "CFG-007", "did you mean `host`?"),
    ],
)
def test_what_cannot_work_is_refused(
    tmp_path: Path, settings: dict[str, str | None], code: str, message: str
) -> None:
    said = error(tmp_path, **settings)

    assert said.startswith(f"POLYNYA-{code}")
    assert message in said
    assert "targets.dev" in said


def test_a_spark_cluster_in_short_and_in_full(tmp_path: Path) -> None:
    near = target(tmp_path / "a", engine="spark://127.0.0.1:7077").cluster
    far = "{master: 'spark://ten:7077,[::1]:1', host: 10.0.0.4, python: /opt/python, memory: 2g}"

    assert target(tmp_path / "b").cluster is None
    assert near == SparkCluster("spark://127.0.0.1:7077", "127.0.0.1")
    cluster = target(tmp_path / "c", engine=far).cluster
    assert cluster is not None
    assert (cluster.host, cluster.python, cluster.memory) == ("10.0.0.4", "/opt/python", "2g")
    assert cluster.addresses == (("ten", 7077), ("::1", 1))


def test_a_catalog_behind_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_CLIENT", "polynya:s3cr3t")
    settings = "type: rest, uri: 'https://lake.acme/api/catalog/', warehouse: sales, prefix: p/q, "
    login = (
        'credential: "${env:LAKE_CLIENT}", scope: all, '
        "oauth2_server_uri: 'https://lake.acme/api/catalog/v1/oauth/tokens'"
    )
    more = ", vended_credentials: true, properties: {rest-page-size: '100'}"

    aws = "{region: eu-central-1}"

    served = target(tmp_path, catalog=f"{{{settings}{login}{more}}}", aws=aws)

    assert served.rest is not None
    assert (served.on_glue, served.database) == (False, None)
    assert served.rest.text == "https://lake.acme/api/catalog (sales)"
    properties = spark_properties(served)
    assert "s3cr3t" not in f"{served!r} {served} {properties}"
    assert secret_properties(served) == {"credential": "polynya:s3cr3t"}
    assert properties["type"] == "rest"
    assert properties["uri"] == "https://lake.acme/api/catalog"
    assert (properties["warehouse"], properties["prefix"]) == ("sales", "p/q")
    assert properties["header.X-Iceberg-Access-Delegation"] == "vended-credentials"
    assert properties["oauth2-server-uri"].endswith("/v1/oauth/tokens")
    assert (properties["scope"], properties["rest-page-size"]) == ("all", "100")
    assert properties["io-impl"].endswith("S3FileIO")


def test_requests_to_a_catalog_of_aws_are_signed(tmp_path: Path) -> None:
    uri = "https://s3tables.eu-central-1.amazonaws.com/iceberg"
    signed = f"{{type: rest, uri: '{uri}', sigv4: {{name: s3tables, region: eu-central-1}}}}"
    region = "{region: eu-central-1}"

    properties = spark_properties(target(tmp_path, catalog=signed, aws=region))

    assert properties["rest.sigv4-enabled"] == "true"
    assert properties["rest.signing-name"] == "s3tables"
    assert properties["rest.signing-region"] == "eu-central-1"
    assert "header.X-Iceberg-Access-Delegation" not in properties


_HTTPS = "type: rest, uri: 'https://lake.acme'"


@pytest.mark.parametrize(
    ("catalog", "message"),
    [
        ("{type: rest}", "has no address"),
        ("{type: rest, uri: 'ftp://lake.acme'}", "not an address"),
        ("{type: rest, uri: 'https://'}", "not an address"),
        ("{type: rest, uri: 'https://ann:s3cr3t@lake.acme'}", "has a login in it"),
        ("{type: rest, uri: 'https://lake.acme/?a=b'}", "has a query"),
        ("{type: rest, uri: 'http://lake.acme'}", "without TLS"),
        ("{type: rest, uri: 'https://169.254.169.254/a'}", "link-local"),
        ("{type: rest, uri: 'https://0xa9fea9fe'}", "link-local"),
        ("{type: rest, uri: 'https://[::ffff:169.254.1.1]/'}", "link-local"),
        ("{type: rest, uri: 'https://[fd00:ec2::254]/'}", "link-local"),
        ("{type: rest, uri: 'https://lake.acme', user: ann}", "belong to a catalog on PostgreSQL"),
        (f"{{{_HTTPS}, scope: all}}", "`scope` is for `credential`"),
        (f"{{{_HTTPS}, sigv4: {{name: glue, region: eu-west-1}}}}", "a warehouse on S3"),
        (f"{{{_HTTPS}, vended_credentials: true}}", "a warehouse on S3"),
        ("{uri: 'jdbc:sqlite:x.db', warehouse: sales}", "belongs to a REST catalog"),
        (f"{{{_HTTPS}, properties: {{io-impl: evil.Io}}}}", "not one that a project may set"),
        (f"{{{_HTTPS}, properties: {{header.Authorization: x}}}}", "not one that a project may"),
        (f"{{{_HTTPS}, token: s3cr3t}}", "a token"),
        (f"{{{_HTTPS}, token: '${{env:T:-s3cr3t}}'}}", "a token"),
        (f"{{{_HTTPS}, credential: 'a:s3cr3t'}}", "a credential"),
    ],
)
def test_what_a_rest_catalog_cannot_be_told(tmp_path: Path, catalog: str, message: str) -> None:
    with pytest.raises(ConfigErrors) as caught:
        target(tmp_path, catalog=catalog, warehouse="./w")

    said = "\n".join(str(one) for one in caught.value.errors)
    assert message in said
    assert "s3cr3t" not in said


def test_a_rest_catalog_without_tls_has_to_be_allowed(tmp_path: Path) -> None:
    open_one = "{type: rest, uri: 'http://lake.acme', allow_unencrypted: true}"
    near = "{type: rest, uri: 'http://127.0.0.1:8181'}"

    assert target(tmp_path / "a", catalog=open_one, warehouse="./w").rest is not None
    assert target(tmp_path / "b", catalog=near, warehouse="./w").rest is not None
