"""Runs, comparisons and reproductions of episodic MDPs."""

import json
from dataclasses import replace
from functools import partial
from itertools import islice

import pandas as pd
import pytest
from killing import kill_midway

from gfucb.cli import main
from gfucb.errors import InvalidInputError, RunFolderError, UnknownNameError
from gfucb.experiments import load_rows, run, summarise
from gfucb.experiments.mdp_agents import MDP_AGENTS, MDPAgentConfig, make_mdp_agent
from gfucb.experiments.mdp_config import (
    MDP_PRESETS,
    MDPRunConfig,
    MDPWorldConfig,
    make_mdp_world,
)
from gfucb.experiments.mdp_runner import play_episodes
from gfucb.experiments.reproductions import (
    Options,
    Piece,
    Reproduction,
    Verdict,
    driver,
    lock,
    reproduce,
)

TINY = MDPWorldConfig(
    num_tasks=2, num_actions=3, horizon=2, num_states=4, input_dim=4, num_representations=3
)
QUICK = MDPRunConfig(TINY, MDPAgentConfig(fit_steps=2), num_rounds=10, seed=3)


def finish(config, folder) -> bytes:
    for _ in run(config, folder):
        pass
    return (folder / "rows.csv").read_bytes()


@pytest.mark.parametrize("name", MDP_AGENTS)
@pytest.mark.parametrize("representation", ["given", "network"])
def test_every_agent_of_the_table_plays(name, representation):
    world = make_mdp_world(TINY, 0)
    config = MDPAgentConfig(name, representation=representation, fit_steps=2)
    agent = make_mdp_agent(config, world, 0)
    reads_truth = MDP_AGENTS[name].reads_truth
    rows = list(play_episodes(agent, world, num_episodes=4, reads_truth=reads_truth))
    assert [row["round"] for row in rows] == [1, 2, 3, 4]
    assert all(row["regret"] >= -1e-12 for row in rows)


@pytest.mark.parametrize("name", MDP_PRESETS)
def test_every_preset_can_be_played(name):
    entry = MDP_PRESETS[name]
    world = make_mdp_world(replace(entry.world, horizon=2, num_tasks=2), seed=0)
    for agent in entry.agents:
        made = make_mdp_agent(replace(entry.agent, name=agent, fit_steps=2), world, 0)
        reads_truth = MDP_AGENTS[agent].reads_truth
        rows = list(play_episodes(made, world, num_episodes=2, reads_truth=reads_truth))
        assert 0 <= rows[-1]["optimism_violations"] <= 1


@pytest.mark.parametrize("agent", ["gfucb-mdp", "gfucb-mdp-literal", "independent-mdp", "fitted-q"])
@pytest.mark.parametrize("stop_after", [1, 6])
def test_resumed_equals_uninterrupted_byte_for_byte(tmp_path, agent, stop_after):
    config = replace(QUICK, agent=replace(QUICK.agent, name=agent))
    whole = finish(config, tmp_path / "whole")
    interrupted = run(config, tmp_path / "parts")
    list(islice(interrupted, stop_after))
    interrupted.close()
    assert finish(config, tmp_path / "parts") == whole


def test_a_killed_process_is_resumed_byte_for_byte(tmp_path):
    agent = MDPAgentConfig(representation="network", share_stages=True, next_targets=2, fit_steps=5)
    config = replace(QUICK, agent=replace(agent, replan="every"), num_rounds=60)
    script = (
        "import torch; torch.set_num_threads(1)\n"
        "from gfucb.experiments import run\n"
        "from gfucb.experiments.mdp_config import *\n"
        "from gfucb.experiments.mdp_agents import *\n"
        "from pathlib import Path\n"
        f"config = {config!r}\n"
        f"for row in run(config, Path({str(tmp_path / 'killed')!r})): pass\n"
    )
    kill_midway(script, tmp_path / "killed")
    assert not json.loads((tmp_path / "killed" / "provenance.json").read_text())["finished"]
    assert finish(config, tmp_path / "killed") == finish(config, tmp_path / "whole")


