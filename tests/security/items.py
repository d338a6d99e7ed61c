"""What the security suite covers: each item of the review, and the tests that hold it.

`python -m tests.security` prints the tests, and `make security` runs all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Item:
    """What must never happen, and what holds it: files of tests, or `FILE::TEST`."""

    never: str
    tests: tuple[str, ...]


_ONE_STATEMENT: Final = "test_a_condition_of_a_load_runs_no_second_statement"
_ONLY_ROWS: Final = "test_no_accepted_condition_does_more_than_choose_rows"

ITEMS: Final[Mapping[str, Item]] = {
    "S1": Item(
        "a landed object chooses where secrets are sent, or which of them",
        (
            "tests/security/test_landed_secrets.py",
            "tests/security/test_tries.py::test_a_run_sends_nothing_to_the_registry_of_a_footer",
            "tests/streams/rest/test_servers.py",
            "tests/formats/contents/test_registry.py",
            "tests/model/test_transforms.py",
        ),
    ),
    "S2": Item(
        "a reference is resolved that stands in no file of the project",
        (
            "tests/security/test_landed_secrets.py",
            "tests/model/test_bindings.py",
            "tests/model/test_connections.py",
            "tests/model/test_http_sources.py",
            "tests/model/test_landings.py",
            "tests/store/test_vault.py",
            "tests/cli/test_propose.py",
            "tests/proposal/test_databases.py",
            "tests/proposal/test_topics.py",
        ),
    ),
    "S3": Item(
        "what stands inside quotes of a CSV file is read as records",
        ("tests/formats/records/test_csv_dialects.py",),
    ),
    "S4": Item(
        "a statement of a reader writes, runs a command or code, or reads a file",
        (
            "tests/security/test_statements.py",
            "tests/security/test_tries.py::test_hostile_parts_are_refused_wherever_they_stand",
            "tests/transform/test_expressions.py",
            "tests/cli/test_query.py",
        ),
    ),
    "S5": Item(
        "a small landed file takes any amount of memory, disk or time",
        (
            "tests/formats/test_begun.py",
            "tests/formats/test_poison_files.py",
            "tests/formats/test_compression.py",
            "tests/formats/test_zip_archives.py",
            "tests/formats/test_workbooks.py",
            "tests/formats/records/test_json_documents.py",
            "tests/formats/records/test_long_records.py",
            "tests/formats/contents/test_hostile_messages.py",
            "tests/store/test_local_faults.py",
        ),
    ),
    "S6": Item(
        "a condition of a setting runs a second statement at the source",
        (
            "tests/security/test_source_conditions.py",
            "tests/security/test_tries.py::test_no_accepted_condition_leaves_its_parentheses",
            f"tests/capture/postgresql/test_views.py::{_ONE_STATEMENT}",
            f"tests/capture/postgresql/test_views.py::{_ONLY_ROWS}",
            f"tests/capture/mysql/test_snapshot.py::{_ONE_STATEMENT}",
        ),
    ),
    "S7": Item(
        "a setting names a class, a command, a jar or a file of the node",
        (
            "tests/streams/kafka/test_properties.py",
            "tests/capture/generic/test_properties.py",
            "tests/model/test_landings.py",
            "tests/model/test_captures.py",
            "tests/model/config/test_targets.py",
            "tests/security/test_named_by_the_machine.py",
            "tests/model/test_connections.py",
            "tests/cluster/submit/test_workers.py",
            "tests/store/test_vault.py",
        ),
    ),
    "umask": Item(
        "another user of the machine reads logs or scratch files",
        ("tests/security/test_own_files.py",),
    ),
    "S8": Item(
        "a right or a resource that is missing for a moment sets a good file aside",
        (
            "tests/store/test_local_faults.py",
            "tests/formats/test_unanswered.py",
        ),
    ),
    "S13": Item(
        "a file that is replaced by one of equal size is passed over without a word",
        ("tests/formats/test_discovery.py", "tests/formats/test_read_files.py"),
    ),
    "S9": Item(
        "a password goes to another machine on an unprotected way, and no setting says so",
        (
            "tests/model/test_landings.py",
            "tests/model/test_captures.py",
            "tests/model/config/test_targets.py",
            "tests/proposal/test_databases.py",
            "tests/proposal/test_topics.py",
        ),
    ),
    "S10": Item(
        "a value or the name of a file commands a terminal",
        (
            "tests/security/test_terminal.py",
            "tests/security/test_tries.py::test_no_character_is_sent_that_a_terminal_obeys",
            (
                "tests/derived/test_column_graph.py::"
                "test_names_from_outside_are_only_text_in_every_form"
            ),
        ),
    ),
    "S11": Item(
        "a pattern takes more time than the text that it is held against",
        (
            "tests/model/test_wildcards.py",
            "tests/formats/contents/test_hostile_messages.py",
        ),
    ),
    "S12": Item(
        "an archive of a project writes outside its folder, overwrites a file or fills the memory, "
        "or one that is passed on holds a secret",
        ("tests/store/test_project_archive.py",),
    ),
    "S14": Item(
        "a request to a served catalog writes, reads a file outside of the catalog, takes a thread "
        "or the memory for itself, or is answered without the token",
        (
            "tests/engine/test_rest_server.py",
            "tests/engine/test_served_catalog.py",
            "tests/cli/test_serve.py",
        ),
    ),
    "notify": Item(
        "a message holds a secret, a row or a command, or an address of a channel leads to a "
        "machine that it must not reach",
        (
            "tests/notify/test_channels.py",
            "tests/notify/test_conditions.py",
            "tests/notify/test_notifier.py::test_a_message_holds_no_row_and_no_error_text",
            "tests/model/test_notifications.py",
            "tests/cli/test_notification.py",
        ),
    ),
    "webhooks": Item(
        "somebody without the secret of a webhook, or with a recorded call, starts an automation, "
        "or a call reaches a command line",
        (
            "tests/store/test_signature.py",
            "tests/server/test_automation_calls.py",
            "tests/automation/test_calls.py",
        ),
    ),
    "S15": Item(
        "a folder that others write lets a step read a file outside of it or a deleted row, or is "
        "written",
        ("tests/lake/read/test_parquet_folder.py",),
    ),
}


def all_tests() -> list[str]:
    """Every test of the suite once; a whole file stands for its tests."""
    named = [one for item in ITEMS.values() for one in item.tests]
    files = {one for one in named if "::" not in one}
    chosen = {one for one in named if "::" in one and one.partition("::")[0] not in files}
    own = {one for one in chosen if one.startswith("tests/security/")}
    return ["tests/security", *sorted(files | chosen - own, key=str)]
