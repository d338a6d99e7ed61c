"""The package of the nodes goes to the bucket of assets by itself, not with the assembly."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import boto3
import pytest

from polynya.model.errors import DependencyError
from polynya_constructs.cluster.instance_types import Architecture
from polynya_constructs.packaging.package import Archive, Dependencies, published_key
from stacks import images, package
from stacks.publish import archives, publish
from stacks.settings.loader import Deployment
from stacks.settings.stage import StageConfig
from tests.aws import REGION, aws_server, client
from tests.stacks.synthesis import ROOT, Assembly

MOST = 200_000_000
"""CloudFormation takes 256 MB of a pipeline ("Quotas in AWS CodePipeline"); with room to grow."""

BUCKET = f"cdk-hnb659fds-assets-123456789012-{REGION}"


def stage(**settings: Any) -> StageConfig:
    head = {"apiVersion": "polynya/v1", "kind": "stage", "name": "dev"}
    return StageConfig.model_validate({**head, **settings})


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Any:
    with aws_server(BUCKET) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
        session = boto3.Session()
        session.stand_in = endpoint  # type: ignore[attr-defined]
        yield session


def built(folder: Path) -> Archive:
    path = folder / "a.tar"
    path.write_bytes(b"package")
    return Archive("a" * 64, path, hashlib.sha256(b"package").hexdigest())


def test_an_archive_is_uploaded_once_under_its_digest(session: Any, tmp_path: Path) -> None:
    archive = built(tmp_path)

    first, second = (publish(session, stage(), archive) for _ in range(2))

    key = published_key(archive.sha256)
    assert first == f"s3://{BUCKET}/{key} was uploaded"
    assert second == f"s3://{BUCKET}/{key} is there already"
    body = client("s3", session.stand_in).get_object(Bucket=BUCKET, Key=key)["Body"].read()
    assert body == b"package"


def test_an_upload_that_ended_early_is_done_again(session: Any, tmp_path: Path) -> None:
    archive = built(tmp_path)
    client("s3", session.stand_in).put_object(
        Bucket=BUCKET, Key=published_key(archive.sha256), Body=b"pack"
    )

    assert publish(session, stage(), archive).endswith("was uploaded")


def test_it_goes_where_the_cdk_deploys(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-3")
    monkeypatch.setenv("AWS_REGION", REGION)

    assert publish(boto3.Session(), stage(), built(tmp_path)).startswith(f"s3://{BUCKET}/")


def test_a_region_that_was_not_bootstrapped_is_said(session: Any, tmp_path: Path) -> None:
    with pytest.raises(DependencyError, match="there is no such bucket in this region"):
        publish(session, stage(region="eu-west-3"), built(tmp_path))


def test_what_is_not_built_is_not_deployed(tmp_path: Path) -> None:
    with pytest.raises(DependencyError) as raised:
        archives(stage(clusters=[{"name": "main", "maximum": 1}]), ROOT, tmp_path)

    assert raised.value.code == "POLYNYA-STG-004"
    # The network agent boots from it, too, with processors of its own.
    agent = stage(
        clusters=[{"name": "main", "architecture": "x86_64", "boot": "tests/stacks/boot.sh"}],
        network_agent={},
    )
    assert agent.package_architectures == (Architecture.ARM64,)
    assert agent.image_architectures == (Architecture.ARM64, Architecture.X86_64)
    with pytest.raises(DependencyError, match="the package of arm64 nodes is not built"):
        archives(agent, ROOT, tmp_path)
    assert archives(stage(), ROOT, tmp_path) == []


def test_what_builds_and_what_looks_up_images_knows_the_network_agent_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = {"name": "main", "architecture": "x86_64", "boot": "tests/stacks/boot.sh"}
    agent = stage(clusters=[cluster], network_agent={}, region=REGION)
    looked_up: list[Architecture] = []
    for module in (package, images):
        monkeypatch.setattr(module, "load_deployment", lambda _: Deployment((agent,), None))
    monkeypatch.setattr(images, "newest", lambda _, each: looked_up.extend(each) or {})

    assert package._wanted(None, "dev") == [Architecture.ARM64]
    assert images.main(["--stage", "dev"]) == 0
    assert looked_up == [Architecture.ARM64, Architecture.X86_64]


def size(directory: Path) -> int:
    """What a pipeline zips: every file of the assembly."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


@pytest.mark.synth
def test_the_assembly_of_the_pipeline_has_no_package(assembly: Assembly) -> None:
    assert Dependencies.of(ROOT, assembly.packages, Architecture.ARM64).built()
    assert size(assembly.directory) < MOST


@pytest.mark.synth
def test_a_package_that_a_pipeline_cannot_take_stays_outside(tmp_path: Path) -> None:
    """220 MB, a file of holes; as an asset, which is the planted fault, it is in the assembly."""
    import aws_cdk as cdk
    from aws_cdk import aws_s3_assets as assets

    from polynya_constructs.runtime_package import RuntimePackage

    wanted = Dependencies.of(ROOT, tmp_path, Architecture.ARM64)
    empty = tmp_path / "empty"
    empty.mkdir()
    wanted.write({"site-packages": empty, "jars": empty})
    with wanted.path.open("r+b") as archive:
        archive.truncate(220_000_000)
    manifest = wanted.manifest.read_text()
    wanted.manifest.write_text(manifest.replace('"bytes": ', '"bytes": 220000000, "was": '))
    assert wanted.built()

    for name, fault in (("right", False), ("planted", True)):
        app = cdk.App(outdir=str(tmp_path / name))
        stack = cdk.Stack(app, "Stack")
        RuntimePackage(
            stack, "Runtime", architecture=Architecture.ARM64, project=ROOT, folder=tmp_path
        )
        if fault:
            assets.Asset(stack, "Asset", path=str(wanted.path), asset_hash="0" * 64)
        app.synth()
        assert (size(tmp_path / name) > MOST) is fault
