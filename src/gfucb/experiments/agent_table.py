"""From the names of agents to agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gfucb.agents import (
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
from gfucb.agents.gfucb import default_radius
from gfucb.contracts import BanditAgent, BanditEnvironment, OptimismSolver, SquaredRadius
from gfucb.environments import ImageBandit, SyntheticBandit
from gfucb.errors import InvalidInputError, lookup
from gfucb.estimation import AdamFit, CalibratedRadius, LogRadius, ScaledRadius, VariableProjection
from gfucb.experiments.config import AgentConfig
from gfucb.functions import FiniteClass, NeuralClass
from gfucb.functions.networks import paper_network
from gfucb.optimism import Certified, FineTuning, Gradient, LastLayer, Linearised
from gfucb.seeding import random_stream
from gfucb.theory.radii import CorrectedRadius, PrintedRadius

SOLVERS: Mapping[str, Callable[[AgentConfig], OptimismSolver | None]] = {
    "default": lambda config: None,
    "last-layer": lambda config: LastLayer(),
    "linearised": lambda config: Linearised(trust=config.trust),
    "certified": lambda config: Certified(trust=config.trust),
    "gradient": lambda config: Gradient(trust=config.trust),
}
AgentMaker = Callable[[AgentConfig, BanditEnvironment, int], BanditAgent]


@dataclass(frozen=True)
class AgentEntry:
    """How an agent is built, and what it is shown."""

    description: str
    make: AgentMaker
    reads_truth: bool = False
    """Oracles are shown the true features instead of the candidates."""
    relative_cost: int = 1
    """Roughly how much longer it runs than others; long runs are started first."""


def make_agent(config: AgentConfig, world: BanditEnvironment, seed: int) -> BanditAgent:
    """Build the agent of a config for a world."""
    return lookup(AGENTS, config.name, "agent").make(config, world, seed)


def _learning_options(config: AgentConfig, world: BanditEnvironment, seed: int) -> dict[str, Any]:
    """What all agents that learn a representation share: its class, the fit, the schedule."""
    options = {"seed": seed, "ridge": config.ridge, "refit_growth": config.refit_growth}
    if isinstance(world, SyntheticBandit):
        truth_options = {"representation": world.representation_class, "value_range": (-1.0, 1.0)}
        return options | truth_options
    return options | {"fit": VariableProjection(steps=config.fit_steps, loss=config.fit_loss)}


def _radius(config: AgentConfig, world: BanditEnvironment) -> SquaredRadius | CalibratedRadius:
    if config.radius in ("default", "constant"):
        value_range = (-1.0, 1.0) if isinstance(world, SyntheticBandit) else (0.0, 1.0)
        target = config.coverage if config.radius == "default" else None
        return replace(default_radius(value_range), target=target, factor=config.radius_scale)
    makers: dict[str, Callable[[], SquaredRadius]] = {
        "printed-log": LogRadius,
        "corrected": lambda: _lemma_1_radius(config, world),
        "printed": lambda: _lemma_1_radius(config, world),
    }
    return ScaledRadius(lookup(makers, config.radius, "radius")(), config.radius_scale)


def _lemma_1_radius(config: AgentConfig, world: BanditEnvironment) -> SquaredRadius:
    if not isinstance(world, SyntheticBandit):
        raise InvalidInputError(
            f"the {config.radius} radius needs the covering number of the class, which is known "
            "for synthetic worlds only; use --world.kind finite or linear, or another radius"
        )
    known = world.representation_class
    # A finite class covers itself, so nothing is lost to a scale.
    scale = 0.0 if isinstance(known, FiniteClass) else COVER_SCALE
    sizes = (world.num_tasks, world.truth.heads.shape[1])
    log_number = known.log_covering_number(scale)
    if config.radius == "printed":
        return PrintedRadius(*sizes, log_number, scale)
    return CorrectedRadius(*sizes, log_number, scale, world.noise_scale, config.ridge)


def _gfucb(config: AgentConfig, world: BanditEnvironment, seed: int) -> BanditAgent:
    options = _learning_options(config, world, seed)
    optimism = lookup(SOLVERS, config.optimism, "optimism")(config)
    return GFUCB(
        world.num_tasks, squared_radius=_radius(config, world), optimism=optimism, **options
    )


def _multitask_greedy(config: AgentConfig, world: BanditEnvironment, seed: int) -> BanditAgent:
    return multitask_greedy(world.num_tasks, **_learning_options(config, world, seed))


def _multitask_eps_greedy(config: AgentConfig, world: BanditEnvironment, seed: int) -> BanditAgent:
    agent = _multitask_greedy(config, world, seed)
    return EpsilonGreedy(agent, epsilon=config.epsilon, seed=seed)


def _independent_eps_greedy(
    config: AgentConfig, world: BanditEnvironment, seed: int
) -> BanditAgent:
    options = _learning_options(config, world, seed)

    def make_group(num_tasks: int, group_seed: int) -> BanditAgent:
        agent = multitask_greedy(num_tasks, **(options | {"seed": group_seed}))
        return EpsilonGreedy(agent, epsilon=config.epsilon, seed=group_seed)

    return Grouped(world.num_tasks, make_group, group_size=config.group_size, seed=seed)


def _wide(make: Callable[..., GFUCB]) -> Callable[..., GFUCB]:
    """An agent of the field whose widths are scaled by a radius."""
    return lambda config, world, num_tasks, seed: make(
        num_tasks,
        squared_radius=_radius(config, world),
        **_learning_options(config, world, seed),
    )


def _squarecb(config: AgentConfig, world: BanditEnvironment, num_tasks: int, seed: int) -> GFUCB:
    return squarecb(num_tasks, scale=config.gap_scale, **_learning_options(config, world, seed))


def _npr(config: AgentConfig, world: BanditEnvironment, num_tasks: int, seed: int) -> GFUCB:
    options = _learning_options(config, world, seed)
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


def _shared(make: Callable[..., GFUCB]) -> AgentMaker:
    return lambda config, world, seed: make(config, world, world.num_tasks, seed)


def _alone(make: Callable[..., GFUCB]) -> AgentMaker:
    return lambda config, world, seed: Grouped(
        world.num_tasks,
        lambda num_tasks, group_seed: make(config, world, num_tasks, group_seed),
        group_size=config.group_size,
        seed=seed,
    )


def _paper(optimism: Callable[[AgentConfig], FineTuning]) -> AgentMaker:
    """The paper's own procedure in a world of images."""

    def make(config: AgentConfig, world: BanditEnvironment, seed: int) -> BanditAgent:
        if not isinstance(world, ImageBandit):
            raise InvalidInputError("the paper's procedure has a CNN: it needs a world of images")
        return paper_agent(
            world.num_tasks,
            world.data.images.shape[1:],
            seed=seed,
            noise_scale=world.noise_scale,
            epochs=config.epochs,
            squared_radius=ScaledRadius(LogRadius(), config.radius_scale),
            optimism=optimism(config),
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
    optimism: OptimismSolver | None = None,
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
        optimism=optimism or FineTuning.stable(),
        # Small enough to leave the paper's set, which has none, as it is.
        ridge=1e-3,
        refit_growth=refit_growth,
        device=device,
    )


def _linucb(config: AgentConfig, world: BanditEnvironment, seed: int) -> BanditAgent:
    return linucb(world.num_tasks, alpha=config.alpha, ridge=config.ridge)


def _oracle_ucb(config: AgentConfig, world: BanditEnvironment, seed: int) -> BanditAgent:
    return linucb(world.num_tasks, alpha=config.alpha, ridge=ORACLE_RIDGE)


def _oracle_greedy(config: AgentConfig, world: BanditEnvironment, seed: int) -> BanditAgent:
    return linucb(world.num_tasks, alpha=0.0, ridge=ORACLE_RIDGE)


def _uniform(config: AgentConfig, world: BanditEnvironment, seed: int) -> BanditAgent:
    return Uniform(world.num_tasks, seed=seed)


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
        "the same with actions by lot now and then", _multitask_eps_greedy
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
    "uniform": AgentEntry("actions by lot", _uniform),
}
