"""The registry and the config tree: names, settings, and what they build."""

from dataclasses import asdict, fields, replace

import pytest

from gfucb.checks import check_bandit_agent
from gfucb.core.errors import InvalidInputError, UnknownNameError
from gfucb.estimation import AdamFit, VariableProjection
from gfucb.exploration import Certified, GradientBonus, LastLayer, Linearised
from gfucb.runs import (
    AGENTS,
    ENVIRONMENTS,
    PRESETS,
    BanditAgentConfig,
    EpisodicAgentConfig,
    FiniteBanditConfig,
    ImageBanditConfig,
    LockConfig,
    RunConfig,
    SyntheticBanditConfig,
    TransformedImageConfig,
    make_agent,
    make_environment,
    play,
)
from gfucb.runs.build_run import config_from, prepare, with_settings
from gfucb.runs.registry import Registry, agent_colours

BANDIT_AGENTS = [name for name, entry in AGENTS.items() if entry.kind == "bandit"]
BANDIT_PRESETS = [
    name
    for name, preset in PRESETS.items()
    if ENVIRONMENTS[preset.environment.name].kind == "bandit"
]
# Agents for discrete arms or item numbers are checked in `test_linear_agents.py`.
FOR_ANY_INPUTS = [name for name in BANDIT_AGENTS if "-arms-" not in name and name != "als"]
IMAGES = ImageBanditConfig(num_tasks=3, num_actions=3)


@pytest.mark.slow
@pytest.mark.parametrize("name", FOR_ANY_INPUTS)
def test_every_registered_bandit_agent_plays_and_passes_the_check(name):
    small = BanditAgentConfig(fit_steps=2, epochs=2, tuning_iterations=2)
    config = with_settings(name, small)
    environment = make_environment(IMAGES, seed=0)
    shown = {"uses_true_features": AGENTS[name].uses_true_features}
    rows = list(play(make_agent(config, environment, 0), environment, num_rounds=3, **shown))
    assert len(rows) == 3
    check_bandit_agent(lambda: make_agent(config, environment, 0), input_shape=(8, 8))


@pytest.mark.parametrize("name", ["gfucb", "multitask-greedy", "neural-ucb"])
def test_runs_state_whether_networks_learn_from_all_candidates(name):
    environment = make_environment(IMAGES, seed=0)
    candidates = environment.round(1).candidates
    for setting, is_offered in (("none", False), ("auto", True)):
        config = replace(with_settings(name, BanditAgentConfig()), self_supervision=setting)
        decision = make_agent(config, environment, 0).decide(candidates)
        assert (decision.offered is not None) == is_offered
    assert BanditAgentConfig().self_supervision == "auto"  # as in gfucb.GFUCB


@pytest.mark.parametrize("kind", ["rotation", "mirroring", "contrast"])
def test_transformed_digits_are_an_environment(kind):
    config = TransformedImageConfig(num_tasks=2, num_actions=3, transformation=kind)
    assert make_environment(config, seed=0).round(1).candidates.shape == (2, 3, 8, 8)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in BANDIT_PRESETS if name != "mnist"])
def test_every_bandit_preset_can_be_played(name):
    preset = PRESETS[name]
    for agent in preset.agents:
        config = with_settings(agent, replace(preset.agent, fit_steps=2))
        run = RunConfig(preset.environment, config, 2, preset.seeds[0])
        assert list(prepare(run).rows())[-1]["regret"] >= 0


def test_every_bandit_preset_has_multitask_greedy_as_a_baseline():
    for name in BANDIT_PRESETS:
        assert "multitask-greedy" in PRESETS[name].agents


@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_has_a_label_and_a_description_that_is_a_sentence(name):
    entry = AGENTS[name]
    assert entry.label and (entry.colour is None or entry.colour.startswith("#"))
    assert entry.description.endswith(".")


def test_agents_of_one_figure_have_different_colours():
    names = ["gfucb", "linucb", "squarecb", "npr", "mine", "yours"]
    colours = agent_colours(names)
    assert len(set(colours.values())) == len(names)
    assert colours["gfucb"] == AGENTS["gfucb"].colour


@pytest.mark.parametrize("entries", [AGENTS, ENVIRONMENTS], ids=["agents", "environments"])
def test_all_settings_have_defaults(entries):
    for name, entry in entries.items():
        assert entry.config(name=name).name == name


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_config_survives_the_way_through_its_dictionary(name):
    agent = "gfucb" if ENVIRONMENTS[name].kind == "bandit" else "gfucb-mdp"
    config = RunConfig(ENVIRONMENTS[name].config(name=name), AGENTS[agent].config(name=agent), 7, 3)
    assert config_from(asdict(config)) == config


