"""Randomised decisions: exact probabilities, draws that can be repeated, restored, and logged."""

from functools import partial

import pytest
import torch

import gfucb
from gfucb.bandits import Grouped, LinearUCB
from gfucb.checks import check_bandit_agent
from gfucb.core.errors import InvalidInputError
from gfucb.core.random import draw_actions, random_stream
from gfucb.estimation import Contrastive
from gfucb.evaluation import AgentPolicy, LoggedDecisions, evaluate
from gfucb.exploration import InverseGap, ThompsonSampling
from gfucb.models import IdentityRepresentation

NUM_TASKS, NUM_ACTIONS = 2, 3
CANDIDATES = torch.rand(
    NUM_TASKS, NUM_ACTIONS, 4, generator=random_stream(0, "candidates"), dtype=torch.float64
)
IDENTITY = gfucb.FiniteClass([IdentityRepresentation()])  # fits in no time
AVAILABLE = torch.tensor([[True, True, True], [True, False, True]])


def trained(**settings) -> gfucb.GFUCB:
    agent = gfucb.GFUCB(NUM_TASKS, seed=0, **settings)
    agent.learn([0, 1, 0, 1], CANDIDATES[:, :2].flatten(0, 1), [0.2, 0.8, 0.4, 0.5])
    return agent


def always_last(candidates, tasks, available):
    """A holdback policy: the last action."""
    last = torch.zeros(available.shape, dtype=torch.float64)
    last[:, -1] = 1
    return last


def never_valid(candidates, tasks, available):
    """Probabilities that do not sum to 1."""
    return available.double()


DISTRIBUTIONS = [None, InverseGap(), ThompsonSampling(samples=200)]


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=repr)
def test_the_mixture_is_the_formula(distribution):
    base = gfucb.Randomised(trained(), distribution=distribution)
    own = base.action_probabilities(CANDIDATES, available=AVAILABLE)
    mixed = gfucb.Randomised(
        trained(),
        distribution=distribution,
        epsilon=0.3,
        holdback=0.2,
        holdback_policy=always_last,
    ).action_probabilities(CANDIDATES, available=AVAILABLE)
    uniform = AVAILABLE.double() / AVAILABLE.sum(1, keepdim=True)
    expected = 0.8 * (0.7 * own + 0.3 * uniform) + 0.2 * always_last(None, None, AVAILABLE)
    torch.testing.assert_close(mixed, expected, rtol=0, atol=1e-12)
    assert float(mixed[1, 1]) == 0 and float(mixed.sum()) == pytest.approx(2, abs=1e-12)


def test_without_a_distribution_the_choice_of_the_agent_has_the_rest():
    agent = trained()
    greedy = agent.decide(CANDIDATES).actions
    found = gfucb.Randomised(agent, epsilon=0.3).action_probabilities(CANDIDATES)
    expected = torch.full((2, 3), 0.1, dtype=torch.float64).scatter(1, greedy[:, None], 0.8)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=repr)
def test_actions_are_drawn_with_the_probabilities_of_the_decision(distribution):
    agent = gfucb.Randomised(trained(), distribution=distribution, epsilon=0.5, holdback=0.2)
    repeats, calls = 25, 8
    candidates, available = (x.repeat_interleave(repeats, 0) for x in (CANDIDATES, AVAILABLE))
    tasks = torch.arange(2).repeat_interleave(repeats)
    expected = agent.action_probabilities(candidates, tasks, available)
    counts = torch.zeros(2, 3)
    for _ in range(calls):
        decision = agent.decide(candidates, tasks, available)
        assert torch.equal(decision.action_probabilities, expected)  # until the next reward
        chosen = expected.gather(1, decision.actions[:, None]).squeeze(1)
        assert torch.equal(decision.probabilities, chosen)
        assert torch.equal(decision.inputs, candidates[torch.arange(2 * repeats), decision.actions])
        counts += torch.nn.functional.one_hot(decision.actions, 3).unflatten(0, (2, -1)).sum(1)
    means = expected.unflatten(0, (2, -1)).mean(1)
    errors = (counts / (repeats * calls) - means).abs()
    assert bool((errors <= 4 * (means * (1 - means) / (repeats * calls)).sqrt()).all())
    samples = None if distribution is None else distribution.monte_carlo_samples
    assert decision.monte_carlo_samples == samples


def test_draws_of_different_calls_and_rows_are_independent():
    """Many decisions between two rewards must not repeat one draw."""
    agent = gfucb.Randomised(gfucb.Uniform(1), seed=0)
    arms = torch.eye(2).expand(50, 2, 2)
    tasks = torch.zeros(50, dtype=torch.int64)
    calls = torch.stack([agent.decide(arms, tasks).actions for _ in range(40)]).double()
    assert abs(float(calls.mean()) - 0.5) < 0.05
    assert float(calls.mean(0).std()) < 0.15 and float(calls.mean(1).std()) < 0.15


