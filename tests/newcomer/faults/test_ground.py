"""Full disks and read-only folders are such, and a fix that does not work is found."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.newcomer.faults.ground import RUN, Ground
from tests.newcomer.faults.places import can_mount, enlarge, on_small_disk, read_only
from tests.oracle.packs.driver import Printed

needs_mounts = pytest.mark.skipif(not can_mount(), reason="no mount namespaces here")
ERROR = "error[POLYNYA-LAKE-041]: lost\n  fix: {fix}; more: polynya explain POLYNYA-LAKE-041\n"


@dataclass
class Told:
    """A command that ends with these codes, by its first word, and the calls of it."""

    codes: dict[str, int] = field(default_factory=dict)
    calls: list[tuple[str, ...]] = field(default_factory=list)

    def call(self, *arguments: str, **_: Any) -> Printed:
        self.calls.append(arguments)
        return Printed(self.codes.get(arguments[0], 0), "", "said")


def ground(told: Told, *damage: str) -> Ground:
    shop: Any = SimpleNamespace(polynya=told, damage=lambda: list(damage))
    return Ground(shop, Path(), {})


def test_the_commands_that_an_error_names_are_run_as_they_stand() -> None:
    told = Told()

    found = ground(told).fixed_by(Printed(1, "", ERROR.format(fix="`polynya doctor --repair`")), 1)

    assert found == []
    assert told.calls == [("doctor", "--repair")]


def test_a_fix_that_fails_or_is_not_named_is_found() -> None:
    named = Printed(1, "", ERROR.format(fix="run `polynya adopt`"))
    silent = Printed(1, "", ERROR.format(fix="think"))

    (failed,) = ground(Told({"adopt": 1})).fixed_by(named, 1)
    (missing,) = ground(Told()).fixed_by(silent, 1)

    assert failed.startswith("polynya adopt: exit 1")
    assert missing == "the fix names 0 commands, 1 wanted"


def test_a_run_after_the_fix_that_fails_or_damages_is_found() -> None:
    assert ground(Told()).goes_on() == []
    assert ground(Told({RUN[0]: 4})).goes_on() == ["the next run: exit 4\nsaid"]
    assert ground(Told(), "orders: 1 rows missing").goes_on() == ["orders: 1 rows missing"]


@needs_mounts
def test_a_small_disk_is_full_for_one_command_and_is_enlarged_with_what_is_on_it(
    tmp_path: Path,
) -> None:
    folder, kept = tmp_path / "disk", tmp_path / "kept"
    folder.mkdir()
    (folder / "before").write_text("kept")
    write = "echo small > small && head -c 900000 /dev/zero > large"

    done = subprocess.run(
        [*on_small_disk(folder, 100, kept), "sh", "-c", f"cd {folder} && {write}"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert [file.name for file in folder.iterdir()] == ["before"]
    enlarge(folder, kept)

    assert done.returncode != 0
    assert "No space left" in done.stderr
    assert {file.name for file in folder.iterdir()} == {"before", "small", "large"}
    assert (folder / "before").read_text() == "kept"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["disk"]


@needs_mounts
def test_a_read_only_folder_is_so_for_one_command(tmp_path: Path) -> None:
    line = [*read_only(tmp_path), "touch", str(tmp_path / "new")]

    done = subprocess.run(line, capture_output=True, text=True)

    assert "Read-only file system" in done.stderr
    (tmp_path / "new").touch()
