"""Every kind of component can be added from outside the package, by one file and one decorator.

Each plugin below is a file of a user. The command line runs in processes of its own, as it does
for a user, with two workers where runs are compared: these must import the plugin too.
"""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import gfucb
from gfucb.core.errors import InvalidInputError, RunDirectoryError
from gfucb.environments import linear_bandit
from gfucb.runs import AGENTS, BanditAgentConfig, FiniteBanditConfig

SMALL = ["--seeds", "0", "1", "--num-rounds", "6", "--processes", "2"]

SELECTOR = """
from dataclasses import dataclass, replace

import gfucb
from gfucb.core.protocols import ActionSelector
from gfucb.runs import register_action_selector


@dataclass(frozen=True)
class HalfBonus(ActionSelector):
    def __call__(self, confidence_set, action_sets):
        smaller = replace(confidence_set, squared_radius=confidence_set.squared_radius / 4)
        selection = gfucb.LastLayer()(smaller, action_sets)
        return replace(selection, squared_radius=confidence_set.squared_radius)


@register_action_selector("half-bonus", description="Half the bonus of last-layer.")
def half_bonus(config):
    return HalfBonus()
"""

FIT = """
from dataclasses import dataclass

from gfucb.estimation import best_on
from gfucb.runs import register_fit


@dataclass(frozen=True)
class KeepRepresentation:
    def __call__(self, data, start, penalty, generator):
        return best_on(start.representation, data, start, penalty)


@register_fit("heads-only", description="Fits the heads and leaves the network as it is.")
def heads_only(config):
    return KeepRepresentation()
"""

BASELINE = """
from dataclasses import dataclass

import torch

from gfucb.core.validation.bandits import validate_action_sets, validate_feedback
from gfucb.runs import BanditAgentConfig, register_agent


@dataclass(frozen=True)
class FixedActionConfig(BanditAgentConfig):
    action: int = 0
    \"\"\"The action that is always chosen.\"\"\"


class FixedAction:
    def __init__(self, num_tasks, action):
        self.num_tasks, self.action = num_tasks, action
        self.rewards = torch.zeros(num_tasks, dtype=torch.float64)

    def decide(self, candidates, tasks=None, available=None):
        action_sets = validate_action_sets(
            candidates, tasks, available, num_tasks=self.num_tasks, device="cpu"
        )
        actions = torch.full((len(action_sets.tasks),), self.action)
        return action_sets.decision(actions, torch.zeros(len(actions), dtype=torch.float64))

    def observe(self, decision, rewards):
        tasks, _, rewards = validate_feedback(decision, rewards, num_tasks=self.num_tasks)
        self.rewards = self.rewards.index_add(0, tasks, rewards)

    def diagnostics(self):
        return {"action": self.action}

    def state(self):
        return {"rewards": self.rewards.clone()}

    def load_state(self, state):
        self.rewards = state["rewards"].clone()

    def settings(self):
        return {"action": str(self.action)}


@register_agent(
    "fixed-action",
    label="fixed action",
    description="Always chooses the same action.",
    colour="#123456",
    config=FixedActionConfig,
)
def fixed_action(config, environment, seed):
    return FixedAction(environment.num_tasks, config.action)
"""

BANDIT = """
from dataclasses import dataclass

import torch

from gfucb.core.random import random_stream
from gfucb.core.records import BanditRound
from gfucb.runs import EnvironmentConfig, register_environment


@dataclass(frozen=True)
class StoresConfig(EnvironmentConfig):
    name: str = "stores"
    num_tasks: int = 4
    num_products: int = 3
    \"\"\"Products in each store.\"\"\"


class Stores:
    def __init__(self, config, seed):
        self.num_tasks, self.num_products, self.seed = config.num_tasks, config.num_products, seed
        generator = random_stream(seed, "weights")
        self.weights = torch.rand(self.num_tasks, 2, generator=generator, dtype=torch.float64)

    def round(self, round_index):
        generator = random_stream(self.seed, "round", round_index)
        sizes = (self.num_tasks, self.num_products, 2)
        products = torch.rand(sizes, generator=generator, dtype=torch.float64)
        noise = 0.1 * torch.randn(self.num_tasks, generator=generator, dtype=torch.float64)
        means = (products * self.weights[:, None]).sum(-1) / 2
        return BanditRound(products, means, noise, true_features=products)

    def describe(self):
        return {"products": self.num_products}


@register_environment("stores", label="Stores", description="Products.", config=StoresConfig)
def stores(config, seed):
    return Stores(config, seed)
"""

