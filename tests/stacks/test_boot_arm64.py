"""The package that nodes fetch, booted on an arm64 machine in an emulator: `make boot-arm64`.

Python, Java and the system around them are those of Debian 12. Amazon Linux 2023 has an older C
library, so what the package asks of one is read from its files.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.glue import GlueCatalog

from polynya.cli.main import main as polynya
from polynya_constructs.cluster.instance_types import Architecture
from polynya_constructs.packaging.dependencies import build_dependencies
from polynya_constructs.packaging.package import Archive, Dependencies
from stacks.package import PACKAGES, PROJECT
from tests.aws import REGION, aws_server, client
from tests.projects import write_project
from tests.stacks.machine.arm64 import Arm64Machine, arm64_parts
from tests.stacks.machine.metadata import metadata_service
from tests.stacks.synthesis import Assembly
from tests.stacks.test_boot import CLUSTER, published, user_data

pytestmark = [
    pytest.mark.slow,
    pytest.mark.synth,
    pytest.mark.spark,
    pytest.mark.timeout(3600),
    pytest.mark.filterwarnings("ignore:Tried to parse"),
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="nodes have Python 3.11"),
]

#: Of Amazon Linux 2023: glibc 2.34, and libstdc++ of GCC 11.
NEWEST = {b"GLIBC": (2, 34), b"GLIBCXX": (3, 4, 29), b"CXXABI": (1, 3, 13)}
VERSION = re.compile(rb"\b(GLIBC|GLIBCXX|CXXABI)_(\d+(?:\.\d+)+)\b")
# e_machine of an ELF file, and the names by which jars tell apart what is for which machine.
X86_64, AARCH64 = 62, 183
OF_A_MACHINE = re.compile(r"-linux-(x86_64|aarch_64|riscv64)(?=\.jar$)")
#: Jars of PySpark with machine code for x86_64 alone. Spark keeps the list of old applications in
#: the one, and Hive's command line reads keys with the other; nodes do neither.
ONLY_X86_64 = {"leveldbjni-all-1.8.jar", "jline-2.14.6.jar"}

TARGET = """\
apiVersion: polynya/v1
kind: project
name: shop
targets:
  node:
    landing: s3://shop-landing
    warehouse: s3://shop-warehouse/tables
    config: s3://{configuration}/project
    catalog: glue
    aws: {{region: eu-central-1, endpoint: "{endpoint}"}}
"""
USERS = """\
apiVersion: polynya/v1
kind: storage
name: users
schema: shop
landing: {path: users, format: json}
datasets:
  - {name: users, path: "**/*", keys: [id], sequence_by: [n]}
"""
LANDED = [{"id": 1, "name": "Ann", "n": 1}, {"id": 2, "name": "Ben", "n": 1}]
# All machine code of the Python packages, as the loader of the machine takes it.
LOAD = """\
import ctypes, pathlib
place = pathlib.Path("/opt/polynya/dependencies/current/site-packages")
found = sorted([*place.rglob("*.so"), *place.rglob("*.so.*")])
for path in found:
    ctypes.CDLL(str(path))
print("loaded", len(found))
"""


@pytest.fixture(scope="module")
def dependencies() -> Archive:
    """The real ones, built as `make package` builds them, if they are not."""
    return build_dependencies(PROJECT, PACKAGES, Architecture.ARM64)


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    """A folder for the gigabytes of a machine, which do not outlive the test."""
    yield tmp_path / "scratch"
    shutil.rmtree(tmp_path / "scratch")


def machine_code(archive: Path) -> Iterator[tuple[str, bytes]]:
    """File by file, with the name of the package's file in which it is."""
    with tarfile.open(archive) as files:
        for member in files:
            stream = files.extractfile(member)
            if stream is not None and member.name.endswith(".jar"):
                with zipfile.ZipFile(stream) as jar:
                    for name in jar.namelist():
                        if re.search(r"\.(so|jnilib)\b", name):
                            yield Path(member.name).name, jar.read(name)
            elif stream is not None and stream.read(4) == b"\x7fELF":
                yield member.name, b"\x7fELF" + stream.read()