def test_agents_meet_the_same_draws(tmp_path):
    world = make_mdp_world(TINY, 5)
    starts = [world.episode(index).first_states.tolist() for index in range(1, 6)]
    again = make_mdp_world(TINY, 5)
    assert starts == [again.episode(index).first_states.tolist() for index in range(1, 6)]


def test_compare_and_report_show_optimism_violations(tmp_path, capsys):
    out = str(tmp_path / "runs")
    words = ["compare", "--preset", "lock", "--out", out, "--world.horizon", "3"]
    words += ["--num-rounds", "15", "--agents", "gfucb-mdp", "gfucb-mdp-literal"]
    main([*words, "--seeds", "0", "1", "--jobs", "1"])
    assert "< V*" in capsys.readouterr().out
    main(["report", out])
    page = (tmp_path / "runs" / "report.html").read_text()
    assert "Combination locks" in page and "below the optimal one" in page
    table = summarise(tmp_path / "runs").set_index("agent")
    assert table.loc["gfucb-mdp", "optimism_violations"] == 0
    assert len(load_rows(tmp_path / "runs")) == 60


def test_run_takes_presets_of_mdps_and_names_unknown_agents(tmp_path, capsys):
    out = str(tmp_path / "run")
    main(["run", "--preset", "lock", "--out", out, "--world.horizon", "2", "--num-rounds", "3"])
    assert "episodes" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["run", "--preset", "lock", "--agent.name", "ucb1", "--out", str(tmp_path / "x")])
    assert "gfucb-mdp, gfucb-mdp-joint" in capsys.readouterr().err


def small(calls):
    """A reproduction of two pieces that notes when they are made."""

    def make(name):
        calls.append(name)
        return [{"name": name, "value": len(name)}]

    def figure(rows):
        from matplotlib.figure import Figure

        return Figure()

    return Reproduction(
        "Names have lengths.",
        lambda options: [Piece(name, lambda name=name: make(name)) for name in ("one", "three")],
        figure,
        lambda rows: [Verdict("long", str(rows["value"].sum()), bool(rows["value"].sum() == 8))],
    )


def test_a_reproduction_makes_only_what_is_missing_and_gives_the_same_bytes(tmp_path):
    calls: list[str] = []
    out = tmp_path / "out"
    verdicts = reproduce("names", small(calls), out, Options())
    assert calls == ["one", "three"] and verdicts[0].holds
    before = (out / "rows.csv").read_bytes()
    (out / "pieces" / "three.csv").unlink()
    reproduce("names", small(calls), out, Options())
    assert calls == ["one", "three", "three"]
    assert (out / "rows.csv").read_bytes() == before
    assert len(pd.read_csv(out / "rows.csv")) == 2


