"""Sources that could do harm are refused, and what cannot be read costs only itself."""

from __future__ import annotations

import json
import stat
import zipfile

import pytest

from polynya.model.errors import ConfigError
from polynya.qlik import sources
from polynya.qlik.importing import imported
from tests.qlik.exports import SMALL, write_export

ALIASES = "a0: &a0 x\n" + "".join(
    f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]\n" for n in range(8)
)


def archive(place, *members: tuple[zipfile.ZipInfo | str, bytes]):
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as file:
        for path, text in SMALL.items():
            file.writestr(path, text)
        for name, content in members:
            file.writestr(name, content)
    return place


def link(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        ("../evil.yaml", "leaves the folder"),
        ("/etc/evil.yaml", "leaves the folder"),
        ("qtcp_tasks/../../evil.yaml", "leaves the folder"),
        ("C:\\evil.yaml", "leaves the folder"),
        (link("qtcp_tasks/evil.yaml"), "a link or a device"),
    ],
)
def test_an_archive_that_leaves_its_folder_is_refused(tmp_path, member, reason):
    with pytest.raises(ConfigError, match=reason) as refused:
        imported(archive(tmp_path / "export.zip", (member, b"x: 1")))

    assert refused.value.code == "POLYNYA-QLK-001"


def test_a_bomb_is_cut_at_the_limit_of_a_file(tmp_path):
    bomb = ("qtcp_tasks/orders/datasets/bomb.yaml", b"#" * 50_000_000)

    report = imported(archive(tmp_path / "export.zip", bomb)).report

    lost = [line for line in report.lines if line.where.endswith("bomb.yaml")]
    assert [line.why for line in lost] == ["larger than 1000000 bytes"]


def test_all_files_together_have_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "_MAX_BYTES", 1500)

    with pytest.raises(ConfigError, match="more than"):
        imported(archive(tmp_path / "export.zip"))


def test_links_of_a_folder_are_not_followed(tmp_path):
    source = write_export(tmp_path / "export", SMALL)
    (tmp_path / "secret.yaml").write_text("password: hunter2")
    (source / "qtcp_tasks" / "orders" / "datasets" / "evil.yaml").symlink_to(
        tmp_path / "secret.yaml"
    )
    (source / "linked").symlink_to(tmp_path, target_is_directory=True)

    made = imported(source)

    left_out = {
        line.where for line in made.report.lines if "link" in line.why or "plain" in line.why
    }
    assert left_out == {"qtcp_tasks/orders/datasets/evil.yaml", "linked"}
    assert "hunter2" not in "".join(made.files().values()) + made.report.as_text()


@pytest.mark.parametrize(
    "text",
    [
        "[" * 5000,
        ALIASES,
        "x: !!python/object/apply:os.system [id]\n\x00",
        "\t- : :",
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_costs_only_itself(tmp_path, text):
    path = "qtcp_tasks/orders/datasets/bad.yaml"

    made = imported(write_export(tmp_path, SMALL, **{path: text}))

    assert [line for line in made.report.lines if line.where.startswith(path)]
    assert "orders" in made.tasks


@pytest.mark.parametrize("text", ["[" * 100_000, '{"tasks": ' * 200 + "1" + "}" * 200, "{", "[1]"])
def test_json_that_is_no_export_is_refused(tmp_path, text):
    (tmp_path / "export.json").write_text(text)

    with pytest.raises(ConfigError) as refused:
        imported(tmp_path / "export.json")

    assert refused.value.code in {"POLYNYA-QLK-001", "POLYNYA-QLK-002"}


def test_a_key_that_occurs_twice_is_named(tmp_path):
    (tmp_path / "export.json").write_text('{"tasks": [{"task": {"name": "a", "name": "b"}}]}')

    report = imported(tmp_path / "export.json").report

    assert any("occurs twice" in line.why for line in report.lines)


def test_two_projects_in_one_folder_are_refused(tmp_path):
    for name in ("a", "b"):
        write_export(tmp_path / name, SMALL)

    with pytest.raises(ConfigError, match="several projects"):
        imported(tmp_path)


def test_a_damaged_archive_is_refused(tmp_path):
    data = archive(tmp_path / "export.zip").read_bytes()
    (tmp_path / "cut.zip").write_bytes(data[: len(data) // 2])

    with pytest.raises(ConfigError) as refused:
        imported(tmp_path / "cut.zip")

    assert refused.value.code == "POLYNYA-QLK-001"
    assert json.dumps(str(refused.value))
