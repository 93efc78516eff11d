"""Baselines: known answers, draws that depend on data only, groups that share nothing."""

import numpy as np
import pytest
import torch

import gfucb
from gfucb.bandits import Grouped
from gfucb.core.errors import InvalidInputError
from gfucb.environments import ImageBandit, load_digits
from gfucb.runs import play


class TextbookLinUCB:
    """Li et al. 2010 (one model for each task, not hybrid), written in numpy from the formulas."""

    def __init__(self, num_tasks: int, dim: int, alpha: float, ridge: float) -> None:
        self.alpha = alpha
        self.a = np.stack([ridge * np.eye(dim) for _ in range(num_tasks)])
        self.b = np.zeros((num_tasks, dim))

    def scores(self, task: int, x: np.ndarray) -> np.ndarray:
        inverse = np.linalg.inv(self.a[task])
        theta = inverse @ self.b[task]
        return x @ theta + self.alpha * np.sqrt(np.sum((x @ inverse) * x, axis=1))

    def update(self, task: int, x: np.ndarray, reward: float) -> None:
        self.a[task] += np.outer(x, x)
        self.b[task] += reward * x


@pytest.mark.parametrize("alpha", [0.0, 0.3, 2.0])
def test_linucb_equals_the_textbook_formula(alpha):
    environment = ImageBandit(
        load_digits(), num_tasks=4, reward_map="uniform", noise_scale=0.1, seed=5
    )
    agent = gfucb.linucb(4, alpha=alpha, ridge=0.5)
    textbook = TextbookLinUCB(4, 64, alpha, 0.5)
    for index in range(1, 61):
        round_ = environment.round(index)
        decision = agent.decide(round_.candidates)
        rewards = round_.rewards(decision.actions)
        for task in range(4):
            x = round_.candidates[task].reshape(10, 64).numpy() / 255.0
            scores = textbook.scores(task, x)
            assert int(decision.actions[task]) == int(scores.argmax())
            optimistic_value = float(decision.optimistic_values[task])
            assert optimistic_value == pytest.approx(scores.max(), rel=1e-9, abs=1e-9)
            textbook.update(task, x[scores.argmax()], float(rewards[task]))
        agent.observe(decision, rewards)


def test_uniform_chooses_every_available_action_equally_often():
    agent, counts = gfucb.Uniform(1), torch.zeros(4)
    available = torch.tensor([[True, True, False, True]])
    for _ in range(3000):
        decision = agent.decide(torch.zeros(1, 4, 1), available=available)
        counts[decision.actions] += 1
        agent.observe(decision, [0.0])
    assert counts[2] == 0
    # Five standard deviations of a binomial count.
    assert float((counts[[0, 1, 3]] - 1000).abs().max()) < 5 * (3000 * 2 / 9) ** 0.5


def test_epsilon_greedy_explores_with_its_probability_and_otherwise_follows_its_agent():
    inner = gfucb.linucb(50, alpha=0.0)
    agent = gfucb.EpsilonGreedy(inner, epsilon=0.2)
    changed, total = 0, 0
    for index in range(100):
        candidates = torch.rand(50, 10, 3, generator=torch.Generator().manual_seed(index))
        greedy, taken = inner.decide(candidates), agent.decide(candidates)
        changed += int((greedy.actions != taken.actions).sum())
        total += 50
        agent.observe(taken, torch.zeros(50))
    expected = 0.2 * 0.9  # one random action in ten is the greedy one
    assert abs(changed / total - expected) < 5 * (expected * (1 - expected) / total) ** 0.5


AGENTS_THAT_DRAW = {
    "uniform": lambda: gfucb.Uniform(4),
    "epsilon-greedy": lambda: gfucb.EpsilonGreedy(gfucb.linucb(4), epsilon=0.7),
    "grouped": lambda: Grouped(
        4, lambda n, s: gfucb.EpsilonGreedy(gfucb.Uniform(n, seed=s), epsilon=0.7, seed=s)
    ),
}


