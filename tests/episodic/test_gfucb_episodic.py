"""Algorithm 2: exact where it can be, equal to what is known where it must be."""

import time

import numpy as np
import pytest
import torch

import gfucb
from gfucb import (
    ConstantRadius,
    Decision,
    EpisodicGFUCB,
    FiniteClass,
    LastLayer,
    LinearClass,
    NeuralClass,
)
from gfucb.core.errors import InvalidInputError, SavedStateError, UnknownNameError
from gfucb.core.random import global_randomness_from, random_stream
from gfucb.environments import finite_bandit, linear_mdps, tabular_lock, tabular_mdps
from gfucb.episodic import LSVIUCB, UCBVI, IndependentEpisodicAgents
from gfucb.models import IdentityRepresentation
from gfucb.runs.loop import play, play_episode

ONE_HOT = FiniteClass([IdentityRepresentation()])
BACKUPS = ["pointwise", "literal", "joint", "randomised"]


def small_network(input_dim=6, feature_dim=3):
    with global_randomness_from(random_stream(0, "network")):
        return torch.nn.Sequential(
            torch.nn.Linear(input_dim, 8), torch.nn.Tanh(), torch.nn.Linear(8, feature_dim)
        )


# -- One stage is a bandit ---------------------------------------------------------------------


def bandit_pairs():
    """(name, class, bandit's solver, backup): what must decide alike with one stage."""
    finite = finite_bandit(seed=2).representation_class
    network = NeuralClass(small_network())
    return [
        ("finite, literal", finite, None, "literal"),
        ("finite, joint", finite, None, "joint"),
        ("network, literal", network, None, "literal"),
        ("network, joint", network, None, "joint"),
        ("linear, literal", LinearClass(6, 2), None, "literal"),
        ("one phi alone, pointwise", ONE_HOT, LastLayer(joint=False), "pointwise"),
        ("network alone, pointwise", network, LastLayer(joint=False), "pointwise"),
    ]


@pytest.mark.parametrize("pair", bandit_pairs(), ids=lambda pair: pair[0])
def test_one_stage_is_the_bandit_decision_for_decision(pair):
    _, known, solver, backup = pair
    environment = finite_bandit(seed=2)
    shared = {
        "squared_radius": ConstantRadius(0.3),
        "ridge": 0.7,
        "value_range": (-1.0, 1.0),
        "offset": 0.1,
        "seed": 5,
    }
    bandit = gfucb.GFUCB(environment.num_tasks, known, action_selector=solver, **shared)
    episodic = EpisodicGFUCB(
        environment.num_tasks, 1, known, backup=backup, replan="every", **shared
    )
    # On the unit sphere all widths are equal at first, and rounding would choose.
    lengths = torch.linspace(0.8, 1.2, environment.num_actions, dtype=torch.float64)[:, None]
    for index in range(1, 13):
        round_ = environment.round(index)
        candidates = lengths * round_.candidates
        expected = bandit.decide(candidates)
        episodic.plan(candidates)
        decision = episodic.decide(0, candidates)
        assert decision.actions.tolist() == expected.actions.tolist()
        torch.testing.assert_close(decision.optimistic_values, expected.optimistic_values)
        rewards = round_.rewards(expected.actions)
        bandit.observe(expected, rewards)
        episodic.observe(0, decision, rewards)


# -- One-hot features are LSVI-UCB as in the textbook -------------------------------------------


class TextbookLSVI:
    """Tabular LSVI-UCB with lambda = 1, by counting: w(s,a) = sum of targets / (n + 1)."""

    def __init__(self, num_states, num_actions, horizon, beta):
        self.shape, self.horizon, self.beta = (num_states, num_actions), horizon, beta
        self.history = [[] for _ in range(horizon)]

    def plan(self):
        tables, following = [], np.zeros(self.shape[0])
        for stage in reversed(range(self.horizon)):
            counts, sums = np.zeros(self.shape), np.zeros(self.shape)
            for state, action, reward, successor in self.history[stage]:
                counts[state, action] += 1
                last = stage == self.horizon - 1
                sums[state, action] += reward + (0.0 if last else following[successor])
            table = sums / (counts + 1) + self.beta / np.sqrt(counts + 1)
            tables.insert(0, table)
            following = np.clip(table.max(axis=1), 0, 1)
        return tables


