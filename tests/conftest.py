"""One Spark session for all tests of a pytest process, started the way `polynya run` starts it."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest
from hypothesis import settings

from polynya.lake.spark.api import SparkSession
from tests.projects import CLICKS, PROJECT, aws_project, postgres_project, write_project
from tests.shards import files_of_shard, measured, note

if TYPE_CHECKING:
    from tests.lab.lab import Lab

#: A sixth of a test's time was collecting garbage: the JVM starts with a small heap, and hundreds
#: of small queries fill it again and again.
ROOM_FOR_GARBAGE = ("-Xms1200m", "-Xmn700m")

#: Agents, captures and brokers in processes of their own live for half a minute: a third of their
#: processor time was the JVM's second compiler. Each start collected garbage five times to look for
#: classes that nobody needs.
SHORT_LIVED = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:MetaspaceSize=256m",
)

#: Files that share what one process makes: the library of the CDK and the templates of all stages,
#: or the console's lake.
SHARING = {
    "stacks": ("tests/stacks/", "tests/constructs/test_examples.py"),
    "lake of the console": (
        "tests/console/test_every_page.py",
        "tests/console/test_journeys.py",
    ),
}

# `--hypothesis-profile nightly` looks longer than a push can wait.
settings.register_profile("ci", deadline=None)
settings.register_profile("nightly", deadline=None, max_examples=500)
settings.load_profile("ci")


def pytest_configure(config: pytest.Config) -> None:
    """Let no Java that a test of every push starts prepare for a long life."""
    if not _long_lived() and config.getoption("markexpr") != "slow":
        given = os.environ.get("JAVA_TOOL_OPTIONS", "").split()
        os.environ["JAVA_TOOL_OPTIONS"] = " ".join(dict.fromkeys([*given, *SHORT_LIVED]))


def _long_lived() -> bool:
    """Whether sessions live for hours, which is worth all compilers of a JVM."""
    return "POLYNYA_TEST_LONG_LIVED" in os.environ


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Look for no garbage among modules and tests, which stay: neither now nor at each later look.

    That was a sixth of the time in which the tests are collected.
    """
    gc.disable()
    try:
        _import_own_share(session.config)
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def _import_own_share(config: pytest.Config) -> None:
    """In one of several test processes, import an equal share of the modules before all others.

    A new clone has no module whose asserts are rewritten. The processes collect in one order, so
    that each of them would rewrite all: half of the time of the collection.
    """
    number = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    if not number or config.args_source is not config.ArgsSource.TESTPATHS:
        return
    share = slice(int(number), None, int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))
    for path in sorted(Path(__file__).parent.rglob("test_*.py"))[share]:
        name = ".".join(path.relative_to(config.rootpath).with_suffix("").parts)
        # The collection imports it again, and tells what is wrong with it.
        with suppress(Exception, pytest.skip.Exception):
            import_module(name)
    _read_own_share_of_constants(int(number), int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))


def _read_own_share_of_constants(number: int, count: int) -> None:
    """Let Hypothesis look for constants in an equal share of the modules of the product.

    It tries what it finds as input, and keeps it in a file for each module. In a new clone each
    process would read all modules as the collection ends, a second for a hundred of them.
    """
    # Late: the process that hands out the tests collects none.
    from hypothesis.internal.constants_ast import constants_from_module, is_local_module_file

    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if crc32(name.encode()) % count == number and file and is_local_module_file(file):
            constants_from_module(module)