def test_joint_choices_do_not_depend_on_the_draws_of_other_rows():
    """The choice of a row has its logged probability, whatever is drawn in other rows."""
    selector = gfucb.LastLayer(joint=True)
    agent = gfucb.Randomised(trained(action_selector=selector), epsilon=0.5)
    expected = agent.action_probabilities(CANDIDATES)
    both = torch.zeros(3, 3)
    for _ in range(60):
        first, second = agent.decide(CANDIDATES).actions.tolist()
        both[first, second] += 1 / 60
    product = expected[0][:, None] * expected[1]
    assert float((both - product).abs().max()) < 4 * (0.25 / 60) ** 0.5


def test_the_same_seed_repeats_and_a_restored_agent_continues(tmp_path):
    def make():
        return gfucb.Randomised(trained(), epsilon=0.5, seed=3)

    one, other = make(), make()
    first = [one.decide(CANDIDATES).actions.tolist() for _ in range(6)]
    gfucb.save(one, tmp_path / "agent")
    rest = [one.decide(CANDIDATES).actions.tolist() for _ in range(6)]
    assert [other.decide(CANDIDATES).actions.tolist() for _ in range(12)] == first + rest
    restored = make()
    gfucb.restore(restored, tmp_path / "agent")
    assert [restored.decide(CANDIDATES).actions.tolist() for _ in range(6)] == rest
    different = gfucb.Randomised(trained(), epsilon=0.4, seed=3)
    with pytest.raises(gfucb.GFUCBError, match=r"epsilon is 0\.5"):
        gfucb.restore(different, tmp_path / "agent")


def test_a_question_changes_nothing_and_refusals_keep_the_draws():
    agent, twin = (gfucb.Randomised(trained(), epsilon=0.5) for _ in range(2))
    agent.action_probabilities(CANDIDATES)
    with pytest.raises(InvalidInputError):
        agent.decide(CANDIDATES * torch.nan)
    AgentPolicy(agent).on(LoggedDecisions([0, 1], [0.5, 0.5], [1, 0], CANDIDATES, [0, 1]))
    for _ in range(5):
        assert torch.equal(agent.decide(CANDIDATES).actions, twin.decide(CANDIDATES).actions)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS[1:], ids=repr)
def test_agents_with_a_distribution_satisfy_the_check(distribution):
    check_bandit_agent(
        lambda: gfucb.Randomised(
            gfucb.GFUCB(2, IDENTITY, seed=0), distribution=distribution, epsilon=0.2, holdback=0.1
        )
    )


def test_the_first_draw_does_not_hide_the_layout_of_a_table():
    """A first decision of one row must still show which columns are the one-hot action."""
    candidates = gfucb.with_actions(torch.rand(1, 2), 3)
    for randomise in (
        gfucb.EpsilonGreedy,
        gfucb.Randomised,
        partial(gfucb.Randomised, distribution=InverseGap()),
    ):
        for seed in range(3):
            inner = gfucb.GFUCB(1, seed=0)
            agent = randomise(inner, epsilon=1.0, seed=seed)
            agent.observe(agent.decide(candidates), [0.5])
            assert inner.state()["table.layout"].tolist()[:3] == [5, 2, 3]


@pytest.mark.parametrize(
    "make",
    [
        lambda: LinearUCB(2),
        lambda: gfucb.EpsilonGreedy(gfucb.Uniform(2)),
        lambda: Grouped(2, lambda tasks, seed: gfucb.Uniform(tasks, seed=seed)),
        lambda: gfucb.Randomised(gfucb.Uniform(2), epsilon=0.5),
    ],
)
def test_any_agent_can_be_randomised(make):
    agent = gfucb.Randomised(make(), epsilon=0.4)
    decision = agent.decide(CANDIDATES)
    assert float(decision.action_probabilities.sum(1).sub(1).abs().max()) < 1e-12
    agent.observe(decision[[1]], [0.5])
    agent.observe(decision[0], [0.5])


def test_groups_of_randomised_agents_state_their_probabilities():
    agent = Grouped(2, lambda tasks, seed: gfucb.Uniform(tasks, seed=seed))
    decision = agent.decide(CANDIDATES, available=AVAILABLE)
    assert decision.action_probabilities.tolist()[1] == [0.5, 0, 0.5]
    assert decision[1].probabilities.tolist() == [0.5]
    sampled = Grouped(
        2,
        lambda tasks, seed: gfucb.Randomised(
            gfucb.GFUCB(tasks, seed=seed), distribution=ThompsonSampling(50 + tasks)
        ),
    )
    assert sampled.decide(CANDIDATES).monte_carlo_samples == 51


def test_deterministic_agents_have_no_probabilities():
    decision = trained().decide(CANDIDATES)
    assert decision.probabilities is None and decision.action_probabilities is None
    assert decision[0].probabilities is None


@pytest.mark.parametrize(
    "settings",
    [
        {"epsilon": 1.1},
        {"epsilon": -0.1},
        {"epsilon": True},
        {"holdback": 2},
        {"holdback": None},
        {"holdback_policy": "greedy"},
        {"holdback_policy": None},
        {"distribution": InverseGap},
        {"distribution": "igw"},
        {"seed": None},
    ],
)
def test_wrong_settings_are_refused(settings):
    with pytest.raises(InvalidInputError):
        gfucb.Randomised(trained(), **settings)


