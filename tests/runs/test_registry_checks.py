"""Every registered component passes its check. Bandit agents are checked in `test_config.py`."""

import pytest
import torch
from torch import nn

from gfucb.checks import (
    check_action_selector,
    check_bandit_environment,
    check_episodic_agent,
    check_episodic_environment,
    check_fit,
)
from gfucb.models import NeuralRepresentation
from gfucb.runs import (
    AGENTS,
    ENVIRONMENTS,
    BanditAgentConfig,
    EpisodicAgentConfig,
    make_agent,
    make_environment,
)
from gfucb.runs.environments import LockConfig
from gfucb.runs.registry import ACTION_SELECTORS, FITS

pytestmark = pytest.mark.slow

SMALL = BanditAgentConfig(fit_steps=2, epochs=2, tuning_iterations=2)
# The others need files that are not part of the package.
WITHOUT_FILES = [name for name, entry in ENVIRONMENTS.items() if not entry.uses_data_dir]
LOCK = LockConfig(num_tasks=2, num_actions=2, horizon=2)
EPISODIC_AGENTS = [name for name, entry in AGENTS.items() if entry.kind == "episodic"]


@pytest.mark.parametrize("name", ACTION_SELECTORS)
def test_every_registered_selector_passes(name):
    check_action_selector(ACTION_SELECTORS[name].factory(SMALL))


@pytest.mark.parametrize("config", [SMALL, EpisodicAgentConfig(fit_steps=2)], ids=["bandit", "mdp"])
@pytest.mark.parametrize("name", FITS)
def test_every_registered_fit_passes(name, config):
    module = nn.utils.skip_init(nn.Linear, 4, 2, dtype=torch.float64)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.linspace(-1, 1, parameter.numel()).view_as(parameter))
    fit = FITS[name].factory(config)
    check_fit(fit, NeuralRepresentation(module), decreases_error=False)


@pytest.mark.parametrize("name", WITHOUT_FILES)
def test_every_registered_environment_passes(name):
    entry = ENVIRONMENTS[name]
    check = check_bandit_environment if entry.kind == "bandit" else check_episodic_environment
    config = entry.config(name=name)
    check(lambda seed: make_environment(config, seed))


@pytest.mark.parametrize("name", EPISODIC_AGENTS)
def test_every_registered_episodic_agent_passes(name):
    config = AGENTS[name].config(name=name)
    environment = make_environment(LOCK, 0)
    check_episodic_agent(lambda: make_agent(config, environment, 0))