def test_with_one_hot_features_and_one_task_pointwise_is_textbook_lsvi_ucb_to_the_digit():
    generator = np.random.default_rng(0)
    transitions = generator.dirichlet(np.ones(4), size=(3, 4, 2))
    environment = tabular_mdps(
        [transitions],
        [generator.uniform(0, 1 / 3, (3, 4, 2))],
        reward_range=(0.0, 1 / 3),
        reward_noise="bernoulli",
        value_range=(0.0, 1.0),
        seed=3,
    )
    agent = EpisodicGFUCB(
        1, 3, ONE_HOT, squared_radius=ConstantRadius(0.6**2), ridge=1.0, replan="every"
    )
    textbook = TextbookLSVI(4, 2, 3, beta=0.6)
    everywhere = torch.zeros(4, dtype=torch.int64)
    for index in range(1, 61):
        episode = environment.episode(index)
        agent.plan(episode.offered()[1])
        tables = textbook.plan()
        for stage in range(3):
            action_sets = agent.decide(stage, environment.inputs, everywhere)
            assert action_sets.actions.tolist() == tables[stage].argmax(1).tolist()
            values = np.clip(tables[stage].max(1), 0, 1)
            np.testing.assert_allclose(action_sets.optimistic_values, values, rtol=0, atol=1e-12)
        for stage in range(3):
            state = int(episode.states[0])
            decision = agent.decide(stage, episode.offered()[1])
            outcome = episode.play(decision.actions)
            agent.observe(stage, decision, outcome.rewards, outcome.next_candidates, outcome.ended)
            successor = int(episode.states[0])
            textbook.history[stage].append(
                (state, int(decision.actions[0]), float(outcome.rewards[0]), successor)
            )


@pytest.mark.parametrize("num_tasks", [1, 3])
def test_the_lean_lsvi_ucb_hopes_for_what_the_one_of_gfucb_does(num_tasks):
    environment = linear_mdps(num_tasks=num_tasks, horizon=3, num_states=5, seed=1)
    lean = gfucb.episodic.LSVIUCB(num_tasks, 3)
    through_rooms = gfucb.episodic.lsvi_ucb(num_tasks, 3)
    for index in range(1, 41):
        episode = environment.episode(index)
        for agent in (lean, through_rooms):
            agent.plan(episode.offered()[1])
        assert lean.plan_index == through_rooms.plan_index
        for stage in range(3):
            candidates = episode.offered()[1]
            decision, other = (
                lean.decide(stage, candidates),
                through_rooms.decide(stage, candidates),
            )
            torch.testing.assert_close(decision.optimistic_values, other.optimistic_values)
            outcome = episode.play(other.actions)
            for agent in (lean, through_rooms):
                agent.observe(stage, other, outcome.rewards, outcome.next_candidates, outcome.ended)


def test_the_lean_lsvi_ucb_continues_from_its_state(tmp_path):
    environment = tabular_lock(horizon=4, seed=2)
    check_continuation(lambda: gfucb.episodic.LSVIUCB(1, 4), environment, tmp_path, episodes=20)
    with pytest.raises(InvalidInputError, match="no plan yet"):
        gfucb.episodic.LSVIUCB(1, 4).decide(0, environment.inputs[:1])
    with pytest.raises(InvalidInputError, match="one row for each"):
        gfucb.episodic.LSVIUCB(2, 4).plan(environment.inputs[:1])


def test_a_known_representation_makes_tasks_strangers():
    environment = linear_mdps(num_tasks=3, horizon=2, num_states=5, seed=1)
    together = gfucb.episodic.lsvi_ucb(3, 2, replan="every")
    alone = gfucb.episodic.IndependentEpisodicAgents(
        3, lambda seed: gfucb.episodic.lsvi_ucb(1, 2, replan="every")
    )
    one = list(play(together, environment, num_rounds=12, uses_true_features=True))
    other = list(play(alone, environment, num_rounds=12, uses_true_features=True))
    assert [r["regret"] for r in one] == pytest.approx([r["regret"] for r in other])


