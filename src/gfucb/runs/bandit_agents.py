"""From the names of agents to agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gfucb.bandits import (
    GFUCB,
    EpsilonGreedy,
    Grouped,
    Uniform,
    linucb,
    multitask_greedy,
    neural_linear_ts,
    neural_linear_ucb,
    neural_ts,
    neural_ucb,
    perturbed_rewards,
    squarecb,
)
from gfucb.bandits.gfucb import default_radius
from gfucb.core.errors import InvalidInputError, lookup
from gfucb.core.protocols import ActionSelector, BanditAgent, BanditEnvironment, SquaredRadius
from gfucb.core.random import random_stream
from gfucb.environments import ImageBandit, SyntheticBandit
from gfucb.estimation import AdamFit, CalibratedRadius, LogRadius, ScaledRadius, VariableProjection
from gfucb.exploration import Certified, FineTuning, GradientBonus, LastLayer, Linearised
from gfucb.models import NeuralClass
from gfucb.models.nn.networks import paper_network
from gfucb.runs.config import AgentConfig
from gfucb.theory.lemma_radii import CorrectedRadius, PrintedRadius

SELECTORS: Mapping[str, Callable[[AgentConfig], ActionSelector | None]] = {
    "default": lambda config: None,
    "last-layer": lambda config: LastLayer(),
    "linearised": lambda config: Linearised(weight_ridge=config.weight_ridge),
    "certified": lambda config: Certified(weight_ridge=config.weight_ridge),
    "gradient": lambda config: GradientBonus(weight_ridge=config.weight_ridge),
}
AgentFactory = Callable[[AgentConfig, BanditEnvironment, int], BanditAgent]


@dataclass(frozen=True)
class AgentEntry:
    """How an agent is built, and what it is shown."""

    description: str
    make: AgentFactory
    reads_truth: bool = False
    """Oracles are shown the true features instead of the candidates."""
    relative_cost: int = 1
    """Roughly how much longer it runs than others; long runs are started first."""


def make_agent(config: AgentConfig, environment: BanditEnvironment, seed: int) -> BanditAgent:
    """Build the agent of a config for a environment."""
    return lookup(AGENTS, config.name, "agent").make(config, environment, seed)


def _learning_options(
    config: AgentConfig, environment: BanditEnvironment, seed: int
) -> dict[str, Any]:
    """What all agents that learn a representation share: its class, the fit, the schedule."""
    options = {"seed": seed, "ridge": config.ridge, "refit_growth": config.refit_growth}
    if isinstance(environment, SyntheticBandit):
        truth_options = {
            "representation": environment.representation_class,
            "value_range": (-1.0, 1.0),
        }
        return options | truth_options
    return options | {"fit": VariableProjection(steps=config.fit_steps, loss=config.fit_loss)}


def _radius(
    config: AgentConfig, environment: BanditEnvironment
) -> SquaredRadius | CalibratedRadius:
    if config.radius in ("default", "constant"):
        value_range = (-1.0, 1.0) if isinstance(environment, SyntheticBandit) else (0.0, 1.0)
        target = config.coverage if config.radius == "default" else None
        return replace(default_radius(value_range), target=target, factor=config.radius_scale)
    makers: dict[str, Callable[[], SquaredRadius]] = {
        "printed-log": LogRadius,
        "corrected": lambda: _lemma_1_radius(config, environment),
        "printed": lambda: _lemma_1_radius(config, environment),
    }
    return ScaledRadius(lookup(makers, config.radius, "radius")(), config.radius_scale)


def _lemma_1_radius(config: AgentConfig, environment: BanditEnvironment) -> SquaredRadius:
    if not isinstance(environment, SyntheticBandit):
        raise InvalidInputError(
            f"the {config.radius} radius needs the covering number of the class, which is known "
            "for synthetic environments only; use --environment.kind finite or linear, or another radius"
        )
    known = environment.representation_class
    # A class that can be listed covers itself, at scale zero.
    scale = COVER_SCALE if known.members is None else 0.0
    sizes = (environment.num_tasks, environment.truth.heads.shape[1])
    log_number = known.log_covering_number(scale)
    if config.radius == "printed":
        return PrintedRadius(*sizes, log_number, scale)
    return CorrectedRadius(*sizes, log_number, scale, environment.noise_scale, config.ridge)


def _gfucb(config: AgentConfig, environment: BanditEnvironment, seed: int) -> BanditAgent:
    options = _learning_options(config, environment, seed)
    action_selector = lookup(SELECTORS, config.action_selector, "action selector")(config)
    return GFUCB(
        environment.num_tasks,
        squared_radius=_radius(config, environment),
        action_selector=action_selector,
        **options,
    )


def _multitask_greedy(
    config: AgentConfig, environment: BanditEnvironment, seed: int
) -> BanditAgent:
    return multitask_greedy(environment.num_tasks, **_learning_options(config, environment, seed))


def _multitask_eps_greedy(
    config: AgentConfig, environment: BanditEnvironment, seed: int
) -> BanditAgent:
    agent = _multitask_greedy(config, environment, seed)
    return EpsilonGreedy(agent, epsilon=config.epsilon, seed=seed)


def _independent_eps_greedy(
    config: AgentConfig, environment: BanditEnvironment, seed: int
) -> BanditAgent:
    options = _learning_options(config, environment, seed)

    def make_group(num_tasks: int, group_seed: int) -> BanditAgent:
        agent = multitask_greedy(num_tasks, **(options | {"seed": group_seed}))
        return EpsilonGreedy(agent, epsilon=config.epsilon, seed=group_seed)

    return Grouped(environment.num_tasks, make_group, group_size=config.group_size, seed=seed)


def _wide(make: Callable[..., GFUCB]) -> Callable[..., GFUCB]:
    """An agent of the field whose widths are scaled by a radius."""
    return lambda config, environment, num_tasks, seed: make(
        num_tasks,
        squared_radius=_radius(config, environment),
        **_learning_options(config, environment, seed),
    )


def _squarecb(
    config: AgentConfig, environment: BanditEnvironment, num_tasks: int, seed: int
) -> GFUCB:
    return squarecb(
        num_tasks, scale=config.gap_scale, **_learning_options(config, environment, seed)
    )


def _npr(config: AgentConfig, environment: BanditEnvironment, num_tasks: int, seed: int) -> GFUCB:
    options = _learning_options(config, environment, seed)
    return perturbed_rewards(num_tasks, perturbation=config.perturbation, **options)


def _field_entries() -> dict[str, AgentEntry]:
    """The methods of the field, each with one network for all tasks and with one for each."""
    makers: dict[str, tuple[str, Callable[..., GFUCB]]] = {
        "neural-ucb": ("NeuralUCB: widths of weights and heads, diagonal", _wide(neural_ucb)),
        "neural-ts": ("NeuralTS: rewards sampled with the widths of NeuralUCB", _wide(neural_ts)),
        "neural-linear-ucb": (
            "Neural-Linear: LinUCB on the fitted features",
            _wide(neural_linear_ucb),
        ),
        "neural-linear-ts": ("Neural-Linear: Thompson sampling of heads", _wide(neural_linear_ts)),
        "squarecb": ("SquareCB: inverse gap weighting of the fit", _squarecb),
        "npr": ("NPR: greedy on a fit to perturbed rewards", _npr),
    }
    entries = {}
    for name, (description, make) in makers.items():
        entries[name] = AgentEntry(description, _shared(make), relative_cost=2)
        entries[f"independent-{name}"] = AgentEntry(
            f"{description}; a network for each task", _alone(make), relative_cost=10
        )
    return entries


def _shared(make: Callable[..., GFUCB]) -> AgentFactory:
    return lambda config, environment, seed: make(config, environment, environment.num_tasks, seed)


def _alone(make: Callable[..., GFUCB]) -> AgentFactory:
    return lambda config, environment, seed: Grouped(
        environment.num_tasks,
        lambda num_tasks, group_seed: make(config, environment, num_tasks, group_seed),
        group_size=config.group_size,
        seed=seed,
    )


def _paper(selector: Callable[[AgentConfig], FineTuning]) -> AgentFactory:
    """The paper's own procedure in a environment of images."""

    def make(config: AgentConfig, environment: BanditEnvironment, seed: int) -> BanditAgent:
        if not isinstance(environment, ImageBandit):
            raise InvalidInputError(
                "the paper's procedure has a CNN: it needs a environment of images"
            )
        return paper_agent(
            environment.num_tasks,
            environment.data.images.shape[1:],
            seed=seed,
            noise_scale=environment.noise_scale,
            epochs=config.epochs,
            squared_radius=ScaledRadius(LogRadius(), config.radius_scale),
            action_selector=selector(config),
        )

    return make


