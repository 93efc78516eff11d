"""Regions of continuous observations that all stages share."""

import numpy as np
import pytest
import torch
from episodic_cases import states_equal

from gfucb import EpisodicGFUCB, InvalidInputError
from gfucb.environments.mountain_car import mountain_cars
from gfucb.episodic.cell_counts import CellCounts
from gfucb.episodic.observation_table import ObservationTable
from gfucb.episodic.regions import fit_regions
from gfucb.episodic.shared_stages import stages_are_alike

HORIZON = 6


def walks(step_of_stage=lambda stage: 0.1, reward_of_stage=lambda stage: 1.0, episodes=250):
    """Tables of random walks on a line; actions go left or right, the right end pays."""
    generator = np.random.default_rng(0)
    tables = [ObservationTable(1, 1, np.dtype(np.float64)) for _ in range(HORIZON)]
    for _ in range(episodes):
        place = np.array([[generator.uniform()]])
        found = [tables[0].add_observations(place[None])]
        for stage, table in enumerate(tables):
            action = int(generator.integers(2))
            reward = reward_of_stage(stage) * (place[0, 0] > 0.8)
            place = np.clip(place + step_of_stage(stage) * (2 * action - 1), 0, 1)
            place = place + 0.01 * generator.normal(size=place.shape)
            following = np.array([-1])
            if stage + 1 < HORIZON:
                following = tables[stage + 1].add_observations(place[None])
            one = np.zeros(1, dtype=np.int64)
            table.add_transitions(one, found[-1], one + action, one + reward, following)
            found.append(following)
    return tables


def sizes(tables):
    return [len(table.keys) for table in tables]


def test_regions_cover_the_observations_and_are_the_same_in_all_stages():
    tables = walks()
    regions = fit_regions(tables, sizes(tables), seed=0)
    number = round(sum(sizes(tables)) ** 0.5)
    assert regions.num_cells(0) == regions.num_cells(5) == number
    places = np.linspace(0, 1, 200)[:, None]
    cells = regions.find(0, places, number)
    np.testing.assert_array_equal(cells, regions.find(3, places, number))
    assert (np.diff(np.unique(cells, return_index=True)[1]) != 0).all()
    for cell in np.unique(cells):
        assert np.ptp(places[cells == cell]) < 4 / number


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, True),
        ({"step_of_stage": lambda stage: 0.1 * (-1) ** stage}, False),
        ({"reward_of_stage": lambda stage: float(stage == HORIZON - 1)}, False),
        ({"reward_of_stage": lambda stage: 0.0}, True),
    ],
)
def test_data_tell_whether_stages_are_alike(change, expected):
    tables = walks(**change)
    assert stages_are_alike(tables, num_actions=2, seed=0) is expected


def test_one_stage_has_nothing_to_share():
    tables = walks()[:1]
    assert not stages_are_alike(tables, num_actions=2, seed=0)


@pytest.fixture(scope="module")
def driven():
    """An agent in the middle of an episode with two cars."""
    environment = mountain_cars(8, num_tasks=2, seed=2000)
    agent = EpisodicGFUCB(2, 8)
    for index in range(1, 8):
        episode = environment.episode(index)
        tasks, candidates = episode.offered()
        agent.plan(candidates, tasks)
        for stage in range(8 if index < 7 else 3):
            tasks, candidates = episode.offered()
            decision = agent.decide(stage, candidates, tasks)
            outcome = episode.play(decision.actions)
            agent.observe(stage, decision, outcome.rewards, outcome.next_candidates, outcome.ended)
    return agent, episode.offered()


def test_stages_of_cars_share_their_counts(driven):
    model = driven[0].learner.cells.model
    assert model.num_shared == 10
    counts = model.stages[0].counts
    assert all(own.counts is counts for own in model.stages[:-1])
    assert counts.counts.sum() == sum(len(table) for table in model.tables[:-1])
    before = [len(table) - 1 for table in model.tables]
    again = model.counts_until(before)
    assert isinstance(again[0], CellCounts) and again[0] is again[-1]
    assert again[0].counts.sum() == sum(before[:-1])


def test_an_agent_with_regions_continues_from_its_state(driven):
    agent, (tasks, candidates) = driven
    restored = EpisodicGFUCB(2, 8)
    restored.load_state({name: tensor.clone() for name, tensor in agent.state().items()})
    assert states_equal(agent.state(), restored.state())
    for stage in range(3, 8):
        decisions = [each.decide(stage, candidates, tasks) for each in (agent, restored)]
        assert torch.equal(decisions[0].actions, decisions[1].actions)
        assert torch.equal(decisions[0].optimistic_values, decisions[1].optimistic_values)


def test_plans_have_the_bonus_of_regions(driven, monkeypatch):
    agent, _ = driven
    cells = agent.learner.cells
    assert cells.model.has_regions
    monkeypatch.setattr(type(cells.model), "has_regions", False)
    other = EpisodicGFUCB(2, 8)
    other.load_state({name: tensor.clone() for name, tensor in agent.state().items()})
    pairs = zip(cells._values, other.learner.cells._values, strict=True)
    assert any((mine.upper != theirs.upper).any() for mine, theirs in pairs)


def test_a_state_with_an_unknown_decoder_is_refused(driven):
    state = {name: tensor.clone() for name, tensor in driven[0].state().items()}
    state["fits"][1] = 4
    with pytest.raises(InvalidInputError, match="names no decoder"):
        EpisodicGFUCB(2, 8).load_state(state)
