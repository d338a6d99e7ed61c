"""The figures of the pages are those that the code computes."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import costs, strategies
from stacks.settings.consumption import ConsumptionSettings
from stacks.settings.loader import load_deployment
from stacks.settings.server import ServerSettings
from stacks.settings.stage import StreamSettings

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


@pytest.mark.parametrize(
    ("main", "page"), [(costs.main, "deploy.md"), (strategies.main, "cluster.md")]
)
def test_the_page_has_every_line_of_the_table(
    main: object, page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main()  # type: ignore[operator]

    _, *rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert len(rows) >= 5
    text = (DOCS / page).read_text()
    assert [row for row in rows if row not in text] == []


def test_a_stage_to_try_things_in_costs_little_while_nothing_lands() -> None:
    """Goal: 33 dollars. It was 80: eight endpoints, a stream, sixteen metrics of requests."""
    dev = load_deployment(ROOT / "config", environment={}).stage("dev")

    lines = costs.idle(dev)
    assert sum(dollars for _, dollars, _ in lines) <= 33
    assert all(why for _, _, why in lines)
    with_all = dev.model_copy(
        update={"network": dev.network.model_copy(update={"session_manager": True}),
                "stream": StreamSettings()}
    )  # fmt: skip
    assert sum(dollars for _, dollars, _ in costs.idle(with_all)) > 33


def test_a_server_of_its_own_costs_at_most_five_dollars_while_nobody_asks_it() -> None:
    dev = load_deployment(ROOT / "config", environment={}).stage("dev")

    def dollars(**server: object) -> float:
        served = dev.model_copy(update={"server": ServerSettings.model_validate(server)})
        return sum(
            line for name, line, _ in costs.idle(served) if name in {"server", "load balancer"}
        )

    assert dollars() <= 5
    assert dollars(node="network_agent") < 2
    assert dollars(spot=False) > 5


def test_a_stream_that_wakes_a_cluster_is_in_the_price_of_its_stage() -> None:
    dev = load_deployment(ROOT / "config", environment={}).stage("dev")
    slow = {"name": "clicks", "prefix": "clicks", "buffer_seconds": 300}

    def dollars(**stream: object) -> float:
        engines = ConsumptionSettings.model_validate({"firehose": [slow | stream]})
        fed = dev.model_copy(update={"consumption": engines})
        return sum(line for _, line, _ in costs.idle(fed)) - sum(
            line for _, line, _ in costs.idle(dev)
        )

    assert dollars() == pytest.approx(0.40)
    assert dollars(buffer_seconds=60) == 0
