"""What `make demo` runs: a real PostgreSQL capture becomes live tables and a mart over them.

Everything goes through the command line, as a user would do it: Spark starts for the two runs, and
the embedded engine answers the questions. Exit code 1 when Current does not equal the end state of
the source database, or the mart does not equal plain SQL over the sources.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import duckdb
from rich.console import Console
from rich.table import Table

from examples.parity import Parity, compare
from examples.questions import MART, QUESTIONS, SOURCE, VIEWS

ROOT: Final = Path(__file__).resolve().parents[1]
PROJECT: Final = ROOT / "examples" / "bank"
LAKE: Final = ROOT / "build" / "demo"
CAPTURE: Final = "landing/bank/postgres_workload.jsonl.gz"
#: What lands when the first run has ended: the last records of the capture, and these files.
LATER_CAPTURE: Final = "landing/bank/postgres_workload.rest.jsonl.gz"
LATER_RECORDS: Final = 351
LATER_USERS: Final = ("landing/users/0003-late.json", "landing/users/0004.json")
Rows = list[dict[str, Any]]


class CommandError(Exception):
    """A command of the demo failed; the message is what it said."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; returns the exit code."""
    options = _options(arguments)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 110)
    lake: Path = options.lake
    try:
        if not options.keep:
            start_clean(options.project, lake)
            polynya("validate", "--project", str(lake))
            console.print(f"[bold]1. A fresh project[/] in {shown(lake)}: valid\n")
            console.print("[bold]2. Copy and apply[/] what has landed, and derive the mart from it")
            show_run(console, lake, "always")
            land_the_rest(options.project, lake)
            console.print(
                "[bold]3. More lands[/]: the views show it before any apply, and so does the mart"
            )
            show_run(console, lake, "never")
        answers = ask(lake)
        datasets = status(lake)
        show_tables(console, answers, datasets)
        show_quarantine(console, lake)
        show_freshness(console, datasets)
        parities = check(options.project, answers)
        show_parity(console, parities)
        differences = compare_mart(options.project, answers)
        show_mart(console, answers, differences)
        show_next(console, lake, answers["busiest"][0]["id"])
    except CommandError as error:
        console.print(str(error), markup=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        return 130
    return int(any(parity.differences for parity in parities) or any(differences.values()))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description=__doc__)
    parser.add_argument("--project", type=Path, default=PROJECT, help="the example project")
    parser.add_argument("--lake", type=Path, default=LAKE, help="folder that the demo makes anew")
    parser.add_argument("--keep", action="store_true", help="look at the lake of the last demo")
    return parser.parse_args(arguments)


def start_clean(project: Path, lake: Path) -> None:
    """Replace the lake of the last demo by a fresh copy of the project, less what lands later."""
    if lake.exists() and not (lake / "polynya.yml").is_file():
        raise CommandError(f"{lake} is no lake of the demo; it was left alone")
    shutil.rmtree(lake, ignore_errors=True)
    shutil.copytree(project, lake, ignore=shutil.ignore_patterns("source_truth", "warehouse"))
    for name in LATER_USERS:
        (lake / name).unlink()
    with gzip.open(lake / CAPTURE, "wb", compresslevel=1) as first:
        first.writelines(capture_lines(project)[:-LATER_RECORDS])


def land_the_rest(project: Path, lake: Path) -> None:
    """Land what `start_clean` left out."""
    with gzip.open(lake / LATER_CAPTURE, "wb", compresslevel=1) as rest:
        rest.writelines(capture_lines(project)[-LATER_RECORDS:])
    for name in LATER_USERS:
        shutil.copyfile(project / name, lake / name)


def capture_lines(project: Path) -> list[bytes]:
    """The lines of the capture."""
    with gzip.open(project / CAPTURE) as lines:
        return lines.readlines()