def test_what_is_used_must_fit_together():
    with pytest.raises(InvalidInputError, match="confidence_set"):
        gfucb.Randomised(gfucb.Uniform(2), distribution=InverseGap())
    with pytest.raises(InvalidInputError, match=r"such as .*ThompsonSampling\(\), got 'thompson'"):
        gfucb.Randomised(trained(), distribution="thompson")
    with pytest.raises(InvalidInputError, match="decide"):
        gfucb.Randomised("agent")
    agent = gfucb.Randomised(trained(), holdback=0.1, holdback_policy=never_valid)
    with pytest.raises(InvalidInputError, match="holdback policy must sum to 1"):
        agent.decide(CANDIDATES)
    assert agent.num_decisions == 0
    decision = gfucb.Randomised(trained(), epsilon=0.1).decide(CANDIDATES)
    object.__setattr__(decision, "probabilities", torch.tensor([0.5, torch.nan]))
    with pytest.raises(InvalidInputError, match="probabilities"):
        agent.observe(decision, [0, 1])


def test_thompson_probabilities_approach_the_exact_ones():
    """Two actions: the probability of the first is a normal distribution function."""
    agent = trained()
    two = CANDIDATES[:, :2]
    confidence_set = agent.confidence_set(two.flatten(0, 1), num_sharing=1)
    ellipsoid, center = confidence_set.ellipsoid(), confidence_set.center
    features = center.representation(two.flatten(0, 1)).unflatten(0, (2, 2))
    tasks = torch.arange(2)
    means = ellipsoid.center_values(features, tasks)
    difference = features[:, :1] - features[:, 1:]
    variance = ellipsoid.squared_radius * ellipsoid.squared_widths(difference, tasks).squeeze(1)
    exact = torch.special.ndtr((means[:, 0] - means[:, 1]) / variance.sqrt())
    sampled = gfucb.Randomised(agent, distribution=ThompsonSampling(samples=40_000))
    found = sampled.action_probabilities(two)[:, 0]
    assert bool(((exact > 0.02) & (exact < 0.98)).any())
    torch.testing.assert_close(found, exact, rtol=0, atol=4 * 0.5 / 200)


def test_candidates_that_are_alike_and_networks_can_be_sampled():
    alike = CANDIDATES[:, :1].expand(2, 3, 4)
    found = gfucb.Randomised(trained(), distribution=ThompsonSampling(10)).decide(alike)
    assert bool(found.probabilities.isfinite().all())
    network = gfucb.GFUCB(2, torch.nn.Linear(4, 2), seed=0)
    agent = gfucb.Randomised(network, distribution=ThompsonSampling(300))
    agent.observe(agent.decide(CANDIDATES.float()), [0.1, 0.6])
    assert float(agent.decide(CANDIDATES.float()).action_probabilities.sum()) == pytest.approx(2)


def test_agents_that_learn_from_all_candidates_get_all_of_them():
    inner = gfucb.GFUCB(2, torch.nn.Linear(4, 2), seed=0, self_supervision=Contrastive())
    agent = gfucb.Randomised(inner, epsilon=1.0)
    decision = agent.decide(CANDIDATES.float(), available=AVAILABLE)
    torch.testing.assert_close(decision.offered.inputs, CANDIDATES.float()[AVAILABLE])
    agent.observe(decision[[1]], [0.5])


def test_zero_probabilities_are_never_drawn():
    probabilities = torch.tensor([[0.0, 0.3, 0.0, 0.7, 0.0]]).double().expand(2000, 5)
    actions = draw_actions(probabilities, random_stream(0, "draws"))
    assert set(actions.tolist()) == {1, 3}
    rounded = torch.tensor([[1e-17, 0.5, 0.4999999999, 0.0]]).double().expand(2000, 4)
    assert int(draw_actions(rounded, random_stream(0, "draws")).max()) == 2


def test_logged_probabilities_give_unbiased_estimates():
    """A log with a holdback share, evaluated for a fixed policy with a known value."""
    arms, expected = torch.eye(3, dtype=torch.float64), torch.tensor([0.2, 0.5, 0.7])
    agent = gfucb.Randomised(
        gfucb.Uniform(1), epsilon=0.0, holdback=0.5, holdback_policy=always_last
    )
    decisions = [agent.decide_from(arms, tasks=[0]) for _ in range(400)]
    actions = torch.cat([decision.actions for decision in decisions])
    log = LoggedDecisions(
        actions,
        torch.cat([decision.probabilities for decision in decisions]),
        torch.bernoulli(expected[actions], generator=random_stream(0, "rewards")),
        action_probabilities=torch.cat([d.action_probabilities for d in decisions]),
    )
    result = evaluate(log, [[0.0, 1.0, 0.0]] * 400, estimators=["ips"])
    assert result["ips"].value == pytest.approx(0.5, abs=3 * result["ips"].standard_error)
