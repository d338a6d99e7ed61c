"""A Spot shortage under four designs, simulated: what is missing, what On-Demand costs."""

from __future__ import annotations

from bench.simulated.designs import DESIGNS
from bench.simulated.shortages import NODES, run, scenarios

SEED = 7


def main() -> None:
    """Print a table: unmet instance-minutes / On-Demand minutes / healthy Spot nodes ended."""
    print(
        f"{NODES} nodes, 12 hours, seed {SEED}; unmet / On-Demand instance-minutes / ended Spot\n"
    )
    print("| scenario | " + " | ".join(design.name for design in DESIGNS) + " |")
    print("|---" * (len(DESIGNS) + 1) + "|")
    for scenario in scenarios(SEED):
        cells = [scenario.name]
        for design in DESIGNS:
            seen = run(design, scenario, SEED)
            cells.append(
                f"{seen.unmet_minutes} / {seen.on_demand_minutes} / {seen.killed_healthy_spot}"
            )
        print("| " + " | ".join(cells) + " |")
