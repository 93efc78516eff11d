"""Decision logs of `gfucb.Agent` as logs for estimates."""

import pytest
import torch

import gfucb
from gfucb.cli.main import main
from gfucb.core.errors import DataFileError, GFUCBWarning, InvalidInputError
from gfucb.core.random import random_stream
from gfucb.evaluation import UniformPolicy, evaluate, log_of_decisions
from gfucb.models import IdentityRepresentation
from gfucb.runs.log_files import read_log

TASKS = ["oslo", ("bergen", 2)]
IDENTITY = gfucb.FiniteClass([IdentityRepresentation()])  # fits in no time


def randomised(**settings) -> gfucb.Randomised:
    return gfucb.Randomised(gfucb.GFUCB(1, IDENTITY, seed=0), epsilon=0.6, **settings)


def offered(index: int) -> torch.Tensor:
    draws = random_stream(index, "offered")
    return torch.rand(2, 3, 2, generator=draws, dtype=torch.float64)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A log of 30 decisions of two rows; the reward is the first column of the input."""
    path = tmp_path_factory.mktemp("logs") / "agent.log"
    with gfucb.Agent(randomised(), log=path) as agent:
        for index in range(30):
            decision = agent.decide(offered(index), tasks=TASKS)
            agent.observe(decision, decision.inputs[:, 0])
    return path


def test_the_log_has_what_was_decided(path):
    named = read_log(path)
    log = named.log
    assert repr(log) == "LoggedDecisions(60 rows, 3 actions, 2 tasks)"
    assert named.task_names == ("oslo", ("bergen", 2)) and named.action_names == ()
    torch.testing.assert_close(log.candidates, torch.cat([offered(i) for i in range(30)]))
    torch.testing.assert_close(log.rewards, log.chosen_inputs[:, 0])
    torch.testing.assert_close(log.probabilities, log.of_chosen(log.action_probabilities))
    assert float(log.probabilities.min()) == pytest.approx(0.2)
    result = evaluate(log, UniformPolicy(), estimators=["ips"])["ips"]
    exact = float(log.candidates[:, :, 0].mean())
    assert result.value == pytest.approx(exact, abs=3 * result.standard_error)


def test_the_command_reads_a_decision_log(path, capsys):
    main(["evaluate", str(path), "--policy", "uniform", "action=1", "--estimators", "ips", "snips"])
    assert "from 60 rows" in capsys.readouterr().out


def test_named_actions_have_columns_of_their_own():
    catalogues = [{"tea": [0.1], "juice": [0.7]}, {"juice": [0.7], "milk": [0.4]}] * 20
    with gfucb.Agent(randomised(seed=1)) as agent:
        chosen = []
        for catalogue in catalogues:
            decision = agent.decide_from(catalogue, tasks=["oslo"])
            chosen += decision.action_names
            agent.observe(decision, [0.5])
        named = log_of_decisions(agent.log)
    assert named.action_names == ("tea", "juice", "milk")
    assert [named.action_names[action] for action in named.log.actions.tolist()] == chosen
    assert named.log.available.tolist()[:2] == [[True, True, False], [False, True, True]]
    assert named.log.candidates[1].flatten().tolist() == pytest.approx([0.0, 0.7, 0.4])


def test_one_hot_actions_without_names_have_those_of_the_schema(tmp_path, capsys):
    table = {"visitors": [1, 2], "drink": ["tea", "juice"], "sold": [3.0, 4.0]}
    schema = gfucb.tables.Schema.of(table, action="drink", reward="sold")
    with gfucb.Agent(randomised(), log=tmp_path / "agent.log") as agent:
        candidates = schema.offers(table).candidates
        for _ in range(20):
            agent.observe(agent.decide(candidates, tasks=TASKS), [3.0, 4.0])
        with pytest.raises(InvalidInputError, match=r"numbers because .*--schema FILE"):
            log_of_decisions(agent.log).action("tea")
        assert log_of_decisions(agent.log, schema=schema).action_names == ("juice", "tea")
        agent.observe(agent.decide_table(table, schema), [3.0, 4.0])  # puts it into the log
        named = log_of_decisions(agent.log)
        assert named.action_names == ("juice", "tea") and len(named.log) == 42
        agent.observe(agent.decide(candidates[:, :1], tasks=TASKS), [3.0, 4.0])
        assert log_of_decisions(agent.log).action_names == ()  # of which the schema knows nothing
    schema.save(tmp_path / "schema.json")
    words = ["--schema", str(tmp_path / "schema.json"), "--reward-range", "0", "5"]
    with pytest.raises(SystemExit):  # of the last decision
        main(["evaluate", str(tmp_path / "agent.log"), "--policy", "action=tea", *words])
    assert "no action 'tea'" in capsys.readouterr().err


def test_rows_without_rewards_are_left_out_with_a_warning():
    now = [1000.0]
    log = gfucb.DecisionLog(clock=lambda: now[0])
    agent = gfucb.Agent(randomised(), log=log, reward_limit=60.0)
    for index in range(20):
        agent.observe(agent.decide(offered(index), tasks=TASKS), [0.2, 0.4])
    agent.deactivate(agent.decide(offered(20), tasks=TASKS))
    agent.decide(offered(21), tasks=TASKS)
    now[0] += 100
    agent.expire()
    agent.decide(offered(22), tasks=["oslo", "bodo"])
    with pytest.warns(GFUCBWarning, match="2 rows without a reward yet and 2 rows whose reward"):
        assert len(log_of_decisions(log).log) == 40
    with pytest.warns(GFUCBWarning, match="2 rows without a reward yet and 0 rows"):
        named = log_of_decisions(log, missing_reward=0.0)
    assert named.log.rewards[-2:].tolist() == [0, 0] and len(named.log) == 42
    assert named.task_names == ("oslo", ("bergen", 2)) and named.log.num_tasks == 2
    with pytest.raises(InvalidInputError, match="missing_reward"):
        log_of_decisions(log, missing_reward=float("nan"))
    agent.close()


def test_tasks_have_the_numbers_of_the_model():
    agent = gfucb.Agent(randomised(), tasks=["unused", *TASKS])
    first = agent.decide(offered(0), tasks=TASKS)
    agent.observe(first.ids[1], 0.4)  # the second task has data first
    agent.observe(first.ids[0], 0.2)
    for index in range(1, 6):
        agent.observe(agent.decide(offered(index), tasks=TASKS), [0.2, 0.4])
    named = log_of_decisions(agent.log)
    assert named.task_names == (TASKS[1], TASKS[0])
    by_task = [named.log.rewards[named.log.tasks == task].unique().tolist() for task in range(2)]
    assert by_task == [[0.4], [0.2]]
    data = agent.model.learner.data
    assert [data.targets[data.tasks == task].unique().tolist() for task in range(2)] == by_task
    with pytest.warns(GFUCBWarning, match="effective sample size"):
        result = evaluate(named.log, agent.model, estimators=["snips"])
    assert 0.2 <= result["snips"].value <= 0.4


def test_deterministic_decisions_support_no_other_action():
    with gfucb.Agent(gfucb.GFUCB(1, IDENTITY, seed=0)) as agent:
        for index in range(20):
            agent.observe(agent.decide(offered(index), tasks=TASKS), [0.2, 0.4])
        named = log_of_decisions(agent.log)
    assert bool((named.log.action_probabilities.max(1).values == 1).all())
    with pytest.warns(GFUCBWarning, match="logged with probability 0"):
        evaluate(named.log, [[0.9, 0.05, 0.05]] * 40, estimators=["ips"])


def test_logs_that_cannot_be_used_are_refused(tmp_path):
    with gfucb.Agent(gfucb.GFUCB(1, IDENTITY, seed=0)) as agent:
        with pytest.raises(InvalidInputError, match="no decision with a reward"):
            log_of_decisions(agent.log)
        first = agent.decide(torch.rand(1, 2, 3), tasks=["a"])
        agent.decide(torch.rand(1, 2, 4), tasks=["a"])
        agent.observe(first, [0.1])
    (tmp_path / "other.log").write_bytes(b"SQLite format 3\0" + bytes(100))
    with pytest.raises(gfucb.GFUCBError):
        read_log(tmp_path / "other.log")
    (tmp_path / "text.log").write_text("text")
    with pytest.raises(DataFileError, match="no known kind of log"):
        read_log(tmp_path / "text.log")
