import numpy as np
import pytest
import torch

import gfucb
from gfucb.core.errors import InvalidInputError
from gfucb.environments import ImageBandit, load_digits
from gfucb.runs import play


class TextbookLinUCB:
    """Li et al. 2010 (hybrid-free, one model a task), written with numpy from the formulas."""

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
def test_linucb_equals_the_textbook_to_the_digit(alpha):
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
            hoped = float(decision.optimistic_values[task])
            assert hoped == pytest.approx(scores.max(), rel=1e-9, abs=1e-9)
            textbook.update(task, x[scores.argmax()], float(rewards[task]))
        agent.observe(decision, rewards)


def test_uniform_chooses_every_available_action_about_equally_often():
    agent, counts = gfucb.Uniform(1), torch.zeros(4)
    available = torch.tensor([[True, True, False, True]])
    for _ in range(3000):
        counts[agent.decide(torch.zeros(1, 4, 1), available=available).actions] += 1
    assert counts[2] == 0
    # Five standard deviations of a binomial count.
    assert float((counts[[0, 1, 3]] - 1000).abs().max()) < 5 * (3000 * 2 / 9) ** 0.5


def test_epsilon_greedy_explores_with_its_probability_and_otherwise_follows_its_agent():
    inner = gfucb.linucb(50, alpha=0.0)
    agent = gfucb.EpsilonGreedy(inner, epsilon=0.2)
    changed, total = 0, 0
    for index in range(100):
        candidates = torch.rand(50, 10, 3, generator=torch.Generator().manual_seed(index))
        wanted, taken = inner.decide(candidates), agent.decide(candidates)
        changed += int((wanted.actions != taken.actions).sum())
        total += 50
    expected = 0.2 * 0.9  # one lot in ten falls on the action that was wanted anyway
    assert abs(changed / total - expected) < 5 * (expected * (1 - expected) / total) ** 0.5


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

    pairs = gfucb.bandits.Grouped(4, make, group_size=2, seed=9)
    list(play(pairs, environment, num_rounds=3))
    alone = make(2, pairs.agents[1].learner.seed)
    for index in range(1, 4):
        round_ = environment.round(index)
        decision = alone.decide(round_.candidates[2:])
        alone.observe(
            decision,
            (round_.mean_rewards[2:] + round_.noise[2:, None])[torch.arange(2), decision.actions],
        )
    action_sets = environment.round(9).candidates
    torch.testing.assert_close(
        pairs.decide(action_sets).optimistic_values[2:],
        alone.decide(action_sets[2:]).optimistic_values,
    )


def test_multitask_greedy_never_hopes():
    agent = gfucb.multitask_greedy(3, fit=gfucb.VariableProjection(steps=3))
    agent.observe(agent.decide(torch.rand(3, 4, 5)), [0.2, 0.5, 0.9])
    agent.decide(torch.rand(3, 4, 5))
    assert agent.diagnostics()["bonus"] == pytest.approx(0.0, abs=1e-6)  # single precision


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: gfucb.EpsilonGreedy(gfucb.Uniform(2), epsilon=1.5), "epsilon"),
        (lambda: gfucb.linucb(2, alpha=-1.0), "alpha"),
        (lambda: gfucb.linucb(2, ridge=0.0), "ridge"),
        (
            lambda: gfucb.bandits.Grouped(5, lambda n, s: gfucb.Uniform(n), group_size=2),
            "group_size",
        ),
        (lambda: gfucb.Uniform(0), "num_tasks"),
    ],
)
def test_impossible_baselines_are_refused_by_name(make, word):
    with pytest.raises(InvalidInputError, match=word):
        make()


def test_epsilon_greedy_reports_the_hope_of_the_action_that_is_taken():
    inner = gfucb.linucb(2, alpha=1.0)
    inner.learn([0, 1], torch.eye(2), [1.0, 0.5])
    candidates = torch.rand(2, 6, 2, generator=torch.Generator().manual_seed(0))
    taken = gfucb.EpsilonGreedy(inner, epsilon=1.0).decide(candidates)
    for row in range(2):
        only = torch.zeros(1, 6, dtype=torch.bool)
        only[0, taken.actions[row]] = True
        alone = inner.decide(candidates[row : row + 1], [row], only)
        torch.testing.assert_close(alone.optimistic_values[0], taken.optimistic_values[row])


def test_groups_that_have_not_decided_yet_do_not_spoil_the_diagnostics():
    agent = gfucb.bandits.Grouped(2, lambda n, s: gfucb.linucb(n, seed=s))
    agent.decide(torch.rand(1, 3, 2), tasks=[0])
    assert agent.diagnostics()["squared_radius"] == pytest.approx(0.09)


def test_a_refusal_by_one_group_leaves_the_others_untaught():
    agent = gfucb.bandits.Grouped(2, lambda n, s: gfucb.linucb(n, seed=s))
    agent.observe(agent.decide(torch.rand(1, 3, 4), tasks=[1]), [0.5])
    before = agent.state()
    decision = gfucb.Decision(
        torch.tensor([0, 1]), torch.tensor([0, 0]), torch.rand(2, 2), torch.zeros(2)
    )
    with pytest.raises(InvalidInputError, match="shape"):
        agent.observe(decision, [0.1, 0.2])
    assert agent.state().keys() == before.keys()