# -- Several representations ---------------------------------------------------------------------


def trained(backup="pointwise", episodes=15, environment=None, **options):
    environment = environment or linear_mdps(
        num_tasks=2, horizon=3, num_states=5, num_actions=3, seed=4
    )
    known = options.pop("representation", None) or environment.representation_class
    settings = {"seed": 1, "squared_radius": ConstantRadius(0.2)} | options
    agent = EpisodicGFUCB(
        environment.num_tasks, environment.horizon, known, backup=backup, **settings
    )
    for index in range(1, episodes + 1):
        play_episode(agent, environment.episode(index), environment.horizon, environment.num_tasks)
    return agent, environment


def test_upper_values_are_the_suprema_of_the_confidence_set():
    agent, environment = trained(episodes=12, ridge=0.5)
    inputs = environment.inputs.flatten(0, 1)
    tasks = torch.arange(len(inputs)) % 2
    for stage in range(3):
        expected = agent.confidence_set(stage).upper_values(inputs, tasks)
        found = agent.plans[stage].upper_values(inputs, tasks)
        torch.testing.assert_close(found, expected)


def test_the_fit_of_a_stage_is_least_squares_over_the_class():
    agent, _ = trained(replan="every")
    for stage in range(3):
        center, data = agent.confidence_set(stage).center, agent.confidence_set(stage).data
        best = gfucb.estimation.Exhaustive(agent.representation_class)(
            data, center, agent.settings_of_fits.penalty, random_stream(0, "unused")
        )
        assert best.representation is center.representation
        torch.testing.assert_close(best.heads, center.heads)


def test_the_last_stage_is_fitted_to_rewards_and_the_others_to_rewards_and_values():
    agent, environment = trained(replan="every")
    for stage in (1, 2):
        memory, data = agent.buffers[stage], agent.confidence_set(stage).data
        expected = memory.rewards[: len(data)].copy()
        if stage == 1:
            for sample, place in enumerate(memory.entered[: len(data)]):
                task = memory.places.tasks[place]
                candidates = memory.places.rows[place]
                upper = agent.plans[2].upper_values(candidates, task.repeat(len(candidates)))
                expected[sample] += float(upper.max().clamp(0, 1))
        np.testing.assert_allclose(data.targets, expected)
    assert environment.horizon == 3


def test_the_true_representation_is_found():
    easy = linear_mdps(num_tasks=4, horizon=2, num_representations=4, sharpness=5, seed=3)
    agent, environment = trained(episodes=150, environment=easy)
    truth = environment.true_features.flatten(0, 1)
    for stage in range(2):
        member = agent.confidence_set(stage).center.representation
        torch.testing.assert_close(member(environment.inputs.flatten(0, 1)), truth)


def test_ranges_shrink_with_the_stages_to_go():
    agent = EpisodicGFUCB(1, 4, value_range=(0.0, 1.0), reward_range=(0.0, 0.25))
    assert [agent.range_of(stage) for stage in range(4)] == [
        (0, 1),
        (0, 0.75),
        (0, 0.5),
        (0, 0.25),
    ]
    assert EpisodicGFUCB(1, 4, value_range=None).range_of(0) is None
    assert EpisodicGFUCB(1, 2, value_range=None, reward_range=(-1, 1)).range_of(0) == (-2, 2)
    assert EpisodicGFUCB(1, 2, value_range=None, reward_range=(1, 2)).range_of(0) == (1, 4)


def test_the_norm_bound_of_program_1_holds():
    agent, _ = trained(head_norm_bound=0.05, replan="every")
    for stage in range(3):
        heads = agent.confidence_set(stage).center.heads
        assert float(heads.norm(dim=1).max()) <= 0.05 * (1 + 1e-9)
    free, _ = trained(replan="every")
    assert float(free.confidence_set(0).center.heads.norm(dim=1).max()) > 0.05


