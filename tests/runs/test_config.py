import pytest

from gfucb.checks import check_agent
from gfucb.core.errors import InvalidInputError, UnknownNameError
from gfucb.runs import (
    AGENTS,
    PRESETS,
    AgentConfig,
    EnvironmentConfig,
    RunConfig,
    make_agent,
    make_environment,
    play,
    preset,
)

TINY = AgentConfig(fit_steps=2, epochs=2, tuning_iterations=2)
IMAGES = EnvironmentConfig(num_tasks=3, num_actions=3)


@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_of_the_table_plays_and_keeps_its_contract(name):
    config = AgentConfig(name=name, fit_steps=2, epochs=2, tuning_iterations=2)
    environment = make_environment(IMAGES, seed=0)
    entry = AGENTS[name]
    rows = list(
        play(
            make_agent(config, environment, 0),
            environment,
            num_rounds=3,
            reads_truth=entry.reads_truth,
        )
    )
    assert len(rows) == 3
    check_agent(lambda: make_agent(config, environment, 0), input_shape=(8, 8))


@pytest.mark.parametrize("name", [n for n, p in PRESETS.items() if p.environment.kind != "mnist"])
def test_every_preset_can_be_played(name):
    entry = preset(name)
    for agent in entry.agents:
        RunConfig(entry.environment, AgentConfig(name=agent), entry.num_rounds, entry.seeds[0])
        environment = make_environment(entry.environment, seed=entry.seeds[0])
        made = make_agent(AgentConfig(name=agent, fit_steps=2), environment, 0)
        rows = list(play(made, environment, num_rounds=2, reads_truth=AGENTS[agent].reads_truth))
        assert rows[-1]["regret"] >= 0


def test_multitask_greedy_is_always_among_the_baselines():
    for entry in PRESETS.values():
        assert "multitask-greedy" in entry.agents


def test_the_corrected_radius_is_offered_where_it_can_be_computed():
    config = AgentConfig(radius="corrected", ridge=0.01)
    finite = make_environment(EnvironmentConfig(kind="finite", num_tasks=2), 0)
    theory = make_agent(config, finite, 0).squared_radius(10)
    practice = make_agent(AgentConfig(radius="printed-log"), finite, 0).squared_radius(10)
    assert theory > practice > 0
    linear = make_environment(EnvironmentConfig(kind="linear", num_tasks=2), 0)
    assert make_agent(config, linear, 0).squared_radius(10) > theory
    with pytest.raises(InvalidInputError, match="finite"):
        make_agent(config, make_environment(IMAGES, 0), 0)


@pytest.mark.parametrize("name", ["last-layer", "linearised", "certified", "gradient"])
def test_solvers_are_chosen_by_name(name):
    agent = make_agent(
        AgentConfig(action_selector=name, weight_ridge=3.0), make_environment(IMAGES, 0), 0
    )
    assert type(agent.action_selector).__name__.lower() == name.replace("-", "")
    assert getattr(agent.action_selector, "weight_ridge", 3.0) == 3.0


def test_the_radius_can_be_scaled():
    environment = make_environment(IMAGES, 0)
    one = make_agent(AgentConfig(radius="printed-log"), environment, 0).squared_radius(9)
    ten = make_agent(AgentConfig(radius="printed-log", radius_scale=10.0), environment, 0)
    assert ten.squared_radius(9) == pytest.approx(10 * one)


def test_unknown_presets_list_the_known_ones():
    with pytest.raises(UnknownNameError, match="demo, digits, finite, linear, mnist"):
        preset("imagenet")


def test_oracles_see_the_truth_and_beat_everybody():
    world_config = EnvironmentConfig(num_tasks=10)
    regrets = {}
    for name in ("oracle-ucb", "linucb", "uniform"):
        environment = make_environment(world_config, seed=50)
        agent = make_agent(AgentConfig(name=name), environment, 50)
        rows = list(play(agent, environment, num_rounds=60, reads_truth=AGENTS[name].reads_truth))
        regrets[name] = rows[-1]["cumulative_regret"]
    assert regrets["oracle-ucb"] < 0.6 * regrets["linucb"] < 0.6 * regrets["uniform"]


def test_the_paper_procedure_needs_images():
    with pytest.raises(InvalidInputError, match="images"):
        make_agent(
            AgentConfig(name="gfucb-paper"),
            make_environment(EnvironmentConfig(kind="finite"), 0),
            0,
        )
