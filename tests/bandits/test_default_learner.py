"""Which model the default agent uses for which inputs, and when the choice is fixed."""

import pytest
import torch
from table_cases import assert_same_state, context_and_arm, items, play, snapshot

import gfucb
from gfucb import GFUCB, BatchedAgents, Greedy, LastLayer, multitask_greedy
from gfucb.bandits import table_learner
from gfucb.bandits.catalogue_learner import CatalogueLearner
from gfucb.bandits.default_learner import DefaultLearner, network_learner
from gfucb.bandits.learner import Learner
from gfucb.bandits.table_learner import TableLearner
from gfucb.bandits.table_network_average import TableNetworkAverage
from gfucb.checks import bandits as bandit_checks
from gfucb.checks import check_bandit_agent
from gfucb.core.errors import InvalidInputError
from gfucb.models import DefaultNetworkClass

pytestmark = pytest.mark.usefixtures("few_frequencies")
INPUTS = {
    "columns": (torch.rand(3, 4), TableLearner),
    "one column": (torch.rand(3, 1), TableLearner),
    "doubles": (torch.rand(3, 4).double(), TableLearner),
    "half precision": (torch.rand(3, 4).half(), TableLearner),
    "many columns": (torch.rand(3, 784), TableLearner),
    "columns in two axes": (torch.rand(3, 2, 3), TableLearner),
    "images that are too small": (torch.rand(3, 7, 8), TableLearner),
    "bytes": (torch.ones(3, 5, dtype=torch.uint8), TableLearner),
    "images": (torch.rand(3, 8, 8), Learner),
    "images with channels": (torch.rand(3, 3, 9, 8), Learner),
    "images of bytes": (torch.ones(3, 8, 8, dtype=torch.uint8), Learner),
    "ids": (torch.tensor([3, 1, 2]), CatalogueLearner),
    "ids with an axis": (torch.tensor([[3], [1], [2]]), CatalogueLearner),
    "codes of categories": (torch.tensor([3, 1, 2], dtype=torch.int8), CatalogueLearner),
    "short ids": (torch.tensor([3, 1, 2], dtype=torch.int16), CatalogueLearner),
    "ids of 32 bits": (torch.tensor([3, 1, 2], dtype=torch.int32), CatalogueLearner),
}


@pytest.mark.parametrize("name", INPUTS)
def test_the_model_depends_on_the_inputs(name):
    inputs, expected = INPUTS[name]
    found = GFUCB(2).learner.for_inputs(inputs)
    assert type(found.table if isinstance(found, TableNetworkAverage) else found) is expected


@pytest.mark.parametrize("name", [n for n, (_, kind) in INPUTS.items() if kind is not Learner])
def test_the_model_learns_and_decides(name):
    inputs, expected = INPUTS[name]
    agent = GFUCB(2)
    agent.observe(agent.decide(inputs[None], tasks=[1]), [0.5])
    agent.learn([0, 0, 1], inputs, [0.1, 0.9, 0.4])
    assert type(agent.learner.chosen) is expected
    decision = agent.decide(inputs[None].expand(2, *inputs.shape))
    assert bool(decision.optimistic_values.isfinite().all())
    again = GFUCB(2)
    again.load_state(snapshot(agent))
    assert_same_state(again, snapshot(agent))


@pytest.mark.parametrize(
    "options",
    [
        {"representation": DefaultNetworkClass()},
        {"fit": gfucb.VariableProjection(steps=2)},
        {"ridge": 2.0},
        {"offset": 0.5},
        {"head_norm_bound": 3.0},
        {"action_selector": gfucb.exploration.Linearised()},
    ],
    ids=lambda options: next(iter(options)),
)
def test_a_setting_of_the_network_selects_the_network(options):
    assert type(GFUCB(2, **options).learner) is Learner


@pytest.mark.parametrize(
    "options",
    [
        {"action_selector": Greedy()},
        {"action_selector": LastLayer(joint=False)},
        {"squared_radius": gfucb.ConstantRadius(1.0)},
        {"value_range": (0.0, 1.0)},
        {"value_range": None},
        {"refit_growth": 2.0},
    ],
    ids=str,
)
def test_other_settings_do_not(options):
    agent = GFUCB(2, **options)
    assert isinstance(agent.learner, DefaultLearner)
    play(agent, context_and_arm, range(3))
    assert isinstance(agent.learner.chosen, TableLearner)