# -- Optimism, and what it takes ----------------------------------------------------------------


def first_goal(agent, environment, episodes):
    for row in play(agent, environment, num_rounds=episodes):
        if row["goals"]:
            return row["round"]
    return None


def test_on_a_lock_the_printed_algorithm_never_arrives_and_the_default_does():
    for seed in (1, 2):
        environment = tabular_lock(horizon=12, seed=seed)
        assert first_goal(gfucb.episodic.lsvi_ucb(1, 12), environment, 700) is not None
        assert (
            first_goal(gfucb.episodic.lsvi_ucb(1, 12, backup="literal"), environment, 700) is None
        )


def test_the_default_is_optimistic_on_the_lock_and_the_printed_one_is_not():
    violations = {}
    for backup in ("pointwise", "literal"):
        environment = tabular_lock(horizon=8, seed=3)
        rows = play(gfucb.episodic.lsvi_ucb(1, 8, backup=backup), environment, num_rounds=200)
        violations[backup] = np.mean([row["optimism_violations"] for row in rows])
    assert violations["pointwise"] == 0
    assert violations["literal"] > 0.5


@pytest.mark.parametrize("backup", ["joint", "randomised"])
def test_the_other_backups_open_a_short_lock_too(backup):
    for seed in range(2):
        environment = tabular_lock(horizon=4, seed=seed)
        agent = gfucb.episodic.lsvi_ucb(1, 4, backup=backup, replan="every")
        assert first_goal(agent, environment, 150) is not None


def test_the_joint_members_are_in_their_sets_and_promise_at_least_what_the_fit_does():
    agent, environment = trained(
        "joint", replan="every", environment=linear_mdps(num_tasks=2, num_actions=5, seed=1)
    )
    candidates = environment.episode(50).offered()[1]
    agent.plan(candidates)
    hoped = agent.decide(0, candidates).optimistic_values.sum()
    for plan in agent.plans:
        assert plan.confidence_set.contains(plan.played[0], tolerance=1e-6)
    believed = agent.plans[0].center.values(
        candidates.flatten(0, 1), torch.arange(2).repeat_interleave(5)
    )
    assert hoped >= believed.reshape(2, 5).amax(1).clamp(0, 1).sum() - 1e-9


def test_perturbed_heads_have_the_covariance_of_perturbed_least_squares():
    agent, _ = trained(
        backup=gfucb.episodic.backups.Randomised(num_samples=4000), episodes=1, ridge=1.0
    )
    agent.plan(
        linear_mdps(num_tasks=2, num_states=5, num_actions=3, seed=4).episode(2).offered()[1]
    )
    plan = agent.plans[0]
    draws = torch.stack([f.heads[0] for f in plan.played]) - plan.center.heads[0]
    statistics = plan.confidence_set.center_statistics
    precision = statistics.grams[0] + torch.eye(5, dtype=torch.float64)
    found = draws.T @ draws / len(draws)
    torch.testing.assert_close(found, 0.2 * torch.linalg.inv(precision), atol=0.015, rtol=0.1)


# -- Plans are made when they are due ------------------------------------------------------------


@pytest.mark.parametrize(("replan", "most"), [("determinant", 40), ("doubling", 9), ("every", 100)])
def test_plans_are_rare_where_they_are_lazy(replan, most):
    agent, _ = trained(
        episodes=100, replan=replan, environment=tabular_lock(horizon=3), representation=ONE_HOT
    )
    assert agent.plan_index <= most
    if replan == "every":
        assert agent.plan_index == 100


def test_between_plans_nothing_is_computed_and_decisions_stay():
    agent, environment = trained(episodes=60, replan="doubling")
    plans = agent.plans
    before = [
        agent.decide(h, environment.inputs, torch.zeros(5, dtype=int)).actions for h in range(3)
    ]
    play_episode(agent, environment.episode(61), 3, 2)
    agent.plan(environment.episode(62).offered()[1])
    assert agent.plans is plans
    after = [
        agent.decide(h, environment.inputs, torch.zeros(5, dtype=int)).actions for h in range(3)
    ]
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))


