"""Runs and comparisons of episodic MDPs."""

import json
from dataclasses import replace
from itertools import islice

import pytest
from killing import run_and_kill

from gfucb.cli.main import main
from gfucb.core.errors import UnknownNameError
from gfucb.runs import (
    AGENTS,
    ENVIRONMENTS,
    PRESETS,
    EpisodicAgentConfig,
    LinearMDPConfig,
    RunConfig,
    load_rows,
    make_agent,
    make_environment,
    run,
    summarise,
)
from gfucb.runs.build_run import prepare, with_settings

EPISODIC_AGENTS = [name for name, entry in AGENTS.items() if entry.kind == "episodic"]
EPISODIC_PRESETS = [
    name
    for name, preset in PRESETS.items()
    if ENVIRONMENTS[preset.environment.name].kind == "episodic"
]
TINY = LinearMDPConfig(
    num_tasks=2, num_actions=3, horizon=2, num_states=4, input_dim=4, num_representations=3
)
QUICK = RunConfig(TINY, EpisodicAgentConfig(fit_steps=2), num_rounds=10, seed=3)


def finish(config, directory) -> bytes:
    for _ in run(config, directory):
        pass
    return (directory / "rows.csv").read_bytes()


@pytest.mark.parametrize("name", EPISODIC_AGENTS)
@pytest.mark.parametrize("representation", ["given", "network"])
def test_every_registered_episodic_agent_plays(name, representation):
    config = EpisodicAgentConfig(name, representation=representation, fit_steps=2)
    rows = list(prepare(RunConfig(TINY, config, 4)).rows())
    assert [row["round"] for row in rows] == [1, 2, 3, 4]
    assert all(row["regret"] >= -1e-12 for row in rows)


@pytest.mark.parametrize("name", EPISODIC_PRESETS)
def test_every_episodic_preset_can_be_played(name):
    preset = PRESETS[name]
    environment = replace(preset.environment, horizon=2, num_tasks=2)
    for agent in preset.agents:
        config = replace(with_settings(agent, preset.agent), fit_steps=2)
        rows = list(prepare(RunConfig(environment, config, 2)).rows())
        violations = rows[-1].get("optimism_violations")
        if violations is None:  # values of policies that see observations only are not known
            assert name == "combination-lock"
        else:
            assert 0 <= violations <= 1


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["gfucb-mdp", "gfucb-mdp-literal", "independent-mdp", "fitted-q"])
@pytest.mark.parametrize("stop_after", [1, 6])
def test_resumed_equals_uninterrupted_byte_for_byte(tmp_path, agent, stop_after):
    config = replace(QUICK, agent=replace(QUICK.agent, name=agent))
    whole = finish(config, tmp_path / "whole")
    interrupted = run(config, tmp_path / "parts")
    list(islice(interrupted, stop_after))
    interrupted.close()
    assert finish(config, tmp_path / "parts") == whole


@pytest.mark.slow
def test_a_killed_process_is_resumed_byte_for_byte(tmp_path):
    agent = EpisodicAgentConfig(
        representation="network", share_stages=True, next_targets=2, fit_steps=5
    )
    config = replace(QUICK, agent=replace(agent, replan="every"), num_rounds=40)
    run_and_kill(config, tmp_path / "killed")
    assert not json.loads((tmp_path / "killed" / "provenance.json").read_text())["finished"]
    assert finish(config, tmp_path / "killed") == finish(config, tmp_path / "whole")


def test_two_environments_with_one_seed_have_the_same_draws():
    environment = make_environment(TINY, 5)
    starts = [environment.episode(index).first_states.tolist() for index in range(1, 6)]
    again = make_environment(TINY, 5)
    assert starts == [again.episode(index).first_states.tolist() for index in range(1, 6)]


@pytest.mark.slow
def test_compare_and_report_show_optimism_violations(tmp_path, capsys):
    out = str(tmp_path / "runs")
    words = ["compare", "--preset", "lock", "--out", out, "--environment.horizon", "3"]
    words += ["--num-rounds", "15", "--agents", "gfucb-mdp", "gfucb-mdp-literal"]
    main([*words, "--seeds", "0", "1", "--processes", "1"])
    assert "< V*" in capsys.readouterr().out
    main(["report", out])
    page = (tmp_path / "runs" / "report.html").read_text()
    assert "Combination locks" in page and "below the optimal value" in page
    table = summarise(tmp_path / "runs").set_index("agent")
    assert table.loc["gfucb-mdp", "optimism_violations"] == 0
    assert len(load_rows(tmp_path / "runs")) == 60


def test_run_accepts_episodic_presets_and_names_unknown_agents(tmp_path, capsys):
    out = str(tmp_path / "run")
    main(
        ["run", "--preset", "lock", "--out", out, "--environment.horizon", "2", "--num-rounds", "3"]
    )
    assert "episodes" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["run", "--preset", "lock", "--agent.name", "ucb1", "--out", str(tmp_path / "x")])
    assert "gfucb-mdp, gfucb-mdp-joint" in capsys.readouterr().err


def test_an_unknown_agent_lists_the_known_ones():
    with pytest.raises(UnknownNameError, match="lsvi-ucb"):
        make_agent(EpisodicAgentConfig("nobody"), make_environment(TINY, 0), 0)