class TestFirstRewards:
    def test_decisions_do_not_fix_the_choice(self):
        agent = GFUCB(2)
        agent.decide(context_and_arm(2, 0))
        agent.decide(items(2, 0))
        agent.learn([], torch.zeros(0, 4), [])
        play(agent, items, range(2))
        assert isinstance(agent.learner.chosen, CatalogueLearner)

    @pytest.mark.parametrize(
        ("first", "other"), [(context_and_arm, items), (items, context_and_arm)]
    )
    def test_other_inputs_are_refused_afterwards(self, first, other):
        agent = GFUCB(2)
        play(agent, first, range(2))
        late = GFUCB(2).decide(other(2, 0))
        before = snapshot(agent)
        with pytest.raises(InvalidInputError, match="has learned from"):
            agent.decide(other(2, 1))
        with pytest.raises(InvalidInputError, match="has learned from"):
            agent.observe(late, [0.1, 0.2])
        assert_same_state(agent, before)

    def test_images_with_channels_last_are_refused(self):
        agent = GFUCB(2)
        photos = torch.zeros(2, 3, 9, 9, 3, dtype=torch.uint8)
        with pytest.raises(InvalidInputError, match=r"such as images.movedim\(-1, -3\)"):
            agent.decide(photos)
        with pytest.raises(InvalidInputError, match="channels are the last axis"):
            agent.learn([0], photos[:1, 0], [1.0])
        agent.decide(photos.movedim(-1, -3))
        assert agent.learner.num_samples == 0

    def test_refused_rewards_do_not_fix_the_choice(self):
        agent = GFUCB(2)
        with pytest.raises(InvalidInputError):
            agent.observe(agent.decide(items(2, 0)), [0.1, float("nan")])
        play(agent, context_and_arm, range(2))
        assert isinstance(agent.learner.chosen, TableLearner)

    def test_a_first_fit_that_fails_does_not_fix_the_choice(self, monkeypatch):
        def fail(*arguments, **options):
            raise ZeroDivisionError

        agent = GFUCB(2)
        monkeypatch.setattr(table_learner, "fit_table", fail)
        with pytest.raises(ZeroDivisionError):
            play(agent, context_and_arm, range(1))
        play(agent, items, range(2))
        assert isinstance(agent.learner.chosen, CatalogueLearner)

    def test_counters_are_those_of_the_model_in_use(self):
        agent = GFUCB(2)
        assert repr(agent) == "GFUCB(num_tasks=2, samples=0, fits=0)"
        play(agent, items, range(1))
        assert repr(agent) == "GFUCB(num_tasks=2, samples=2, fits=1)"
        assert agent.diagnostics()["fits"] == 1


@pytest.mark.parametrize("make", [GFUCB, multitask_greedy])
@pytest.mark.parametrize("shape", [(4,), (1,), (2, 3)])
def test_the_agent_checks_pass_on_tables(make, shape):
    check_bandit_agent(lambda: make(2, seed=3), shape)


@pytest.mark.parametrize("make", [GFUCB, multitask_greedy])
def test_the_agent_checks_pass_on_items(make, monkeypatch):
    def ids(index: int, rows: int, input_shape: tuple[int, ...]) -> torch.Tensor:
        return items(rows, index)[:, : bandit_checks.NUM_ACTIONS]

    monkeypatch.setattr(bandit_checks, "_candidates", ids)
    check_bandit_agent(lambda: make(2, seed=3), ())


class TestBatches:
    MESSAGE = r"the default agent has no network.*representation=DefaultNetworkClass\(\)"

    @pytest.mark.parametrize("offer", [context_and_arm, items])
    def test_replicas_without_a_network_are_refused(self, offer):
        batch = BatchedAgents([GFUCB(2, seed=seed) for seed in range(3)])
        candidates = offer(2, 0).expand(3, *offer(2, 0).shape)
        with pytest.raises(InvalidInputError, match=self.MESSAGE):
            batch.decide(candidates)

    def test_replicas_with_a_network_decide(self):
        batch = BatchedAgents([GFUCB(2, DefaultNetworkClass(), seed=seed) for seed in range(3)])
        assert batch.decide(torch.rand(3, 2, 5, 4)).actions.shape == (3, 2)

    def test_a_learner_of_a_network_is_itself(self):
        agent, inputs = GFUCB(2), torch.rand(3, 8, 8)
        assert network_learner(agent.network_learner, torch.rand(3, 4)) is agent.network_learner
        assert network_learner(agent.learner, inputs) is agent.network_learner