@pytest.mark.parametrize("name", AGENTS_THAT_DRAW)
def test_a_what_if_question_changes_no_later_answer(name):
    agent, questioned = AGENTS_THAT_DRAW[name](), AGENTS_THAT_DRAW[name]()
    for index in range(8):
        candidates = torch.rand(4, 9, 3, generator=torch.Generator().manual_seed(index))
        before = questioned.state()
        first = questioned.decide(candidates)
        questioned.decide(torch.rand(2, 5, 3), tasks=[1, 1])
        after = questioned.state()
        assert before.keys() == after.keys()
        assert all(torch.equal(before[key], after[key]) for key in before)
        again, expected = questioned.decide(candidates), agent.decide(candidates)
        assert torch.equal(first.actions, again.actions)
        assert torch.equal(expected.actions, again.actions)
        agent.observe(expected, [0.1, 0.2, 0.3, 0.4])
        questioned.observe(again, [0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize("name", AGENTS_THAT_DRAW)
def test_new_rewards_bring_new_draws_and_refused_or_empty_ones_do_not(name):
    agent, candidates = AGENTS_THAT_DRAW[name](), torch.rand(4, 9, 3)
    decision = agent.decide(candidates)
    with pytest.raises(InvalidInputError):
        agent.observe(decision, [0.1])
    agent.observe(decision[[]], [])
    assert torch.equal(agent.decide(candidates).actions, decision.actions)
    drawn = set()
    for _ in range(6):
        decision = agent.decide(candidates)
        drawn.add(tuple(decision.actions.tolist()))
        agent.observe(decision, torch.zeros(4))
    assert len(drawn) > 1


def test_epsilon_zero_is_greedy():
    candidates = torch.rand(3, 5, 2)
    inner = gfucb.linucb(3)
    taken = gfucb.EpsilonGreedy(inner, epsilon=0.0).decide(candidates)
    assert torch.equal(taken.actions, inner.decide(candidates).actions)


def test_groups_share_nothing():
    environment = ImageBandit(load_digits(), num_tasks=4, seed=0)
    fit = gfucb.VariableProjection(steps=3)

    def make(num_tasks: int, seed: int) -> gfucb.GFUCB:
        return gfucb.GFUCB(num_tasks, seed=seed, fit=fit)

    pairs = Grouped(4, make, group_size=2, seed=9)
    list(play(pairs, environment, num_rounds=3))
    alone = make(2, pairs.agents[1].learner.seed)
    for index in range(1, 4):
        round_ = environment.round(index)
        decision = alone.decide(round_.candidates[2:])
        alone.observe(
            decision,
            (round_.mean_rewards[2:] + round_.noise[2:, None])[torch.arange(2), decision.actions],
        )
    candidates = environment.round(9).candidates
    torch.testing.assert_close(
        pairs.decide(candidates).optimistic_values[2:],
        alone.decide(candidates[2:]).optimistic_values,
    )


def test_rows_of_groups_keep_their_order():
    agent = Grouped(4, lambda n, s: gfucb.linucb(n, seed=s), group_size=2)
    agent.observe(agent.decide(torch.rand(4, 3, 2)), [0.1, 0.9, 0.5, 0.3])
    candidates, tasks = torch.rand(5, 3, 2), [3, 0, 2, 1, 0]
    together = agent.decide(candidates, tasks)
    for row, task in enumerate(tasks):
        alone = agent.decide(candidates[row : row + 1], [task])
        assert int(alone.actions) == int(together.actions[row])
        torch.testing.assert_close(alone.prediction.mean[0], together.prediction.mean[row])


def test_groups_of_which_one_predicts_nothing_make_a_decision_without_a_prediction():
    kinds = iter([lambda n: gfucb.linucb(n), lambda n: gfucb.Uniform(n)])
    agent = Grouped(2, lambda n, s: next(kinds)(n))
    assert agent.decide(torch.rand(2, 3, 2)).prediction is None
    assert agent.decide(torch.rand(1, 3, 2), [0]).prediction is not None


def test_multitask_greedy_has_no_bonus():
    agent = gfucb.multitask_greedy(3, fit=gfucb.VariableProjection(steps=3))
    agent.observe(agent.decide(torch.rand(3, 4, 5)), [0.2, 0.5, 0.9])
    agent.decide(torch.rand(3, 4, 5))
    assert agent.diagnostics()["bonus"] == pytest.approx(0.0, abs=1e-6)  # single precision


def groups(make_agent, num_tasks: int = 4, **options) -> Grouped:
    return Grouped(num_tasks, make_agent, **options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gfucb.EpsilonGreedy(gfucb.Uniform(2), epsilon=1.5), "epsilon .* at most 1"),
        (lambda: gfucb.EpsilonGreedy(gfucb.Uniform(2), epsilon="0.1"), "epsilon .* got '0.1'"),
        (lambda: gfucb.EpsilonGreedy(gfucb.Uniform(2), epsilon=float("nan")), "epsilon"),
        (lambda: gfucb.EpsilonGreedy("greedy"), "agent must be an object with the methods"),
        (lambda: gfucb.EpsilonGreedy(gfucb.Uniform), "got the class Uniform"),
        (lambda: gfucb.EpsilonGreedy(gfucb.Uniform(2), seed=None), "seed must be an integer"),
        (lambda: gfucb.linucb(2, alpha=-1.0), "alpha must be a finite number of at least 0"),
        (lambda: gfucb.linucb(2, alpha=float("nan")), "alpha"),
        (lambda: gfucb.linucb(2, ridge=0.0), "ridge"),
        (lambda: groups(lambda n, s: gfucb.Uniform(n), 5, group_size=2), "group_size"),
        (lambda: groups(lambda n, s: gfucb.Uniform(7)), "agent of 1 tasks.*got one of 7"),
        (lambda: groups(lambda n, s: None), "make_agent returns must be an object"),
        (lambda: groups(gfucb.Uniform(2)), "make_agent must be a function"),
        (lambda: groups(lambda n, s: gfucb.Uniform(n), seed=1.5), "seed must be an integer"),
        (lambda: gfucb.Uniform(0), "num_tasks"),
        (lambda: gfucb.Uniform(2, seed=1.5), "seed must be an integer.*1.5"),
    ],
)
def test_impossible_baselines_are_refused_by_name(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_epsilon_greedy_reports_the_optimistic_value_of_the_action_that_is_taken():
    inner = gfucb.linucb(2, alpha=1.0)
    inner.learn([0, 1], torch.eye(2), [1.0, 0.5])
    candidates = torch.rand(2, 6, 2, generator=torch.Generator().manual_seed(0))
    taken = gfucb.EpsilonGreedy(inner, epsilon=1.0).decide(candidates)
    for row in range(2):
        only = torch.zeros(1, 6, dtype=torch.bool)
        only[0, taken.actions[row]] = True
        alone = inner.decide(candidates[row : row + 1], [row], only)
        torch.testing.assert_close(alone.optimistic_values[0], taken.optimistic_values[row])


def test_diagnostics_are_means_over_the_groups_that_have_decided():
    agent = Grouped(2, lambda n, s: gfucb.linucb(n, seed=s))
    agent.decide(torch.rand(1, 3, 2), tasks=[0])
    assert agent.diagnostics()["squared_radius"] == pytest.approx(0.09)


def test_if_one_group_refuses_rewards_no_group_learns():
    agent = Grouped(2, lambda n, s: gfucb.linucb(n, seed=s))
    agent.observe(agent.decide(torch.rand(1, 3, 4), tasks=[1]), [0.5])
    before = agent.state()
    decision = gfucb.Decision(
        torch.tensor([0, 1]), torch.tensor([0, 0]), torch.rand(2, 2), torch.zeros(2)
    )
    with pytest.raises(InvalidInputError, match="shape"):
        agent.observe(decision, [0.1, 0.2])
    assert agent.state().keys() == before.keys()


def wrong_states(agent) -> list[tuple[dict, str]]:
    state = agent.state()
    return [
        (
            {name: t for name, t in state.items() if name != "num_updates"},
            "no tensor 'num_updates'",
        ),
        (state | {"surplus": torch.zeros(1)}, "unexpected tensor 'surplus'"),
        (state | {"num_updates": torch.tensor(-1)}, "between 0"),
        (state | {"num_updates": torch.tensor(1.0)}, "torch.int64, got torch.float32"),
        (state | {"num_updates": torch.tensor([1])}, r"shape \[\], got \[1\]"),
        (state | {"num_updates": 3}, "must be a tensor, got int"),
    ]


@pytest.mark.parametrize("name", ["uniform", "epsilon-greedy"])
def test_a_wrong_state_is_refused_and_changes_nothing(name):
    agent = AGENTS_THAT_DRAW[name]()
    agent.observe(agent.decide(torch.rand(4, 9, 3)), [0.1, 0.2, 0.3, 0.4])
    before = agent.state()
    for state, message in wrong_states(agent):
        with pytest.raises(InvalidInputError, match=message):
            agent.load_state(state)
    after = agent.state()
    assert all(torch.equal(before[key], after[key]) for key in before)


def test_if_one_group_refuses_its_state_no_group_changes():
    agent = Grouped(2, lambda n, s: gfucb.Uniform(n, seed=s))
    agent.observe(agent.decide(torch.rand(2, 9, 3)), [0.1, 0.2])
    wrong = {"0/num_updates": torch.tensor(7), "1/num_updates": torch.tensor(-7)}
    with pytest.raises(InvalidInputError, match="num_updates"):
        agent.load_state(wrong)
    assert [int(value) for value in agent.state().values()] == [1, 1]
    with pytest.raises(InvalidInputError, match="unexpected tensor '2/num_updates'"):
        agent.load_state(agent.state() | {"2/num_updates": torch.tensor(1)})


def test_baselines_have_a_short_repr():
    uniform = gfucb.Uniform(3)
    assert repr(uniform) == "Uniform(num_tasks=3, updates=0)"
    assert repr(gfucb.EpsilonGreedy(uniform)) == f"EpsilonGreedy({uniform!r}, epsilon=0.1)"
    agent = Grouped(6, lambda n, s: gfucb.Uniform(n, seed=s), group_size=3)
    assert repr(agent) == f"Grouped(2 groups of 3, first={uniform!r})"


@pytest.mark.parametrize("state", [None, [], {3: torch.zeros(1)}])
def test_groups_refuse_what_is_no_state(state):
    agent = Grouped(2, lambda num_tasks, seed: gfucb.linucb(num_tasks, seed=seed))
    with pytest.raises(InvalidInputError, match="state"):
        agent.load_state(state)