def test_any_number_of_processes_gives_the_same_bytes(tmp_path):
    def pieces(options):
        made = {seed: partial(lock._tabular, "gfucb-mdp", 3, seed, 20, True) for seed in range(3)}
        return [Piece(f"seed={seed}", make) for seed, make in made.items()]

    locks = replace(small([]), pieces=pieces, verdicts=lambda rows: [])
    for processes in (1, 2):
        done: list[int] = []
        out = tmp_path / str(processes)
        reproduce("locks", locks, out, Options(), processes=processes, advance=done.append)
        assert done == [0, 1, 2, 3]
    for name in ("rows.csv", *(f"pieces/seed={seed}.csv" for seed in range(3)), "verdict.json"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes(), name
    # A folder begun with one number can be ended with another.
    (tmp_path / "2" / "pieces" / "seed=1.csv").unlink()
    reproduce("locks", locks, tmp_path / "2", Options())
    assert (tmp_path / "1" / "rows.csv").read_bytes() == (tmp_path / "2" / "rows.csv").read_bytes()
    with pytest.raises(InvalidInputError, match="processes"):
        reproduce("locks", locks, tmp_path / "none", Options(), processes=0)


def test_what_is_there_can_be_shown_before_all_is_made(tmp_path):
    calls: list[str] = []
    out = tmp_path / "out"
    with pytest.raises(RunFolderError, match="no finished piece"):
        reproduce("names", small(calls), out, Options(), only_what_is_there=True)
    reproduce("names", small(calls), out, Options())
    (out / "pieces" / "three.csv").unlink()
    reproduce("names", small(calls), out, Options(), only_what_is_there=True)
    assert calls == ["one", "three"]
    assert "1 of 2 pieces" in (out / "verdict.md").read_text()


def test_some_pieces_can_be_made_and_the_others_later(tmp_path):
    calls: list[str] = []
    reproduce("names", small(calls), tmp_path, Options(), only="th*")
    assert calls == ["three"] and "1 of 2 pieces" in (tmp_path / "verdict.md").read_text()
    reproduce("names", small(calls), tmp_path, Options())
    assert calls == ["three", "one"] and len(pd.read_csv(tmp_path / "rows.csv")) == 2
    with pytest.raises(InvalidInputError, match=r"no piece of names matches 'two'.*'one', 'three'"):
        reproduce("names", small(calls), tmp_path / "none", Options(), only="two")
    assert not (tmp_path / "none").exists()


def test_pieces_from_several_machines_add_up(tmp_path, monkeypatch):
    monkeypatch.setattr(driver, "device_name", lambda device: f"a {device} machine")
    calls: list[str] = []
    reproduce("names", small(calls), tmp_path, Options())
    (tmp_path / "pieces" / "three.csv").unlink()
    reproduce("names", small(calls), tmp_path, Options(data_dir="elsewhere", device="meta"))
    assert calls == ["one", "three", "three"]
    made = json.loads((tmp_path / "provenance.json").read_text())["made"]
    assert [(entry["pieces"], entry["device"]) for entry in made] == [
        (["one"], "cpu"),
        (["three"], "a meta machine"),
    ]
    reproduce("names", small(calls), tmp_path, Options(device="meta"))
    assert json.loads((tmp_path / "provenance.json").read_text())["made"] == made  # only drawn
    (tmp_path / "pieces" / "one.csv").unlink()
    reproduce("names", small(calls), tmp_path, Options(device="meta"))
    again = json.loads((tmp_path / "provenance.json").read_text())["made"]
    assert [entry["pieces"] for entry in again] == [["three"], ["one"]]  # nobody's are left out


def test_a_call_that_is_stopped_has_signed_what_it_made(tmp_path):
    def stopped(name: str) -> None:
        if name == "three":
            raise KeyboardInterrupt

    whole = small([])
    pieces = [partial(piece.make) for piece in whole.pieces(Options())]
    killed = replace(
        whole,
        pieces=lambda options: [
            Piece(name, lambda name=name, make=make: stopped(name) or make())
            for name, make in zip(("one", "three"), pieces, strict=True)
        ],
    )
    with pytest.raises(KeyboardInterrupt):
        reproduce("names", killed, tmp_path, Options())
    record = json.loads((tmp_path / "provenance.json").read_text())
    assert [entry["pieces"] for entry in record["made"]] == [["one"]]
    assert record["made"][0]["commit"] and record["made"][0]["versions"]["torch"]
    reproduce("names", whole, tmp_path, Options())
    record = json.loads((tmp_path / "provenance.json").read_text())
    assert [entry["pieces"] for entry in record["made"]] == [["one"], ["three"]]


def test_a_folder_with_other_options_is_refused(tmp_path):
    reproduce("names", small([]), tmp_path / "out", Options())
    with pytest.raises(RunFolderError, match="other options"):
        reproduce("names", small([]), tmp_path / "out", Options(quick=True))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(RunFolderError, match="holds no reproduction"):
        reproduce("names", small([]), tmp_path / "mine", Options())


def test_unknown_reproductions_list_the_known_ones(capsys):
    with pytest.raises(SystemExit):
        main(["reproduce", "fig9", "--out", "x"])
    assert "linear-mdp, lock" in capsys.readouterr().err
    with pytest.raises(UnknownNameError, match="lsvi-ucb"):
        make_mdp_agent(MDPAgentConfig("nobody"), make_mdp_world(TINY, 0), 0)