def test_the_corrected_radius_is_available_where_it_can_be_computed():
    config = BanditAgentConfig(radius="corrected", ridge=0.01)
    finite = make_environment(FiniteBanditConfig(num_tasks=2), 0)
    theory = make_agent(config, finite, 0).squared_radius(10)
    practice = make_agent(BanditAgentConfig(radius="printed-log"), finite, 0).squared_radius(10)
    assert theory > practice > 0
    linear = make_environment(SyntheticBanditConfig(num_tasks=2), 0)
    assert make_agent(config, linear, 0).squared_radius(10) > theory
    with pytest.raises(InvalidInputError, match="finite"):
        make_agent(config, make_environment(IMAGES, 0), 0)


@pytest.mark.parametrize(
    ("name", "selector"),
    [
        ("last-layer", LastLayer()),
        ("linearised", Linearised(weight_ridge=3.0)),
        ("certified", Certified(weight_ridge=3.0)),
        ("gradient", GradientBonus(weight_ridge=3.0)),
    ],
)
def test_action_selectors_are_chosen_by_name(name, selector):
    config = BanditAgentConfig(action_selector=name, weight_ridge=3.0)
    agent = make_agent(config, make_environment(IMAGES, 0), 0)
    assert agent.action_selector == selector


def test_fits_are_chosen_by_name():
    environment = make_environment(IMAGES, 0)
    adam = make_agent(BanditAgentConfig(fit="adam", epochs=3), environment, 0)
    assert adam.learner.fit == AdamFit(epochs=3)
    default = make_agent(BanditAgentConfig(fit_steps=4), environment, 0)
    assert isinstance(default.learner.fit, VariableProjection) and default.learner.fit.steps == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "ucb1"}, "unknown agent 'ucb1'; the known ones are: .*gfucb"),
        ({"fit": "sgd"}, "unknown fit 'sgd'; the known ones are: adam, variable-projection"),
        ({"action_selector": "best"}, "unknown action selector 'best'; .*last-layer"),
        ({"radius": "huge"}, "unknown radius 'huge'"),
    ],
)
def test_unknown_names_list_the_known_ones(change, message):
    with pytest.raises(UnknownNameError, match=message):
        make_agent(replace(BanditAgentConfig(), **change), make_environment(IMAGES, 0), 0)
    with pytest.raises(UnknownNameError, match="demo, digits, finite, linear, "):
        PRESETS["imagenet"]


def test_an_agent_of_the_wrong_kind_is_refused_with_those_that_fit():
    with pytest.raises(InvalidInputError, match=r"agents for bandit environments are: .*linucb"):
        prepare(RunConfig(IMAGES, EpisodicAgentConfig()))
    with pytest.raises(InvalidInputError, match=r"agents for episodic environments are: .*ucbvi"):
        prepare(RunConfig(LockConfig(), BanditAgentConfig()))


def test_settings_of_another_agent_or_environment_are_refused():
    with pytest.raises(InvalidInputError, match="needs settings of type ImageBanditConfig"):
        make_environment(FiniteBanditConfig("digits"), 0)
    with pytest.raises(InvalidInputError, match="needs settings of type EpisodicAgentConfig"):
        make_agent(BanditAgentConfig("ucbvi"), make_environment(LockConfig(), 0), 0)


def test_an_agent_takes_the_settings_that_it_has():
    config = with_settings("gfucb-mdp", BanditAgentConfig(epsilon=0.7, alpha=9.0))
    assert config == EpisodicAgentConfig(ridge=1.0, fit_steps=None, epsilon=0.7)
    assert "alpha" not in {field.name for field in fields(config)}


def test_a_name_has_one_definition_but_the_same_definition_may_come_again():
    registry = Registry("thing")

    def first():
        pass

    def second():
        pass

    registry.register("x", 1, first)
    registry.register("x", 2, first)
    assert registry["x"] == 2
    with pytest.raises(InvalidInputError, match="thing 'x' is registered already"):
        registry.register("x", 3, second)
    assert registry["x"] == 2


def test_the_radius_can_be_scaled():
    environment = make_environment(IMAGES, 0)
    one = make_agent(BanditAgentConfig(radius="printed-log"), environment, 0).squared_radius(9)
    ten = make_agent(BanditAgentConfig(radius="printed-log", radius_scale=10.0), environment, 0)
    assert ten.squared_radius(9) == pytest.approx(10 * one)


def test_oracles_receive_true_features_and_have_less_regret():
    regrets = {}
    for name in ("oracle-ucb", "linucb", "uniform"):
        run = prepare(RunConfig(ImageBanditConfig(num_tasks=10), BanditAgentConfig(name), 60, 50))
        regrets[name] = list(run.rows())[-1]["cumulative_regret"]
    assert regrets["oracle-ucb"] < 0.6 * regrets["linucb"] < 0.6 * regrets["uniform"]


def test_the_paper_procedure_needs_images():
    with pytest.raises(InvalidInputError, match="images"):
        make_agent(
            BanditAgentConfig(name="gfucb-paper"), make_environment(FiniteBanditConfig(), 0), 0
        )
