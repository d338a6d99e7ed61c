"""Files as people have them: what is proposed for each, and that no record of them is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from polynya.cli.main import main
from polynya.model.loader import load_project
from polynya.proposal.proposal import TriedProposal, proposed
from polynya.proposal.samples import found_files
from tests.proposal.cases import CASES, SPELLED, Case, json_lines, lines


def tried(tmp_path: Path, case: Case) -> TriedProposal:
    """The proposal for the only family of a file."""
    (tmp_path / case.name).write_bytes(case.content)
    found = found_files(str(tmp_path / case.name))
    (family,) = found.families
    return proposed(found, family, "lake")


def check(tmp_path: Path, case: Case) -> None:
    made = tried(tmp_path, case)

    proposal = made.proposal
    assert proposal.format.value == case.format
    assert {name: one.value for name, one in proposal.landing.items()} == case.landing
    columns = {name: one.value for name, one in proposal.columns.items()}
    assert columns | case.columns == columns
    key, sequence = proposal.events.key, proposal.events.sequence
    assert (key and key.value, sequence and sequence.value) == (case.key, case.sequence)
    assert made.outcome.copied == made.outcome.records == case.records
    assert made.outcome.quarantined == {}
    settings = [*proposal.landing.values(), *proposal.columns.values()]
    assert all(setting.reason for setting in settings)


@pytest.mark.parametrize("name", CASES)
def test_each_record_of_a_file_is_kept(tmp_path: Path, name: str) -> None:
    check(tmp_path, CASES[name])


@pytest.mark.parametrize("name", SPELLED)
def test_each_record_of_documents_and_local_styles_is_kept(tmp_path: Path, name: str) -> None:
    check(tmp_path, SPELLED[name])


def test_types_need_no_more_declarations_than_inference_lacks(tmp_path: Path) -> None:
    made = tried(tmp_path, CASES["commas"])

    assert made.proposal.columns == {}


def test_what_no_proposal_saves_is_said(tmp_path: Path) -> None:
    content = lines("id,qty", *(f"{n},{n}" for n in range(20)), "Total: 20 records")

    made = tried(tmp_path, Case("a.csv", content, 21))

    assert (made.outcome.copied, made.outcome.quarantined) == (20, {"bad_csv": 1})
    assert str(made.outcome).startswith("a run copies 20 of 21 records; to QUARANTINE go 1 bad_csv")


def test_lines_that_are_not_records_are_counted(tmp_path: Path) -> None:
    made = tried(tmp_path, CASES["comments"])

    assert made.outcome.no_records == {"header": 1, "comment": 3}


def test_a_word_that_is_null_in_texts_too_is_said(tmp_path: Path) -> None:
    content = lines("country,population", "NA,2600000", "MX,NA", "ES,48000000")

    made = tried(tmp_path, Case("a.csv", content, 3))

    assert "also in 1 column of texts" in made.proposal.landing["null_value"].reason


@pytest.mark.parametrize(
    "name", ["a\n.csv", "smile \N{GRINNING FACE}.csv", "a\u2028b.csv", "x: y.csv"]
)
def test_any_name_of_a_file_gives_a_task_that_loads(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / name).write_bytes(lines("id", "1"))
    (folder / f"1{name}").write_bytes(lines("id", "1"))

    assert main(["init", str(tmp_path / "p"), "--from", str(folder)]) == 0

    assert load_project(tmp_path / "p").tasks


def test_replaced_records_are_counted(tmp_path: Path) -> None:
    made = tried(tmp_path, CASES["versions of records"])

    assert made.outcome.replaced == 1
    assert made.proposal.events.key is not None
    assert "would replace 1 of 3 records" in made.proposal.events.key.reason


def test_operations_tell_deletes_and_versions(tmp_path: Path) -> None:
    events = [
        {"userId": 1, "op": "I", "seq": 1, "eventTime": "2026-01-01T00:00:01Z"},
        {"userId": 1, "op": "D", "seq": 2, "eventTime": "2026-01-01T00:00:02Z"},
    ]

    made = tried(tmp_path, Case("users.jsonl", json_lines(*events), 2)).proposal.events

    assert made.key is not None
    assert made.deletes is not None
    assert made.timestamp is not None
    assert (made.key.value, made.deletes.value) == ("userId", "op = 'D'")
    assert (made.timestamp.value, made.left_out) == ("eventTime", ("op", "seq"))


def test_a_long_file_is_looked_at_all_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polynya.proposal.samples.SAMPLE_BYTES", 4096)
    content = lines("id,code", *(f"{n},{n}" for n in range(5000)), *(f"{n},x" for n in range(500)))

    made = tried(tmp_path, Case("a.csv", content, 5500))

    assert made.proposal.columns["code"].value == "string"
    assert not made.outcome.is_whole
    assert made.outcome.records < 1000


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-16-le", "windows-1252"])
@pytest.mark.parametrize("separator", ["\n", ",\n"])
def test_the_sample_of_a_long_file_is_read_in_its_encoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str, separator: str
) -> None:
    monkeypatch.setattr("polynya.proposal.samples.SAMPLE_BYTES", 4096)
    text = separator.join(f'{{"n": {n}, "city": "Køge"}}' for n in range(2000))
    text = f"[{text}]" if "," in separator else text

    made = tried(tmp_path, Case("a.json", text.encode(encoding), 2000))

    assert made.proposal.landing["encoding"].value == encoding
    assert not made.outcome.is_whole
    assert 10 < made.outcome.copied == made.outcome.records < 1000
