"""Every kind of component can be added from outside the package, by one file and one decorator.

The files in tests/plugins are those that a user would write. One test runs the command line in a
process of its own, as a user does, and two use worker processes, which must import the plugin too.
The others run it in this process, with registries that are restored afterwards.
"""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import gfucb
from gfucb.cli.main import main
from gfucb.core.errors import InvalidInputError, RunDirectoryError
from gfucb.environments import linear_bandit
from gfucb.runs import AGENTS, BanditAgentConfig, FiniteBanditConfig

PLUGINS = Path(__file__).with_name("plugins")
SELECTOR = PLUGINS / "half_bonus.py"
FIT = PLUGINS / "heads_only.py"
BASELINE = PLUGINS / "fixed_action.py"
BANDIT = PLUGINS / "stores.py"
EPISODIC = PLUGINS / "corridor.py"
FIGURE = PLUGINS / "squares.py"
SMALL = ["--seeds", "0", "1", "--num-rounds", "6", "--processes", "1"]
pytestmark = pytest.mark.usefixtures("restored_registries")


@pytest.fixture
def gfucb_command(capsys):
    """Run the command line in this process; return what it prints."""

    def run(*words: object) -> str:
        main([str(word) for word in words])
        return capsys.readouterr().out

    return run


def command_in_own_process(*words: object) -> str:
    """Run the command line in a process of its own; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "gfucb.cli.main", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def compared(command, tmp_path: Path, plugin: Path, *words: object) -> pd.DataFrame:
    """Compare agents with a plugin; check table and figure; return the summary."""
    out = tmp_path / "runs"
    printed = command("compare", "--plugin", plugin, "--out", out, *SMALL, *words)
    assert "Regret per task after 6 rounds" in printed
    assert (out / "regret.png").stat().st_size > 1000
    return pd.read_csv(out / "summary.csv").set_index("agent")


def test_an_action_selector_from_outside(gfucb_command, tmp_path):
    finite = ["--preset", "finite", "--agents", "gfucb", "uniform"]
    table = compared(
        gfucb_command, tmp_path, SELECTOR, *finite, "--agent.action-selector", "half-bonus"
    )
    assert set(table.index) == {"gfucb", "uniform"}
    config = (tmp_path / "runs" / "gfucb" / "seed=0" / "config.json").read_text()
    assert '"action_selector": "half-bonus"' in config


def test_a_fit_from_outside(gfucb_command, tmp_path):
    words = ["--agents", "gfucb", "uniform", "--environment.num-tasks", "3"]
    table = compared(
        gfucb_command, tmp_path, FIT, "--preset", "demo", *words, "--agent.fit", "heads-only"
    )
    assert table.loc["gfucb", "regret"] > 0


@pytest.mark.slow
def test_a_baseline_from_outside_with_settings_of_its_own(gfucb_command, tmp_path, capsys):
    words = ["--preset", "finite", "--agents", "fixed-action", "linucb", "--agent.action", "2"]
    table = compared(
        command_in_own_process,
        tmp_path,
        BASELINE,
        *words,
        "--processes",
        "2",
        "--agent.alpha",
        "0.5",
    )
    assert set(table.index) == {"fixed-action", "linucb"}
    rows = pd.read_csv(tmp_path / "runs" / "fixed-action" / "seed=1" / "rows.csv")
    assert set(rows["action"]) == {2}
    assert '"alpha": 0.5' in (tmp_path / "runs/linucb/seed=1/config.json").read_text()
    gfucb_command("report", tmp_path / "runs", "--plugin", BASELINE)
    page = (tmp_path / "runs" / "report.html").read_text()
    assert "fixed action" in page and "#123456" in page
    assert "fixed-action" in gfucb_command("presets", "--plugin", BASELINE)
    with pytest.raises(SystemExit):
        gfucb_command("run", "--plugin", BASELINE, "--agent.name", "fixed-action", "--help")
    described = capsys.readouterr().out
    assert "--agent.action INT" in described and "always chosen" in described


@pytest.mark.slow
def test_a_bandit_environment_from_outside(gfucb_command, restored_registries, tmp_path):
    words = ["--environment.name", "stores", "--environment.num-products", "4"]
    table = compared(
        gfucb_command, tmp_path, BANDIT, *words, "--agents", "gfucb", "linucb", "oracle-ucb"
    )
    assert len(table) == 3 and (table["seeds"] == 2).all()
    restored_registries()
    gfucb_command("report", tmp_path / "runs")  # also without the plugin
    assert "stores: 4 tasks" in (tmp_path / "runs" / "report.html").read_text()


def test_an_episodic_environment_from_outside(gfucb_command, tmp_path):
    words = ["--environment.name", "corridor", "--environment.length", "4"]
    table = compared(
        gfucb_command, tmp_path, EPISODIC, *words, "--agents", "gfucb-mdp", "ucbvi", "uniform-mdp"
    )
    assert "optimism_violations" in table.columns and len(table) == 3


@pytest.mark.slow
def test_a_figure_from_outside(gfucb_command, tmp_path):
    out = tmp_path / "out"
    words = ["--plugin", FIGURE, "--out", out, "--processes", "2"]
    assert "y is x squared: holds" in gfucb_command("reproduce", "squares", *words)
    assert (out / "figure.png").stat().st_size > 1000
    assert len(pd.read_csv(out / "rows.csv")) == 6


def test_a_plugin_that_fails_is_named(tmp_path, capsys):
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


def test_registered_agents_give_the_rows_of_the_command_line(gfucb_command, tmp_path):
    config = FiniteBanditConfig(num_tasks=2, num_actions=3)
    result = gfucb.compare(config, ["gfucb", "oracle-ucb"], seeds=[3], num_rounds=5)
    words = "--environment.num-tasks 2 --environment.num-actions 3 --seeds 3 --num-rounds 5"
    gfucb_command(
        *["compare", "--environment.name", "finite", "--agents", "gfucb", "oracle-ucb"],
        *[*words.split(), "--processes", "1", "--out", tmp_path / "runs"],
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
        "provenance.json",
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
        ({"environment": 3}, "environment must be a name.* got int, which has no method round"),
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