def paper_agent(
    num_tasks: int,
    image_shape: Sequence[int],
    *,
    seed: int,
    noise_scale: float = 0.01,
    epochs: int = 200,
    squared_radius: SquaredRadius | None = None,
    action_selector: ActionSelector | None = None,
    refit_growth: float = 1.0,
    device: str = "cpu",
) -> GFUCB:
    """The paper's own procedure: its network, Adam at every round, fine-tuning."""
    network = paper_network(image_shape, random_stream(seed, "network"))
    return GFUCB(
        num_tasks,
        NeuralClass(network, "l2"),
        seed=seed,
        # Paper: 200 epochs, always. We stop when the error is twice the noise: the rest is
        # fitting noise, and nine tenths of the time.
        fit=AdamFit(epochs=epochs, stop_below=2 * noise_scale**2),
        squared_radius=squared_radius or LogRadius(),
        action_selector=action_selector or FineTuning.stable(),
        # Small enough to leave the paper's set, which has none, as it is.
        ridge=1e-3,
        refit_growth=refit_growth,
        device=device,
    )


def _linucb(config: AgentConfig, environment: BanditEnvironment, seed: int) -> BanditAgent:
    return linucb(environment.num_tasks, alpha=config.alpha, ridge=config.ridge)


def _oracle_ucb(config: AgentConfig, environment: BanditEnvironment, seed: int) -> BanditAgent:
    return linucb(environment.num_tasks, alpha=config.alpha, ridge=ORACLE_RIDGE)


