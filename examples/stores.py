"""Stores with a log: from a CSV file to an agent that runs, is restarted, and gets a new store.

    python examples/stores.py --out runs/examples/stores

The file has text, dates, numbers and gaps. The agent draws promotions at random with known
probabilities, so that its log also tells what other policies would have earned.
"""

import argparse
import csv
import datetime
from pathlib import Path

import numpy as np
import pandas as pd

import gfucb
from gfucb.evaluation import FixedActionPolicy, evaluate, log_of_decisions

PROMOTIONS = ("none", "coupon", "bundle")
STORES = {"Oslo": 900, "Bergen": 450, "Lima": 1200, "Cusco": 380}
BASE = {"none": 100, "coupon": 160, "bundle": 130}


def weather(store: str, day: int) -> dict[str, object]:
    """What is known of a store in the morning; visitors are sometimes missing."""
    draws = np.random.default_rng([len(store), ord(store[0]), day])
    visitors = round(STORES.get(store, 700) * float(draws.lognormal(0, 0.2)))
    return {
        "store": store,
        "date": str(datetime.date(2026, 3, 1) + datetime.timedelta(days=day)),
        "weather": str(draws.choice(["sun", "rain", "snow"])),
        "visitors": visitors if draws.random() > 0.1 else "",
    }


def revenue(row: dict[str, object], promotion: str) -> float:
    """Dollars: coupons earn most in the rain, bundles where there are many visitors."""
    draws = np.random.default_rng([int(str(row["date"])[-2:]), ord(str(row["store"])[1])])
    rain = 120 if promotion == "coupon" and row["weather"] == "rain" else 0
    crowd = 0.15 * float(str(row["visitors"] or 600)) if promotion == "bundle" else 0
    return round(BASE[promotion] + rain + crowd + float(draws.normal(0, 20)), 2)


def write_history(path: Path, days: int) -> None:
    """Past days with promotions that a manager chose."""
    with path.open("w", newline="") as file:
        columns = ["store", "date", "weather", "visitors", "promotion", "revenue"]
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        for day in range(days):
            for number, store in enumerate(STORES):
                row, promotion = weather(store, day), PROMOTIONS[(day + number) % 3]
                writer.writerow(row | {"promotion": promotion, "revenue": revenue(row, promotion)})


def play(agent: gfucb.Agent, schema: gfucb.tables.Schema, days: range, stores: list[str]) -> str:
    """Every morning a decision, every evening the rewards by id; the last id."""
    for day in days:
        rows = [weather(store, day) for store in stores]
        decision = agent.decide_table(rows, schema)
        earned = [revenue(row, name) for row, name in zip(rows, decision.action_names, strict=True)]
        agent.observe(list(decision.ids), earned)
    return decision.ids[-1]


def main(words: list[str] | None = None) -> None:
    """The life of an agent."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path("runs/examples/stores"))
    given = parser.parse_args(words)
    given.out.mkdir(parents=True, exist_ok=True)
    history, log = given.out / "history.csv", given.out / "agent.log"
    write_history(history, days=20)
    past = pd.read_csv(history)
    schema = gfucb.tables.Schema.of(past, task="store", action="promotion", reward="revenue")
    # The same arguments after every restart.
    model = gfucb.Randomised(gfucb.GFUCB(1, seed=0, forgetting="auto"), epsilon=0.2)
    with gfucb.Agent(model, log=log) as agent:
        print("learned", agent.learn_table(history, schema, source="history.csv"), "rows")
        play(agent, schema, range(20, 20 + given.days // 2), list(STORES))
    with gfucb.Agent.from_log(log, model=model) as agent:
        later = range(20 + given.days // 2, 20 + given.days)
        last = play(agent, schema, later, [*STORES, "Bodo"])  # a new store
        print(agent, "tasks:", agent.tasks)
        print(agent.explain(last))
        named = log_of_decisions(agent.log)
        print(f"mean revenue {float(named.log.rewards.mean()):.0f}")
        for name in PROMOTIONS:
            policy = FixedActionPolicy(named.action(name))
            result = evaluate(named.log, policy, estimators=["snips"], reward_range=(0, 1000))
            found, (low, high) = result["snips"], result["snips"].interval
            print(f"always {name}: {found.value:.0f}, 95% interval {low:.0f} to {high:.0f}")


if __name__ == "__main__":
    main()
