"""Audits: replays with a known true function, against the bounds of the theory."""

import json
import shutil
from dataclasses import asdict, replace

import pytest

import gfucb
from gfucb.cli.main import main
from gfucb.core.errors import InvalidInputError, RunDirectoryError
from gfucb.runs import (
    BanditAgentConfig,
    FiniteBanditConfig,
    ImageBanditConfig,
    RunConfig,
    SyntheticBanditConfig,
    make_agent,
    make_environment,
    play,
    run,
)
from gfucb.runs.audit import Coverage, audit_run, replay
from gfucb.runs.single import load_config

SMALL = FiniteBanditConfig(
    num_tasks=2,
    num_actions=3,
    input_dim=3,
    num_representations=3,
    noise_scale=0.5,
)
LINEAR = SyntheticBanditConfig(
    num_tasks=2, num_actions=3, input_dim=3, feature_dim=1, noise_scale=0.5
)
THEORY = BanditAgentConfig(radius="corrected", ridge=0.1)
# With 100 covered runs of 100 the interval of the coverage starts at 0.96; with one miss it starts
# below 0.95. A radius that covers 0.95 of all runs passes with probability 0.95^100 = 0.006.
NUM_RUNS, NUM_ROUNDS, FAILURE_PROBABILITY = 100, 4, 0.05


@pytest.mark.slow
@pytest.mark.parametrize("environment", [SMALL, LINEAR], ids=["finite", "linear"])
def test_the_corrected_radius_covers_and_its_bound_holds(environment):
    """Coverage is at least 1 - delta; the regret never exceeds the widths or the bound."""
    audits = [
        replay(RunConfig(environment, THEORY, NUM_ROUNDS, 10_000 + seed))[0]
        for seed in range(NUM_RUNS)
    ]
    coverage = Coverage.of(audits)
    # One-sided: the interval's lower end, not the point estimate, is above the prediction.
    assert coverage.low >= 1 - FAILURE_PROBABILITY
    assert all(audit.regret <= audit.repaired_bound for audit in audits)
    assert all(audit.lemma_2 != "violated" and not audit.beyond_width for audit in audits)
    assert max(audit.farthest for audit in audits) < 0.5  # the radius is generous


@pytest.mark.parametrize(("num_tasks", "noise_scale"), [(200, 10.0), (50, 100.0)])
def test_the_corrected_radius_holds_with_heads_far_larger_than_the_true_ones(
    num_tasks, noise_scale
):
    noisy = replace(SMALL, num_tasks=num_tasks, noise_scale=noise_scale)
    for seed in range(4):
        audit, _ = replay(RunConfig(noisy, THEORY, 3, seed))
        assert audit.misses == 0


KNOWN = replace(SMALL, num_tasks=1, feature_dim=1, num_representations=1, noise_scale=0.1)


@pytest.mark.slow
def test_the_bound_for_a_known_representation_holds_where_it_is_not_trivial():
    """Below 2 M T, so that it could be exceeded; uniform play does exceed a tenth of it."""
    agent = replace(THEORY, ridge=1.0)
    for seed in range(6):
        audit, _ = replay(RunConfig(KNOWN, agent, 200, seed))
        assert audit.repaired_bound < audit.trivial_bound
        assert audit.regret <= audit.repaired_bound
        assert audit.misses == 0 and audit.beyond_width == 0
    uniform = RunConfig(KNOWN, BanditAgentConfig(name="uniform"), 200, 0)
    environment = make_environment(uniform.environment, 0)
    rows = list(play(make_agent(uniform.agent, environment, 0), environment, num_rounds=200))
    assert rows[-1]["cumulative_regret"] > 0.1 * audit.repaired_bound


def test_a_selector_that_is_not_optimistic_is_detected(monkeypatch):
    """Lemma 0 and optimism can fail: greedy choices from a wide set break both."""
    from gfucb.runs import audit as audit_module

    def greedy_agent(config, environment, seed):
        agent = make_agent(config, environment, seed)
        agent.action_selector = gfucb.Greedy()
        return agent

    monkeypatch.setattr(audit_module, "make_agent", greedy_agent)
    found = [replay(RunConfig(SMALL, THEORY, 20, seed))[0] for seed in range(3)]
    assert all(audit.not_optimistic > 0 for audit in found)


@pytest.mark.slow
def test_the_printed_radius_misses_with_more_noise_than_it_assumes():
    noisy = replace(SMALL, noise_scale=5.0)
    printed = replace(THEORY, radius="printed")
    audits = {
        name: [replay(RunConfig(noisy, agent, NUM_ROUNDS, seed))[0] for seed in range(60)]
        for name, agent in (("printed", printed), ("corrected", THEORY))
    }
    # Measured over 1000 runs: 0.47 of them covered; the corrected radius covers all.
    assert Coverage.of(audits["printed"]).high < 0.8
    assert Coverage.of(audits["corrected"]).covered == 60


@pytest.mark.slow
def test_an_exact_selector_is_optimistic_while_the_true_function_is_in_the_set():
    for seed in range(20):
        audit, _ = replay(RunConfig(SMALL, THEORY, 10, seed))
        assert audit.misses == 0 and audit.not_optimistic == 0
        assert audit.beyond_width == 0