EPISODIC = """
from dataclasses import dataclass

import numpy as np

from gfucb.environments import tabular_mdps
from gfucb.runs import EnvironmentConfig, register_environment


@dataclass(frozen=True)
class CorridorConfig(EnvironmentConfig):
    name: str = "corridor"
    num_tasks: int = 2
    length: int = 3
    \"\"\"Number of states.\"\"\"


@register_environment("corridor", kind="episodic", config=CorridorConfig)
def corridor(config, seed):
    n = config.length
    transitions, rewards = np.zeros((n, 2, n)), np.zeros((n, 2))
    for state in range(n):
        transitions[state, 0, max(state - 1, 0)] = 1
        transitions[state, 1, min(state + 1, n - 1)] = 1
    rewards[n - 1, 1] = 1.0
    tasks = range(config.num_tasks)
    return tabular_mdps(
        [transitions for _ in tasks], [rewards for _ in tasks], horizon=n, seed=seed
    )
"""

FIGURE = """
from functools import partial

from matplotlib.figure import Figure

from gfucb.paper import Job, Reproduction, Verdict, register_reproduction


def squares(seed):
    return [{"seed": seed, "x": x, "y": x**2} for x in range(3)]


def jobs(options):
    return [Job(f"seed={seed}", partial(squares, seed)) for seed in options.seeds or (0, 1)]


def figure(rows):
    drawn = Figure()
    drawn.add_subplot().plot(rows["x"], rows["y"], "o")
    return drawn


def verdicts(rows):
    return [Verdict("y is x squared", "the largest y is 4", bool(rows["y"].max() == 4))]


register_reproduction("squares", Reproduction("y = x^2", jobs, figure, verdicts))
"""