def _oracle_greedy(config: AgentConfig, environment: BanditEnvironment, seed: int) -> BanditAgent:
    return linucb(environment.num_tasks, alpha=0.0, ridge=ORACLE_RIDGE)


def _uniform(config: AgentConfig, environment: BanditEnvironment, seed: int) -> BanditAgent:
    return Uniform(environment.num_tasks, seed=seed)


# Heads on the true features need little shrinking; with ridge 1 they would start far below
# the rewards and the oracle would be content with the first digit it met.
ORACLE_RIDGE = 0.1
# Of the linear class, in the radii of Lemma 1: small enough for its terms to vanish.
COVER_SCALE = 1e-4

AGENTS: Mapping[str, AgentEntry] = {
    "gfucb": AgentEntry("Algorithm 1 with this library's defaults", _gfucb),
    "gfucb-paper": AgentEntry(
        "the paper's procedure, made stable: Adam at every round, feasible fine-tuning",
        _paper(lambda config: FineTuning.stable(config.tuning_iterations)),
    ),
    "gfucb-literal-sum": AgentEntry(
        "the paper's procedure as printed, summed constraint; leaves its set",
        _paper(lambda config: FineTuning.literal_sum(config.tuning_iterations)),
    ),
    "gfucb-literal-mean": AgentEntry(
        "the paper's procedure as printed, averaged constraint; never meets it",
        _paper(lambda config: FineTuning.literal_mean(config.tuning_iterations)),
    ),
    "multitask-greedy": AgentEntry("the fit of gfucb, believed", _multitask_greedy),
    "multitask-eps-greedy": AgentEntry(
        "the same with actions at random now and then", _multitask_eps_greedy
    ),
    "independent-eps-greedy": AgentEntry(
        "a network for each task alone: the paper's baseline",
        _independent_eps_greedy,
        relative_cost=10,
    ),
    **_field_entries(),
    "linucb": AgentEntry("LinUCB for each task alone, on raw inputs", _linucb),
    "oracle-ucb": AgentEntry("LinUCB on the true representation", _oracle_ucb, reads_truth=True),
    "oracle-greedy": AgentEntry(
        "greedy on the true representation", _oracle_greedy, reads_truth=True
    ),
    "uniform": AgentEntry("actions at random", _uniform),
}