def test_memory_keeps_what_comes_back_once():
    agent, environment = trained(
        episodes=200, environment=tabular_lock(horizon=3), representation=ONE_HOT
    )
    for memory in agent.buffers:
        assert len(memory) == 200 and len(memory.inputs) <= 6 and len(memory.places) <= 3
    assert environment.num_states == 3


# -- Classes, sharing, saving --------------------------------------------------------------------

CLASSES = {
    "finite": lambda environment: environment.representation_class,
    "linear": lambda environment: LinearClass(8, 3),
    "network": lambda environment: NeuralClass(small_network(8)),
    "default network": lambda environment: None,
}


@pytest.mark.parametrize("known", CLASSES)
@pytest.mark.parametrize("share_stages", [False, True])
def test_every_class_plays_and_continues_from_its_state(tmp_path, known, share_stages):
    environment = linear_mdps(num_tasks=2, horizon=3, num_states=5, num_actions=3, seed=4)

    def make():
        return EpisodicGFUCB(
            2,
            3,
            CLASSES[known](environment),
            seed=1,
            fit=gfucb.VariableProjection(steps=3) if "network" in known else None,
            share_stages=share_stages,
            next_targets=2,
        )

    check_continuation(make, environment, tmp_path)


@pytest.mark.parametrize("backup", BACKUPS)
@pytest.mark.parametrize("replan", ["determinant", "doubling", "every"])
def test_every_backup_continues_from_its_state(tmp_path, backup, replan):
    environment = linear_mdps(num_tasks=2, horizon=2, num_states=4, num_representations=3, seed=4)

    def make():
        known = environment.representation_class
        return EpisodicGFUCB(2, 2, known, backup=backup, replan=replan, seed=1)

    check_continuation(make, environment, tmp_path)


def check_continuation(make, environment, tmp_path, episodes=8):
    whole, begun, continued = make(), make(), make()
    rows = list(play(whole, environment, num_rounds=2 * episodes))
    list(play(begun, environment, num_rounds=episodes))
    gfucb.save(begun, tmp_path / "agent.safetensors")
    gfucb.restore(continued, tmp_path / "agent.safetensors")
    rest = play(
        continued,
        environment,
        num_rounds=2 * episodes,
        rounds_done=episodes,
        cumulative_regret=rows[episodes - 1]["cumulative_regret"],
    )
    assert list(rest) == rows[episodes:]


def test_a_state_of_another_agent_is_refused(tmp_path):
    agent, _ = trained()
    gfucb.save(agent, tmp_path / "agent.safetensors")
    other = EpisodicGFUCB(2, 3, agent.representation_class, backup="literal", seed=1)
    with pytest.raises(SavedStateError, match="backup is pointwise"):
        gfucb.restore(other, tmp_path / "agent.safetensors")
    assert other.state() == {}


def test_next_observations_teach_the_representation():
    """Without any reward, features that tell next states apart are learned all the same."""
    generator = np.random.default_rng(1)
    transitions = np.zeros((8, 2, 8))
    for state in range(8):
        for action in range(2):
            transitions[state, action, 4 * ((state % 2) ^ action) :][:4] = 0.25
    inputs = torch.from_numpy(generator.normal(size=(8, 2, 6)))
    kind = torch.tensor([[(s % 2) ^ a for a in range(2)] for s in range(8)])
    inputs[..., 0] = 2.0 * kind - 1.0
    start = np.full(8, 1 / 8)
    environment = tabular_mdps(
        [transitions], [np.zeros((8, 2))], horizon=2, inputs=inputs, start=start, seed=1
    )
    unexplained = {}
    for next_targets in (0, 4):
        agent, _ = trained(
            episodes=60,
            environment=environment,
            representation=NeuralClass(small_network(6, 2)),
            next_targets=next_targets,
            ridge=1.0,
            fit=gfucb.VariableProjection(
                steps=30, max_steps=30, learning_rate=1e-2, samples_at_full_rate=0
            ),
        )
        representation = agent.plans[0].center.representation
        phi = representation(inputs.flatten(0, 1)).detach().double().numpy()
        design = np.column_stack([phi, np.ones(16)])
        sign = 2.0 * kind.flatten().numpy() - 1.0
        fitted = design @ np.linalg.lstsq(design, sign, rcond=None)[0]
        unexplained[next_targets] = np.mean((sign - fitted) ** 2)
    assert unexplained[4] < 0.25
    assert unexplained[0] > 0.5