def gfucb_command(*words: object) -> str:
    """Run the command line in a process of its own; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "gfucb.cli.main", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def compared(tmp_path: Path, source: str, *words: object) -> pd.DataFrame:
    """Compare agents with a plugin; check table and figure; return the summary."""
    plugin, out = tmp_path / "plugin.py", tmp_path / "runs"
    plugin.write_text(source)
    printed = gfucb_command("compare", "--plugin", plugin, "--out", out, *SMALL, *words)
    assert "Regret per task after 6 rounds" in printed
    assert (out / "regret.png").stat().st_size > 1000
    return pd.read_csv(out / "summary.csv").set_index("agent")


@pytest.mark.slow
def test_an_action_selector_from_outside(tmp_path):
    finite = ["--preset", "finite", "--agents", "gfucb", "uniform"]
    table = compared(tmp_path, SELECTOR, *finite, "--agent.action-selector", "half-bonus")
    assert set(table.index) == {"gfucb", "uniform"}
    config = (tmp_path / "runs" / "gfucb" / "seed=0" / "config.json").read_text()
    assert '"action_selector": "half-bonus"' in config


@pytest.mark.slow
def test_a_fit_from_outside(tmp_path):
    words = ["--agents", "gfucb", "uniform", "--environment.num-tasks", "3"]
    table = compared(tmp_path, FIT, "--preset", "demo", *words, "--agent.fit", "heads-only")
    assert table.loc["gfucb", "regret"] > 0


@pytest.mark.slow
def test_a_baseline_from_outside_with_settings_of_its_own(tmp_path):
    words = ["--preset", "finite", "--agents", "fixed-action", "linucb", "--agent.action", "2"]
    table = compared(tmp_path, BASELINE, *words, "--agent.alpha", "0.5")
    assert set(table.index) == {"fixed-action", "linucb"}
    rows = pd.read_csv(tmp_path / "runs" / "fixed-action" / "seed=1" / "rows.csv")
    assert set(rows["action"]) == {2}
    assert '"alpha": 0.5' in (tmp_path / "runs/linucb/seed=1/config.json").read_text()
    plugin = tmp_path / "plugin.py"
    gfucb_command("report", tmp_path / "runs", "--plugin", plugin)
    page = (tmp_path / "runs" / "report.html").read_text()
    assert "fixed action" in page and "#123456" in page
    assert "fixed-action" in gfucb_command("presets", "--plugin", plugin)
    described = gfucb_command(
        "run", "--plugin", plugin, "--agent.name", "fixed-action", "--out", "x", "--help"
    )
    assert "--agent.action INT" in described and "always chosen" in described


@pytest.mark.slow
def test_a_bandit_environment_from_outside(tmp_path):
    words = ["--environment.name", "stores", "--environment.num-products", "4"]
    table = compared(tmp_path, BANDIT, *words, "--agents", "gfucb", "linucb", "oracle-ucb")
    assert len(table) == 3 and (table["seeds"] == 2).all()
    gfucb_command("report", tmp_path / "runs")  # also without the plugin
    assert "stores: 4 tasks" in (tmp_path / "runs" / "report.html").read_text()


@pytest.mark.slow
def test_an_episodic_environment_from_outside(tmp_path):
    words = ["--environment.name", "corridor", "--environment.length", "4"]
    table = compared(tmp_path, EPISODIC, *words, "--agents", "gfucb-mdp", "ucbvi", "uniform-mdp")
    assert "optimism_violations" in table.columns and len(table) == 3


@pytest.mark.slow
def test_a_figure_from_outside(tmp_path):
    plugin, out = tmp_path / "my_figure.py", tmp_path / "out"
    plugin.write_text(FIGURE)
    words = ["--plugin", plugin, "--out", out, "--processes", "2"]
    assert "y is x squared: holds" in gfucb_command("reproduce", "squares", *words)
    assert (out / "figure.png").stat().st_size > 1000
    assert len(pd.read_csv(out / "rows.csv")) == 6


def test_a_plugin_that_fails_is_named(tmp_path, capsys):
    from gfucb.cli.main import main

    broken = tmp_path / "broken.py"
    broken.write_text("import no_such_module\n")
    with pytest.raises(SystemExit):
        main(["run", "--plugin", str(broken), "--out", str(tmp_path / "run")])
    message = capsys.readouterr().err
    assert "broken.py" in message and "no_such_module" in message
    assert not (tmp_path / "run").exists()


class FirstAction:
    """An agent with the methods that a comparison in memory needs, and no others."""

    def __init__(self, environment, seed: int) -> None:
        self.num_tasks = environment.num_tasks
        self.agent = gfucb.Uniform(environment.num_tasks, seed=seed)

    def decide(self, candidates, tasks=None, available=None):
        return self.agent.decide(candidates[:, :1], tasks)

    def observe(self, decision, rewards):
        self.agent.observe(decision, rewards)

    def diagnostics(self):
        return {}


class Stateful(FirstAction):
    def state(self):
        return self.agent.state()

    def load_state(self, state):
        self.agent.load_state(state)


def own_environment(seed: int):
    return linear_bandit(num_tasks=3, num_actions=4, input_dim=4, feature_dim=2, seed=seed)


OWN = {"linucb": "linucb", "first action": Stateful}


def test_own_agents_and_environments_are_compared_from_python():
    agents = {
        "gfucb": "gfucb",
        "small ridge": BanditAgentConfig("linucb", ridge=0.1),
        "first action": FirstAction,
    }
    result = gfucb.compare(own_environment, agents, seeds=range(2), num_rounds=15)
    assert list(result.rows.groupby(["agent", "seed"]).size()) == [15] * 6
    assert result.table["agent"].iloc[-1] == "first action"
    assert "versus GFUCB" in repr(result) and "over 2 seeds" in repr(result)
    assert "<table" in result._repr_html_()
    names = [text.get_text() for text in result.figure().axes[0].texts]
    assert {"GFUCB", "small ridge"} <= set(names)
    assert "small ridge" not in AGENTS


def test_registered_agents_give_the_rows_of_the_command_line(tmp_path):
    config = FiniteBanditConfig(num_tasks=2, num_actions=3)
    result = gfucb.compare(config, ["gfucb", "oracle-ucb"], seeds=[3], num_rounds=5)
    words = "--environment.num-tasks 2 --environment.num-actions 3 --seeds 3 --num-rounds 5"
    gfucb_command(
        *["compare", "--environment.name", "finite", "--agents", "gfucb", "oracle-ucb"],
        *[*words.split(), "--out", tmp_path / "runs"],
    )
    for name in ("gfucb", "oracle-ucb"):
        written = pd.read_csv(tmp_path / "runs" / name / "seed=3" / "rows.csv")
        own = result.rows[result.rows["agent"] == name].reset_index(drop=True)
        assert (own["regret"] == written["regret"]).all()
    # The directory of one can be continued by the other.
    again = gfucb.compare(
        config, ["gfucb", "oracle-ucb"], seeds=[3], num_rounds=5, out=tmp_path / "runs"
    )
    assert (again.rows["regret"].sum()) == pytest.approx(result.rows["regret"].sum())


def test_a_comparison_with_a_directory_resumes_and_refuses_changed_code(tmp_path):
    settings = {"seeds": [0], "num_rounds": 6, "out": tmp_path}
    first = gfucb.compare(own_environment, OWN, **settings)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("rows.csv")}
    again = gfucb.compare(own_environment, OWN, **settings)
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("rows.csv")}
    pd.testing.assert_frame_equal(first.rows, again.rows)
    with pytest.raises(RunDirectoryError, match=r"agent\.source_digest"):
        gfucb.compare(own_environment, OWN | {"first action": FirstAction}, **settings)


@pytest.mark.slow
def test_two_processes_give_the_rows_of_one(tmp_path):
    settings = {"seeds": [0, 1], "num_rounds": 4}
    one = gfucb.compare(own_environment, OWN, **settings)
    two = gfucb.compare(own_environment, OWN, processes=2, **settings)
    pd.testing.assert_frame_equal(one.rows, two.rows)
    with pytest.raises(InvalidInputError, match="cannot be sent to another process"):
        gfucb.compare(lambda seed: own_environment(seed), OWN, processes=2, **settings)


def test_an_environment_object_is_the_same_for_all_seeds(tmp_path):
    result = gfucb.compare(own_environment(7), ["linucb"], seeds=[0, 1], num_rounds=4)
    by_seed = result.rows.pivot(index="round", columns="seed", values="regret")
    assert (by_seed[0] == by_seed[1]).all()
    result.save(tmp_path / "saved")
    assert {path.name for path in (tmp_path / "saved").iterdir()} == {
        "rows.csv",
        "summary.csv",
        "regret.png",
        "regret.svg",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"agents": []}, "agents must not be empty"),
        ({"agents": ["linucb", "linucb"]}, "different names"),
        ({"agents": [FirstAction]}, "as a mapping"),
        ({"agents": {"a": 3}}, "agent 'a' must be a name, settings or a function"),
        ({"agents": {"a": lambda environment, seed: object()}}, "agent 'a' has no method decide"),
        ({"agents": ["ucb1"]}, "unknown agent 'ucb1'"),
        ({"agents": ["gfucb-mdp"]}, "episodic"),
        ({"environment": 3}, "environment must be a name"),
        ({"environment": "casino"}, "unknown environment 'casino'"),
        ({"seeds": [1, 1]}, "each once"),
        ({"num_rounds": 0}, "at least 1"),
        ({"reference": "gfucb"}, "unknown agent of these runs 'gfucb'"),
    ],
)
def test_mistakes_get_a_sentence(arguments, message):
    known = {"environment": own_environment, "agents": ["linucb"], "seeds": [0], "num_rounds": 2}
    with pytest.raises(gfucb.GFUCBError, match=message):
        gfucb.compare(**(known | arguments))
