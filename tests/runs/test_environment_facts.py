"""What an environment may state about itself, and what agents built by name do with it."""

from types import SimpleNamespace

import pytest

from gfucb.bandits.bandit_settings import default_radius
from gfucb.core.environment_facts import noise_scale_of, representation_class_of, value_range_of
from gfucb.core.errors import InvalidInputError
from gfucb.environments import finite_bandit
from gfucb.runs import BanditAgentConfig, make_agent
from gfucb.theory.lemma_radii import CorrectedRadius


class Stating:
    """The rounds of a synthetic bandit, and only the facts that the test gives."""

    def __init__(self, **facts: object) -> None:
        self._bandit = finite_bandit(num_tasks=2, num_actions=3, seed=1)
        self.num_tasks, self.round = 2, self._bandit.round
        self.describe = self._bandit.describe
        vars(self).update(facts)


def test_the_defaults_of_an_environment_that_states_nothing():
    silent = Stating()
    assert value_range_of(silent) == (0.0, 1.0)
    assert representation_class_of(silent) is None and noise_scale_of(silent) is None


@pytest.mark.parametrize(
    ("read", "facts", "message"),
    [
        (value_range_of, {"value_range": (2, 1)}, "value_range of the environment"),
        (value_range_of, {"value_range": "wide"}, "value_range of the environment"),
        (representation_class_of, {"representation_class": "finite"}, "got str"),
        (noise_scale_of, {"noise_scale": -1.0}, "noise_scale of the environment"),
    ],
)
def test_a_wrong_fact_is_named(read, facts, message):
    with pytest.raises(InvalidInputError, match=message):
        read(SimpleNamespace(num_tasks=1, **facts))


@pytest.mark.parametrize("stated", [(0.0, 10.0), (-3.0, -1.0), None])
def test_agents_use_the_value_range_of_any_environment(stated):
    agent = make_agent(BanditAgentConfig(), Stating(value_range=stated), 0)
    assert agent.network_learner.scaling.value_range == stated
    low, high = stated or (-1.0, 1.0)
    assert agent.squared_radius == default_radius((low, high))


def test_agents_use_the_representation_class_of_any_environment():
    known = finite_bandit(num_tasks=2, num_actions=3, seed=1).representation_class
    agent = make_agent(BanditAgentConfig(), Stating(representation_class=known), 0)
    assert agent.representation_class is known


def test_the_radius_of_lemma_1_needs_only_stated_facts():
    bandit = finite_bandit(num_tasks=2, num_actions=3, seed=1)
    config = BanditAgentConfig(radius="corrected")
    facts = {"representation_class": bandit.representation_class, "noise_scale": 0.1}
    own = make_agent(config, Stating(value_range=(-1.0, 1.0), **facts), 0).squared_radius
    assert own == make_agent(config, bandit, 0).squared_radius
    assert isinstance(own.radius, CorrectedRadius)
    with pytest.raises(InvalidInputError, match="covering number"):
        make_agent(config, Stating(noise_scale=0.1), 0)