# -- Doors ---------------------------------------------------------------------------------------


def test_bad_input_is_refused_with_a_sentence_and_leaves_no_trace():
    agent, environment = trained(episodes=3)
    candidates = environment.episode(9).offered()[1]
    decision = agent.decide(0, candidates)
    before = agent.state()
    cases = [
        (lambda: agent.observe(3, decision, [0, 0]), "numbered 0 to 2"),
        (lambda: agent.observe(0, decision, [0.0]), r"shape \[2\]"),
        (lambda: agent.observe(0, decision, [0.0, float("nan")], candidates), "finite"),
        (lambda: agent.observe(0, decision, [0.0, 0.0]), "needs next_candidates"),
        (lambda: agent.observe(0, decision, [0.0, 0.0], candidates[:, :, :3]), "next_candidates"),
        (lambda: agent.observe(0, decision, [0.0, 0.0], candidates * np.inf), "finite"),
        (lambda: agent.observe(0, decision, [0, 0], candidates, [0, 1]), "booleans"),
        (lambda: agent.observe(0, "all", [0, 0], candidates), "a Decision, got str"),
        (lambda: agent.decide(-1, candidates), "numbered 0 to 2"),
        (lambda: agent.decide(0, candidates[:1]), "one row for each of the 2 tasks"),
    ]
    for act, message in cases:
        with pytest.raises(InvalidInputError, match=message):
            act()
    after = agent.state()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_wrong_settings_are_refused():
    with pytest.raises(UnknownNameError, match="joint, literal, pointwise, randomised"):
        EpisodicGFUCB(1, 2, backup="optimistic")
    for options, message in [
        ({"horizon": 0}, "horizon"),
        ({"replan": "never"}, "determinant"),
        ({"replan_growth": 1.0}, "above 1"),
        ({"value_range": (1, 0)}, "low < high"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            EpisodicGFUCB(**({"num_tasks": 1, "horizon": 2} | options))
    with pytest.raises(InvalidInputError, match="no plan yet"):
        EpisodicGFUCB(1, 2).decide(0, torch.rand(1, 2, 3, generator=torch.Generator()))


def test_episodes_that_end_early_have_no_value_after_the_end():
    agent = gfucb.episodic.lsvi_ucb(1, 2, replan="every")
    candidates = torch.eye(2, dtype=torch.float64)[None]
    for _ in range(3):
        agent.plan(candidates)
        decision = agent.decide(0, candidates)
        agent.observe(0, decision, [0.5], candidates, [True])
    np.testing.assert_allclose(agent.buffers[0].targets(np.zeros(0)), 0.5)


def observe_samples(agent, stage: int, count: int, generator: torch.Generator) -> None:
    """Tell an agent of `count` samples of inputs that never come back."""
    inputs = torch.rand(count, 4, generator=generator, dtype=torch.float64)
    zeros = torch.zeros(count, dtype=torch.int64)
    decision = Decision(zeros, zeros, inputs, inputs[:, 0])
    following = torch.rand(count, 2, 4, generator=generator, dtype=torch.float64)
    agent.observe(stage, decision, inputs[:, 1], following if stage == 0 else None)


@pytest.mark.parametrize(
    "make", [lambda: EpisodicGFUCB(1, 2, ONE_HOT, replan="every"), lambda: LSVIUCB(1, 2)]
)
def test_a_plan_costs_at_most_in_proportion_to_what_is_stored(make):
    first = torch.rand(1, 2, 4, generator=random_stream(0, "first"), dtype=torch.float64)

    def seconds(samples: int) -> float:
        times = []
        for repetition in range(3):
            agent, generator = make(), random_stream(repetition, "samples")
            for stage in (0, 1):
                observe_samples(agent, stage, samples, generator)
            begin = time.process_time()
            agent.plan(first)
            times.append(time.process_time() - begin)
        return min(times)

    # Twenty times the data: a quadratic plan would take four hundred times as long.
    assert seconds(20_000) < 60 * seconds(1000)


@pytest.mark.parametrize("backup", ["joint", "randomised"])
def test_members_that_are_played_keep_the_norm_bound(backup):
    agent, _ = trained(backup, episodes=12, head_norm_bound=0.2)
    for plan in agent.plans:
        for member in plan.played:
            assert member.heads.norm(dim=-1).max() <= 0.2 + 1e-9


@pytest.mark.parametrize(
    "make",
    [
        lambda: EpisodicGFUCB(1, 3, ONE_HOT),
        lambda: LSVIUCB(1, 3),
        lambda: UCBVI(1, 3),
        lambda: IndependentEpisodicAgents(2, lambda seed: EpisodicGFUCB(1, 3, ONE_HOT)),
    ],
    ids=["gfucb", "lsvi", "ucbvi", "copies"],
)
def test_an_agent_that_never_saw_a_stage_is_restored(make, tmp_path):
    agent, other = make(), make()
    action_sets = torch.eye(3, dtype=torch.float64).expand(agent.num_tasks, 3, 3)
    agent.plan(action_sets)
    for _ in range(3):  # episodes that end after the first stage
        decision = agent.decide(0, action_sets)
        ended = torch.ones(agent.num_tasks, dtype=torch.bool)
        agent.observe(0, decision, torch.ones(agent.num_tasks), None, ended)
    agent.plan(action_sets)
    gfucb.save(agent, tmp_path / "agent")
    gfucb.restore(other, tmp_path / "agent")
    for stage in range(3):
        expected, found = agent.decide(stage, action_sets), other.decide(stage, action_sets)
        assert torch.equal(found.actions, expected.actions)
        torch.testing.assert_close(found.optimistic_values, expected.optimistic_values)


@pytest.mark.parametrize("make", [lambda: EpisodicGFUCB(1, 3, ONE_HOT), lambda: LSVIUCB(1, 3)])
def test_what_does_not_fit_what_was_seen_is_refused_and_leaves_no_trace(make):
    agent, action_sets = make(), torch.eye(3, dtype=torch.float64)[None]
    agent.plan(action_sets)
    decision = agent.decide(0, action_sets)
    agent.observe(0, decision, [1.0], action_sets)
    before = agent.state()
    with pytest.raises(InvalidInputError, match="pad action sets to one length"):
        agent.observe(0, decision, [1.0], action_sets[:, :2])
    longer = Decision(decision.tasks, decision.actions, torch.rand(1, 4), torch.zeros(1))
    with pytest.raises(InvalidInputError, match="has learned from"):
        agent.observe(0, longer, [1.0], torch.rand(1, 3, 4))
    for ask in (
        lambda: agent.plan(torch.rand(1, 3, 7)),
        lambda: agent.decide(0, torch.rand(1, 3, 7)),
    ):
        with pytest.raises(InvalidInputError, match="has planned for inputs"):
            ask()
    after = agent.state()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    agent.plan(action_sets)


def test_lean_lsvi_decides_as_the_rooms_do_on_a_range_above_zero():
    environment = tabular_lock(horizon=3)
    shifted = {"value_range": (5.0, 10.0)}
    lean = LSVIUCB(1, 3, beta=1.5, ridge=0.1, replan_growth=1.0, **shifted)
    rooms = gfucb.episodic.lsvi_ucb(1, 3, beta=1.5, ridge=0.1, replan="every", **shifted)
    for agent in (lean, rooms):
        for index in range(1, 20):
            play_episode(agent, environment.episode(index), 3, 1)
    everyone = torch.zeros(environment.num_states, dtype=torch.int64)
    for stage in range(3):
        one, other = (a.decide(stage, environment.inputs, everyone) for a in (lean, rooms))
        torch.testing.assert_close(one.optimistic_values, other.optimistic_values)
