"""Rules of the tree that no other tool checks."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCKS = [ROOT / "requirements.txt", *sorted((ROOT / "requirements").glob("*.txt"))]


def tracked_files() -> list[Path]:
    """Files of the repository, as git knows them."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def test_constructs_is_never_a_package_itself() -> None:
    """It would shadow the pip package `constructs` and break every synth."""
    assert not (ROOT / "constructs" / "__init__.py").exists()
    found = find_spec("constructs")  # to import it would start Node.js
    assert found is not None
    assert Path(found.origin or "").parent != ROOT / "constructs"


def test_locks_name_packages_and_hashes_but_no_place() -> None:
    assert len(LOCKS) == 8
    for lock in LOCKS:
        text = lock.read_text()
        assert re.search(r"://|--(index|extra-index|find-links|trusted)", text) is None, lock
        pins = re.findall(r"^([a-z0-9.-]+)==", text, re.MULTILINE)
        assert pins, lock
        assert text.count("==") == len(pins), lock
        # A marker such as ` ; python_version < "3.14"` may stand between version and hashes.
        hashed = re.findall(r"^\S+==\S+(?: ; .+)? \\\n    --hash=sha256:", text, re.MULTILINE)
        assert len(hashed) == len(pins)
    assert '"resolved"' not in (ROOT / "package-lock.json").read_text()


def test_the_lock_has_what_the_runtime_asks_for() -> None:
    project = tomllib.loads((ROOT / "runtime" / "pyproject.toml").read_text())["project"]
    pinned = {
        name.replace("-", "_")
        for lock in LOCKS
        for name in re.findall(r"^([a-z0-9.-]+)==", lock.read_text(), re.MULTILINE)
    }
    asked = project["dependencies"] + project["optional-dependencies"]["jdk"]
    for requirement in asked:
        name = re.match(r"[A-Za-z0-9._-]+", requirement)
        assert name is not None
        assert re.sub(r"[._-]+", "_", name[0]).lower() in pinned, requirement
    assert project["optional-dependencies"]["jdk"][0] in (ROOT / "requirements/jdk.txt").read_text()


def test_no_registry_host_and_no_path_of_one_machine_in_the_tree() -> None:
    # Put together here so that this file does not itself hold what it looks for.
    hosts = ["pypi org", "pythonhosted org", "npmjs org", "maven org", "maven apache org/maven2"]
    pattern = "|".join(re.escape(host.replace(" ", ".")) for host in hosts)
    pattern += r"|[\"' =(:]/" + r"(?:work|root|farm)/[a-z]"
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in tracked_files()
        for match in re.finditer(pattern.encode(), path.read_bytes())
    ]
    assert found == []


def test_every_dependency_has_its_line_in_the_decision_record() -> None:
    record = (ROOT / "docs" / "adr" / "0000-dependencies.md").read_text()
    runtime = tomllib.loads((ROOT / "runtime" / "pyproject.toml").read_text())["project"]
    asked = runtime["dependencies"] + runtime["optional-dependencies"]["jdk"]
    for file in ("consumers.in", "dev.in", "docs.in"):
        tools = (ROOT / "requirements" / file).read_text().splitlines()
        asked += [line for line in tools if line and not line.startswith(("#", "-"))]
    for requirement in asked:
        name = re.split(r"[\[<>=~!]", requirement)[0]
        assert f"| {name} |" in record, f"{name} has no line in {record[:40]!r}…"


#: A module of the CDK where it is imported.
CDK_MODULE = re.compile(r"^\s*from aws_cdk import (\w+)", re.MULTILINE)
#: Packages that another required package imports when it is there, not Polynya itself.
ASKED_FOR_BY = {"backports.zstd": "fastavro"}
#: Packages that are imported under another name than their own.
IMPORTED_AS = {
    "prometheus-client": "prometheus_client",
    "jpype1": "jpype",
    "python-dateutil": "dateutil",
    "pyyaml": "yaml",
    "typing-extensions": "typing_extensions",
}


def test_every_required_package_is_imported() -> None:
    runtime = tomllib.loads((ROOT / "runtime" / "pyproject.toml").read_text())["project"]
    required = {re.split(r"[\[<>=~!; ]", one)[0] for one in runtime["dependencies"]}
    unused = set(required)
    for path in sources("runtime/polynya"):
        text = path.read_text("utf-8")
        # A syntax tree of each module would take seven seconds.
        if any(IMPORTED_AS.get(name, name) in text for name in unused):
            modules = imported(text)
            unused = {name for name in unused if not is_among(IMPORTED_AS.get(name, name), modules)}

    assert unused == ASKED_FOR_BY.keys()
    assert set(ASKED_FOR_BY.values()) <= required


def sources(folder: str) -> list[Path]:
    """The Python files below a folder of the repository."""
    return [p for p in tracked_files() if p.suffix == ".py" and p.is_relative_to(ROOT / folder)]


def imported(text: str) -> set[str]:
    """Full names of the modules that a file imports, anywhere in it."""
    nodes = list(ast.walk(ast.parse(text)))
    plain = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    return plain | {
        node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module
    }


def is_among(package: str, modules: set[str]) -> bool:
    """Whether one of the modules is the package, or in it."""
    return any(f"{module}.".startswith(f"{package}.") for module in modules)


def test_mypy_reads_each_module_of_the_cdk_that_is_imported() -> None:
    """Of a module that it skips, it checks nothing."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    read = {
        module
        for one in settings["overrides"]
        if one.get("follow_imports") == "normal"
        for module in one["module"]
    }
    texts = [
        path.read_text("utf-8")
        for folder in ("app.py", "stacks", "constructs")
        for path in sources(folder)
    ]
    named = {f"aws_cdk.{name}" for text in texts for name in CDK_MODULE.findall(text)}

    assert named | {"aws_cdk"} == read