def pytest_addoption(parser: pytest.Parser) -> None:
    """One shard of the tests, as `make test-slow SHARD=3/8` has it."""
    parser.addoption("--shard", metavar="K/N", help="run the K-th of N shards of the chosen tests")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    """Mark what asks for the session, put first what takes long, and choose one shard of the rest.

    Several processes share the files of tests: the many that take no time fill the end.
    """
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
    items.sort(key=_turn)
    yield
    shard = config.getoption("shard")
    if shard is not None:
        try:
            files = files_of_shard({_file(item.nodeid) for item in items}, shard, measured())
        except ValueError as error:
            raise pytest.UsageError(f"--shard: {error}") from None
        others = [item for item in items if _file(item.nodeid) not in files]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if _file(item.nodeid) in files]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Note how long the files of a shard took, to make the shards equally long."""
    shard = config.getoption("shard")
    if shard is None:
        return
    seconds: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[_file(report.nodeid)] += report.duration
    note(shard, seconds)


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _turn(item: pytest.Item) -> int:
    if "spark" not in item.keywords:
        return 1 if "synth" in item.keywords else 3
    whole_projects = {"e2e", "stacks", "docs"} & {*item.path.parts}
    return 0 if whole_projects else 2


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Halves of surrogate pairs in what a test logged cannot be sent to another process."""
    report = yield
    report.sections = [
        (name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections
    ]
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadfile`, keep a file in one process, and all that shares stacks or a lake."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            shared = (one for one, files in SHARING.items() if nodeid.startswith(files))
            return next(shared, None) or super()._split_scope(nodeid)

    return Scheduling(config, log)


@pytest.fixture(scope="session")
def shared_project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The project folder whose warehouse all Spark tests share.

    With POLYNYA_TEST_S3 the warehouse is in S3, on a server that stands in for it
    (`tests/e2e/test_lake_on_s3.py`); with POLYNYA_TEST_POSTGRESQL it is there too, and the catalog
    is in PostgreSQL (`tests/e2e/postgresql/test_lake_on_postgresql.py`). With POLYNYA_TEST_REST the
    catalog is behind REST (`tests/e2e/rest/test_lake_on_rest.py`).
    """
    folder = tmp_path_factory.mktemp("shared")
    if "POLYNYA_TEST_POSTGRESQL" in os.environ:
        # Late: no other test needs them.
        from tests.aws import aws_server
        from tests.postgresql import environment, postgres_server

        with (
            postgres_server() as server,
            aws_server("acme-lake") as endpoint,
            pytest.MonkeyPatch.context() as patch,
        ):
            for name, value in environment(server).items():
                patch.setenv(name, value)
            text = postgres_project(server.uri, "s3://acme-lake/tables", endpoint=endpoint)
            yield write_project(folder, project=text)
        return
    if "POLYNYA_TEST_REST" in os.environ:
        # Late: no other test needs them.
        from tests.rest_catalogs import served_project

        with served_project(folder) as project:
            yield project
        return
    if "POLYNYA_TEST_KAFKA" in os.environ:
        # Its session has the jars for Kafka (`tests/streams/kafka/test_real_broker.py`).
        yield write_project(folder, project=PROJECT, clicks=CLICKS)
        return
    if "POLYNYA_TEST_S3" not in os.environ:
        yield write_project(folder, project=PROJECT)
        return
    # Late: no other test needs it.
    from tests.aws import aws_server, glue_that_checks_versions

    with aws_server("acme-lake") as endpoint, glue_that_checks_versions():
        yield write_project(folder, project=aws_project(endpoint))


@pytest.fixture(scope="session")
def spark(shared_project: Path, pytestconfig: pytest.Config) -> SparkSession:
    """The session; tests keep apart by schemas of their own."""
    # Late: a run without Spark tests need not import PySpark.
    from polynya.engine.session import start_spark
    from polynya.lake.spark import session
    from polynya.model.loader import load_project
    from tests.lab.commands import INTERPRETED

    long_lived = _long_lived()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "ROOMY_JVM", (*session.ROOMY_JVM, *ROOM_FOR_GARBAGE))
        started = start_spark(load_project(shared_project), long_lived=long_lived)
    if not long_lived and pytestconfig.getoption("markexpr") != "slow":
        for name, value in INTERPRETED.items():
            started.conf.set(name, value)
    return started


@pytest.fixture
def lab(spark: SparkSession, shared_project: Path, tmp_path: Path) -> Lab:
    """A schema, a landing folder and a clock of the test's own."""
    from tests.lab.lab import Lab, next_schema

    return Lab(spark, shared_project, tmp_path / "landing", next_schema())


@pytest.fixture(scope="module")
def module_lab(
    spark: SparkSession, shared_project: Path, tmp_path_factory: pytest.TempPathFactory
) -> Lab:
    """The same for what the tests of a file begin with (`tests/lab/kept.py`)."""
    from tests.lab.lab import Lab, next_schema

    return Lab(spark, shared_project, tmp_path_factory.mktemp("landing"), next_schema())