def test_a_radius_that_is_too_small_is_detected():
    small = replace(THEORY, radius_scale=1e-3)
    audits = [replay(RunConfig(SMALL, small, 10, seed))[0] for seed in range(10)]
    assert Coverage.of(audits).covered < 10
    assert all(audit.farthest > 1 for audit in audits if audit.misses)


def test_the_regrets_of_a_replay_are_those_of_the_run(tmp_path):
    config = RunConfig(SMALL, BanditAgentConfig(), 8, 3)
    rows = list(run(config, tmp_path / "run"))
    audit = audit_run(tmp_path / "run")
    assert audit.regret == pytest.approx(2 * rows[-1]["cumulative_regret"])
    assert load_config(tmp_path / "run") == config
    lines = (tmp_path / "run" / "rows.csv").read_text().splitlines(keepends=True)
    (tmp_path / "run" / "rows.csv").write_text("".join(lines[:-1]))
    with pytest.raises(RunDirectoryError, match="does not replay"):
        audit_run(tmp_path / "run")


def test_coverage_has_the_exact_binomial_interval():
    audit, _ = replay(RunConfig(SMALL, THEORY, 2, 0))
    missed = replace(audit, misses=1)
    coverage = Coverage.of([audit] * 9 + [missed])
    assert (coverage.covered, coverage.runs) == (9, 10)
    # Clopper and Pearson for 9 of 10.
    assert coverage.low == pytest.approx(0.5550, abs=1e-4)
    assert coverage.high == pytest.approx(0.9975, abs=1e-4)


def test_runs_that_cannot_be_audited_are_refused(tmp_path):
    with pytest.raises(InvalidInputError, match=r"known true function.* got digits and gfucb"):
        replay(RunConfig(ImageBanditConfig(num_tasks=2), BanditAgentConfig(fit_steps=1), 2))
    with pytest.raises(InvalidInputError, match="confidence set"):
        replay(RunConfig(SMALL, BanditAgentConfig(name="uniform"), 2))
    unfinished = run(RunConfig(SMALL, BanditAgentConfig(), 5), tmp_path / "run")
    next(unfinished)
    unfinished.close()
    with pytest.raises(RunDirectoryError, match="not finished"):
        audit_run(tmp_path / "run")


def test_the_audit_command_prints_and_writes_its_results(tmp_path, capsys):
    for seed in (0, 1):
        for _ in run(RunConfig(SMALL, THEORY, 5, seed), tmp_path / "runs" / str(seed)):
            pass
    main(["audit", str(tmp_path / "runs"), "--json", str(tmp_path / "audit.json")])
    printed = capsys.readouterr().out
    assert "2 of 2 runs" in printed and "vacuous" in printed
    found = json.loads((tmp_path / "audit.json").read_text())
    assert found["coverage"]["covered"] == 2
    assert found["runs"][0] == json.loads(json.dumps(asdict(audit_run(tmp_path / "runs" / "0"))))


def test_the_audit_command_names_all_runs_that_it_cannot_audit(tmp_path, capsys):
    runs, file = tmp_path / "runs", tmp_path / "audit.json"
    for seed in range(4):
        for _ in run(RunConfig(SMALL, THEORY, 2, seed), runs / str(seed)):
            pass
    rows = (runs / "0" / "rows.csv").read_text()
    (runs / "0" / "rows.csv").write_text(rows.replace("regret", "regre", 1))
    (runs / "1" / "config.json").write_text("{")
    (runs / "2" / "provenance.json").write_text("{}")
    (runs / "measurement").mkdir()
    (runs / "measurement" / "config.json").write_text("{}")  # no run of an agent
    with pytest.raises(SystemExit) as stop:
        main(["audit", str(runs), "--json", str(file)])
    printed = capsys.readouterr()
    assert stop.value.code == 2 and "3 of 4 runs of gfucb could not be audited" in printed.err
    assert "in every confidence set in 1 of 1 runs" in " ".join(printed.out.split())
    refused = json.loads(file.read_text())["refused"]
    assert list(refused) == [str(runs / str(seed)) for seed in range(3)]
    for reason, words in zip(
        refused.values(), ("rows.csv is damaged", "cannot read", "not finished"), strict=True
    ):
        assert words in reason
    shutil.rmtree(runs / "3")
    with pytest.raises(SystemExit):
        main(["audit", str(runs)])
    assert "3 of 3 runs of gfucb could not be audited" in capsys.readouterr().err


def test_the_theory_command_prints_and_writes_its_table(tmp_path, capsys):
    file = tmp_path / "theory.json"
    main(["theory", "--kind", "linear", "--num-tasks", "3", "--json", str(file)])
    assert "Theorem 1" in capsys.readouterr().out
    content = json.loads(file.read_text())
    assert content["problem"]["num_tasks"] == 3
    assert {"beta_T, Lemma 1", "regret, Theorem 2"} <= {p["name"] for p in content["bounds"]}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--failure-probability", "1.5"], "failure_probability"),
        (["--noise-scale", "-1"], "noise_scale"),
        (["--num-tasks", "0"], "num_tasks"),
        (["--kind", "linear", "--feature-dim", "20"], "at most as many features"),
        (["--json", "nowhere/x.json"], "no directory nowhere"),
    ],
)
def test_impossible_problems_are_refused(words, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["theory", *words])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err