def test_machine_code_is_for_arm64_and_runs_with_the_libraries_of_nodes(
    dependencies: Archive,
) -> None:
    machines: dict[int, set[str]] = {X86_64: set(), AARCH64: set()}
    too_new = []
    for name, code in machine_code(dependencies.path):
        if code[:6] != b"\x7fELF\x02\x01":  # of another system, or of 32 bits
            continue
        machine = int.from_bytes(code[18:20], "little")
        machines.setdefault(machine, set()).add(OF_A_MACHINE.sub("", name))
        asked = {(library, tuple(map(int, version.split(b"."))))
                 for library, version in VERSION.findall(code)}  # fmt: skip
        if machine == AARCH64:
            too_new += [(name, *each) for each in asked if each[1] > NEWEST[each[0]]]

    assert machines[X86_64] - machines[AARCH64] == ONLY_X86_64
    assert too_new == []
    wheels = [name for name in machines[AARCH64] if not name.endswith(".jar")]
    assert len(wheels) > 50, wheels


def test_an_arm64_node_boots_and_copies_what_landed(
    assembly: Assembly,
    dependencies: Archive,
    scratch: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts = arm64_parts()
    script = user_data(assembly, "clustered/Cluster-cheap")
    stand_in = Dependencies.of(PROJECT, assembly.packages, Architecture.ARM64).built()
    assert stand_in is not None
    script = script.replace(stand_in.sha256, dependencies.sha256)
    script = script.replace("AGENT_OPTIONS='", "AGENT_OPTIONS='--target node ")
    script = script.replace("READY_SECONDS=360", "READY_SECONDS=1200")  # an emulator takes longer
    archives = scratch / "published"
    archives.mkdir(parents=True)
    shutil.copy(dependencies.path, archives / f"{dependencies.sha256}.tar")
    for source, key in published(assembly, "Clustercheap"):
        if source.get("path", "").endswith(".tar"):
            shutil.copy(source["folder"] / source["path"], archives / Path(key).name)
    (configuration,) = re.findall(r"^CONFIG='?s3://(\S+)/project'?$", script, re.MULTILINE)
    (stream,) = re.findall(r"--stream (\S+)", script)

    buckets = (configuration, "shop-landing", "shop-warehouse")
    with aws_server(*buckets) as endpoint, metadata_service(CLUSTER) as metadata:
        client("kinesis", endpoint).create_stream(StreamName=stream, ShardCount=1)
        for name in ("shop", "shop_internal"):
            client("glue", endpoint).create_database(DatabaseInput={"Name": name})
        body = "\n".join(map(json.dumps, LANDED)).encode()
        client("s3", endpoint).put_object(Bucket="shop-landing", Key="users/1.json", Body=body)
        target = TARGET.format(configuration=configuration, endpoint=endpoint)
        project = write_project(tmp_path / "project", project=target, users=USERS)
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
        assert polynya(["config", "push", "--project", str(project), "--target", "node"]) == 0

        machine = Arm64Machine(scratch, parts, metadata, archives, endpoint)
        node = machine.run(
            script,
            "uname -m && $BOOT && for second in {1..2000}; do"
            " ! grep -q batch.copied /var/log/polynya/agent.log || break; sleep 1; done;"
            f" /opt/polynya/venv/bin/python -c '{LOAD}'; systemctl stop polynya-agent",
            timeout=3000,
        )

        print(node.printed)
        assert node.printed.splitlines()[0] == "aarch64", node.printed
        assert "in service" in node.printed, node.printed + node.file("agent.log")
        said = [json.loads(line) for line in node.file("agent.log").splitlines() if line[:1] == "{"]
        copied = [line["rows_out"] for line in said if line.get("type") == "batch.copied"]
        assert copied == [len(LANDED)], node.file("agent.log")
        assert (said[-1]["type"], said[-1]["reason"]) == ("agent.stopped", "SIGTERM")
        assert node.calls == ["ready CONTINUE"]
        assert node.file("packages").split()[-5:-3] == [
            "python3.11", "java-17-amazon-corretto-headless",
        ]  # fmt: skip
        assert int(re.findall(r"^loaded (\d+)$", node.printed, re.MULTILINE)[0]) > 50
        properties = {"glue.endpoint": endpoint, "s3.endpoint": endpoint, "client.region": REGION}
        table = GlueCatalog("any", **properties).load_table(("shop_internal", "users_internal"))
        ids = table.scan(selected_fields=("id",)).to_arrow().column("id").to_pylist()
        assert {each for each in ids if each is not None} == {1, 2}  # others stand for files