def polynya(*arguments: str) -> Iterator[dict[str, Any]]:
    """Start a command and give its JSON lines; raises CommandError when it fails."""
    done = subprocess.run(
        [*program(), *arguments, "--json", "--quiet"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = done.stderr + done.stdout
        raise CommandError(
            f"`polynya {shlex.join(arguments)}` ended with {done.returncode}:\n{said}"
        )
    return map(json.loads, done.stdout.splitlines())


def program() -> list[str]:
    """The command line of polynya: the one beside this Python, else the package."""
    script = Path(sys.executable).with_name("polynya")
    return [str(script)] if script.exists() else [sys.executable, "-m", "polynya"]


def shown(path: Path) -> str:
    """A path as short as people would type it."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def show_run(console: Console, lake: Path, apply: str) -> None:
    """Run once, and tell what happens when it happens; `apply` says when changes are applied."""
    command = [*program(), "run", "--once", "--apply", apply, "--project", str(lake)]
    started = time.monotonic()
    records = 0
    with (
        subprocess.Popen([*command, "--json", "--quiet"], stdout=subprocess.PIPE, text=True) as run,
        console.status("starting Spark…"),
    ):
        for line in run.stdout or ():
            event = json.loads(line)
            records += event.get("rows_in", 0)
            text = told(event)
            if text:
                console.print(f"  {time.monotonic() - started:5.1f} s  {text}")
    if run.returncode:
        raise CommandError(f"the run ended with exit code {run.returncode}")
    took = time.monotonic() - started
    console.print(
        f"  {records:,} records in {took:.1f} s: {records / took:,.0f}/s,"
        " the start of the JVM included\n"
    )


def told(event: dict[str, Any]) -> str | None:
    """One line for an event of the run, None for events that people need not see."""
    name = event.get("subject", "")
    match event["type"]:
        case "batch.copied":
            parts = [
                f"{event[f'rows_{what}']:,} {what}"
                for what in ("out", "filtered", "quarantined")
                if event[f"rows_{what}"]
            ]
            rate = event["rows_in"] / event["seconds"] if event["seconds"] else 0
            return (
                f"copied   {name:<18} {event['rows_in']:>6,} records = {' + '.join(parts)}"
                f"  [dim]{event['seconds']:.1f} s, {rate:,.0f}/s[/]"
            )
        case "dataset.applied" if event.get("seconds"):
            rate = event["events"] / event["seconds"]
            return (
                f"applied  {name:<18} {event['events']:>6,} events → {event['current']:,} rows of"
                f" Current, {event['prior']:,} of Prior"
                f"  [dim]{event['seconds']:.1f} s, {rate:,.0f}/s[/]"
            )
        case "dataset.applied":
            return f"applied  {name:<18} in the copy's commit: {event['reason']}"
        case "rows.derived":
            changes = ", ".join(
                f"{event['changes'][what]:,} {what}"
                for what in ("inserts", "updates", "deletes")
                if event["changes"].get(what)
            )
            return f"derived  {name:<18} {changes}  [dim]{event['seconds']:.1f} s[/]"
        case "unit.failed" | "error":
            return f"[red]failed   {name} {event['message']}[/]"
    return None


def ask(lake: Path) -> dict[str, Rows]:
    """Answer all questions by one command."""
    script = lake / "demo.sql"
    script.write_text(";\n\n".join(QUESTIONS.values()) + ";\n", encoding="utf-8")
    answers = polynya(
        "query", "--engine", "embedded", "--file", str(script), "--project", str(lake)
    )
    return {name: line["rows"] for name, line in zip(QUESTIONS, answers, strict=True)}


def status(lake: Path) -> Rows:
    """What is known of each dataset; needs no JVM."""
    lines = polynya("status", "--project", str(lake))
    return [line for line in lines if line.get("dataset") in VIEWS]


def show_tables(console: Console, answers: dict[str, Rows], datasets: Rows) -> None:
    """Show what a person wants to see first."""
    console.print("[bold]4. The tables[/], rows of each view")
    rows = {row["dataset"]: row["now"] for row in answers["rows"]}
    versions = {row["dataset"]: row["versions"] for row in answers["versions"]}
    console.print(
        grid(
            [
                {
                    "dataset": one["dataset"],
                    "Current": rows[one["dataset"]],
                    "History": versions[one["dataset"]],
                    "Changes": one["pending_rows"],
                }
                for one in datasets
            ]
        )
    )
    console.print("[bold]   Some rows of Current[/]: bank.accounts")
    console.print(grid([{**row, "note": row["note"][:16]} for row in answers["current"]]))
    busiest = brief(answers["busiest"])
    shortened = [*busiest[:4], dict.fromkeys(busiest[0], "…"), *busiest[-3:]]
    console.print(
        f"[bold]   The History of one record[/]: account {busiest[0]['id']},"
        f" {len(busiest)} versions"
    )
    console.print(grid(shortened if len(busiest) > len(shortened) else busiest))
    console.print(
        "[bold]   Late events[/]: what 0003-late.json brought has its place in shop.users__history"
    )
    console.print(grid(brief(answers["late"])))


def show_quarantine(console: Console, lake: Path) -> None:
    """Show what was rejected and why; needs no JVM."""
    console.print("[bold]5. Quarantined[/], with file, record and rule; nothing else was held up")
    rejected = list(polynya("quarantine", "list", "--project", str(lake)))
    names = ("id", "dataset", "file", "offset", "rule", "error")
    console.print(
        grid([{name: line[name] for name in names} for line in rejected if "rule" in line])
    )


def show_freshness(console: Console, datasets: Rows) -> None:
    """Show how old the newest event is, and what is still to be applied."""
    console.print("[bold]6. Freshness[/], by the source's clock")
    for one in datasets:
        hours = one["freshness_seconds"] / 3600
        console.print(
            f"   {one['dataset']:<14} newest event is {hours:,.1f} h old,"
            f" copied {one['copied_at'][:19]}Z; {one['pending_rows']} changes pending"
        )
    console.print()


def check(project: Path, answers: dict[str, Rows]) -> list[Parity]:
    """Compare Current with the end state that was read from the database itself."""
    found = []
    for table in SOURCE:
        with (project / "source_truth" / f"{table.name}.jsonl").open(encoding="utf-8") as lines:
            truth = [json.loads(line) for line in lines]
        found.append(compare(table, truth, answers[table.name], project / CAPTURE))
    return found


def show_parity(console: Console, parities: Sequence[Parity]) -> None:
    """Show the comparison, the differences first if there are any."""
    console.print("[bold]7. Parity[/] of Current with the end state of the source database")
    for parity in parities:
        console.print(
            f"   bank.{parity.table}: {parity.source_rows} rows in the source,"
            f" {parity.current_rows} in Current, {counted(len(parity.differences))}"
        )
        if parity.unsent_defaults:
            console.print(
                f"     {parity.unsent_defaults} rows hold NULL for the default of a column that was"
                " added later;\n     proven: no event touched them since, so no event tells it"
            )
        if parity.only_in_lake:
            console.print(
                f"     kept though dropped at the source: {', '.join(parity.only_in_lake)}"
            )
        for text in parity.differences[:10]:
            console.print(f"     [red]{parity.table} {text[:300]}[/]")
    total = sum(len(parity.differences) for parity in parities)
    console.print(f"   [bold {'red' if total else 'green'}]{counted(total)}[/]\n")


def counted(differences: int) -> str:
    """The number of differences in words."""
    return f"{differences} difference{'' if differences == 1 else 's'}"


def compare_mart(project: Path, answers: dict[str, Rows]) -> dict[str, list[str]]:
    """What the mart answers otherwise than plain SQL over the sources, by question."""
    truth, users = project / "source_truth", project / "landing" / "users" / "*.json"
    with duckdb.connect() as sources:
        for table in SOURCE:
            sources.read_json(str(truth / f"{table.name}.jsonl")).create(table.name)
        # Records that are no JSON or have no key are in quarantine; a deleted user has no name.
        read = sources.read_json(str(users), ignore_errors=True, format="newline_delimited")
        read.filter("userId IS NOT NULL").create("users")
        return {
            name: differing(answers[name], told_by(sources, question.of_sources))
            for name, question in MART.items()
        }


def told_by(sources: duckdb.DuckDBPyConnection, sql: str) -> Rows:
    """The answer of a query, as rows."""
    answer = sources.execute(sql)
    names = [column[0] for column in answer.description or ()]
    return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


def differing(ours: Rows, theirs: Rows) -> list[str]:
    """The rows that only one side has; numbers count as their text."""
    texts = [
        {str({name: None if v is None else str(v) for name, v in row.items()}) for row in rows}
        for rows in (ours, theirs)
    ]
    only = [f"only in the mart: {row}" for row in sorted(texts[0] - texts[1])]
    return only + [f"only in the sources: {row}" for row in sorted(texts[1] - texts[0])]


def show_mart(
    console: Console, answers: dict[str, Rows], differences: Mapping[str, list[str]]
) -> None:
    """Show the mart's answers, and where they are not those of the sources."""
    console.print("[bold]8. The mart[/] compared with plain SQL over the sources")
    for name, found in differences.items():
        console.print(f"   {name}: {len(answers[name])} rows, {counted(len(found))}")
        for text in found[:10]:
            console.print(f"     [red]{name} {text[:300]}[/]")
    console.print()
    console.print(grid(answers[next(iter(differences))]))


def brief(rows: Rows) -> Rows:
    """Rows whose times have milliseconds."""
    times = ("valid_from", "valid_to")
    return [
        {**row, **{one: (row[one] or "")[:23].rstrip("Z").replace("T", " ") for one in times}}
        for row in rows
    ]


def show_next(console: Console, lake: Path, identifier: int) -> None:
    """Print three commands that work as they are printed."""
    console.print("[bold]Next, try[/]")
    for command in next_commands(lake, identifier):
        console.print(f"   {command}", soft_wrap=True)


def next_commands(lake: Path, identifier: int) -> list[str]:
    """Commands that go on from here."""
    call = shlex.join([shown(Path(program()[0])), *program()[1:]])
    folder = shlex.quote(shown(lake))
    sql = "SELECT tier, count(*) AS accounts FROM bank.accounts GROUP BY tier ORDER BY tier"
    return [
        f'{call} query "{sql}" --project {folder}',
        f"{call} history bank.accounts id={identifier} --project {folder}",
        f"{call} quarantine list --project {folder}",
    ]


def grid(rows: Rows) -> Table:
    """A plain table."""
    table = Table(*(rows[0] if rows else ["nothing"]), box=None, header_style="dim", pad_edge=False)
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    table.add_row()
    return table


if __name__ == "__main__":
    sys.exit(main())
