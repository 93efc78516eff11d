"""What can be run: frozen settings, presets, and the tables from names to worlds and agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gfucb.agents import GFUCB, EpsilonGreedy, Grouped, Uniform, linucb, multitask_greedy
from gfucb.agents.gfucb import default_radius
from gfucb.contracts import BanditAgent, BanditEnvironment, SquaredRadius
from gfucb.environments import (
    ImageBandit,
    SyntheticBandit,
    finite_bandit,
    linear_bandit,
    load_digits,
    load_mnist,
)
from gfucb.errors import InvalidInputError, lookup
from gfucb.estimation import (
    AdamFit,
    CorrectedRadius,
    LogRadius,
    ScaledRadius,
    VariableProjection,
)
from gfucb.functions import FiniteClass, NeuralClass
from gfucb.functions.networks import paper_network
from gfucb.optimism import FineTuning
from gfucb.seeding import random_stream


@dataclass(frozen=True)
class WorldConfig:
    """The problem: which world, how many tasks, what a round looks like."""

    kind: Literal["digits", "mnist", "finite", "linear"] = "digits"
    """digits: scikit-learn's 8x8 digits. mnist: IDX files from --data-dir. finite, linear:
    synthetic truths for which the confidence set is exact."""
    num_tasks: int = 30
    """M, the number of tasks."""
    num_actions: int = 10
    """K, the number of candidates each task is shown in a round."""
    reward_map: Literal["permutation", "tenths", "uniform"] = "uniform"
    """Images: what a digit pays. permutation of 0, 0.1 .. 0.9 with distinct best digits; tenths:
    digit / 10 in all tasks; uniform: drawn from [0, 1]."""
    digits: Literal["iid", "distinct"] = "iid"
    """Images: any K images, or K different digits."""
    noise_scale: float = 0.1
    """Standard deviation of the reward noise."""
    input_dim: int = 6
    """Synthetic worlds: length of an input."""
    feature_dim: int = 2
    """Synthetic worlds: length of the true representation."""
    num_representations: int = 8
    """Finite world: how many representations the agent must tell apart."""


@dataclass(frozen=True)
class AgentConfig:
    """The learner. Settings an agent does not have are ignored by it."""

    name: str = "gfucb"
    """Which agent; an unknown name lists the known ones."""
    ridge: float = 1.0
    """Penalty on heads."""
    radius: Literal["default", "printed-log", "corrected"] = "default"
    """Squared radius of GFUCB: its practical default, the schedule 0.4 log(0.5 t + 2) of the
    paper's experiments, or the corrected theoretical one (finite world only)."""
    radius_scale: float = 1.0
    """Multiplies the squared radius."""
    refit_growth: float = 1.3
    """Fit the representation anew when the data has grown by this factor."""
    fit_steps: int = 60
    """Gradient steps in one fit of the default network."""
    epsilon: float = 0.1
    """eps-greedy agents: probability of an action by lot."""
    alpha: float = 0.3
    """LinUCB and oracle-ucb: multiplier of the width."""
    group_size: int = 1
    """Independent agents: tasks that share one learner."""
    epochs: int = 200
    """The paper's procedure: epochs of Adam in every fit."""
    tuning_iterations: int = 200
    """The paper's procedure: fine-tuning steps in every decision."""


@dataclass(frozen=True)
class RunConfig:
    """One run: one agent in one world under one seed."""

    world: WorldConfig = field(default_factory=WorldConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)
    num_rounds: int = 200
    """T, the number of rounds."""
    seed: int = 0
    """World and agent derive all their randomness from it."""

    def __post_init__(self) -> None:
        if self.num_rounds < 1:
            raise InvalidInputError(f"num_rounds must be at least 1, got {self.num_rounds}")
        lookup(AGENTS, self.agent.name, "agent")


@dataclass(frozen=True)
class Preset:
    """A named experiment: a world, a length, the agents to compare and the seeds."""

    description: str
    world: WorldConfig
    num_rounds: int
    agents: tuple[str, ...]
    seeds: tuple[int, ...]


def make_world(config: WorldConfig, seed: int, data_dir: str | None = None) -> BanditEnvironment:
    """Build the world of a config; `data_dir` is where MNIST's files lie."""
    sizes: dict[str, Any] = {"num_tasks": config.num_tasks, "num_actions": config.num_actions}
    if config.kind in ("digits", "mnist"):
        data = load_digits() if config.kind == "digits" else load_mnist(data_dir)
        return ImageBandit(
            data,
            **sizes,
            reward_map=config.reward_map,
            digits=config.digits,
            noise_scale=config.noise_scale,
            seed=seed,
        )
    dims: dict[str, Any] = {"input_dim": config.input_dim, "feature_dim": config.feature_dim}
    rest: dict[str, Any] = {"noise_scale": config.noise_scale, "seed": seed}
    makers: dict[str, Callable[[], SyntheticBandit]] = {
        "finite": lambda: finite_bandit(
            **sizes, **dims, **rest, num_representations=config.num_representations
        ),
        "linear": lambda: linear_bandit(**sizes, **dims, **rest),
    }
    return lookup(makers, config.kind, "world")()


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
    return options | {"fit": VariableProjection(steps=config.fit_steps)}


def _radius(config: AgentConfig, world: BanditEnvironment) -> SquaredRadius:
    value_range = (-1.0, 1.0) if isinstance(world, SyntheticBandit) else (0.0, 1.0)
    makers: dict[str, Callable[[], SquaredRadius]] = {
        "default": lambda: default_radius(world.num_tasks, value_range),
        "printed-log": LogRadius,
        "corrected": lambda: _corrected_radius(config, world),
    }
    return ScaledRadius(lookup(makers, config.radius, "radius")(), config.radius_scale)


def _corrected_radius(config: AgentConfig, world: BanditEnvironment) -> SquaredRadius:
    known = world.representation_class if isinstance(world, SyntheticBandit) else None
    if not (isinstance(world, SyntheticBandit) and isinstance(known, FiniteClass)):
        raise InvalidInputError(
            "the corrected radius needs the covering number of the class, which is known here "
            "for the finite world only; use --world.kind finite or another --agent.radius"
        )
    return CorrectedRadius(
        num_tasks=world.num_tasks,
        feature_dim=world.truth.heads.shape[1],
        log_covering_number=known.log_covering_number(0.0),
        cover_scale=0.0,
        noise_scale=world.noise_scale,
        ridge=config.ridge,
    )


def _gfucb(config: AgentConfig, world: BanditEnvironment, seed: int) -> BanditAgent:
    options = _learning_options(config, world, seed)
    return GFUCB(world.num_tasks, squared_radius=_radius(config, world), **options)


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


def _paper(optimism: Callable[[AgentConfig], FineTuning]) -> AgentMaker:
    """The paper's own procedure: its network, Adam at every round, fine-tuning."""

    def make(config: AgentConfig, world: BanditEnvironment, seed: int) -> BanditAgent:
        if not isinstance(world, ImageBandit):
            raise InvalidInputError("the paper's procedure has a CNN: it needs a world of images")
        network = paper_network(world.data.images.shape[1:], random_stream(seed, "network"))
        return GFUCB(
            world.num_tasks,
            NeuralClass(network, "l2"),
            seed=seed,
            # Paper: 200 epochs, always. We stop when the error is twice the noise: the rest is
            # fitting noise, and nine tenths of the time.
            fit=AdamFit(epochs=config.epochs, stop_below=2 * world.noise_scale**2),
            squared_radius=ScaledRadius(LogRadius(), config.radius_scale),
            optimism=optimism(config),
            # Small enough to leave the paper's set, which has none, as it is.
            ridge=1e-3,
            refit_growth=1.0,
        )

    return make


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
    "linucb": AgentEntry("LinUCB for each task alone, on raw inputs", _linucb),
    "oracle-ucb": AgentEntry("LinUCB on the true representation", _oracle_ucb, reads_truth=True),
    "oracle-greedy": AgentEntry(
        "greedy on the true representation", _oracle_greedy, reads_truth=True
    ),
    "uniform": AgentEntry("actions by lot", _uniform),
}

BASELINES = (
    "gfucb",
    "multitask-greedy",
    "multitask-eps-greedy",
    "independent-eps-greedy",
    "linucb",
    "oracle-ucb",
    "uniform",
)

# In synthetic worlds a learner for each task alone is LinUCB.
EXACT_BASELINES = tuple(name for name in BASELINES if name != "independent-eps-greedy")

PRESETS: Mapping[str, Preset] = {
    "demo": Preset(
        "20 tasks on 8x8 digits: does sharing pay, and does optimism? Under two minutes.",
        WorldConfig(num_tasks=20),
        num_rounds=150,
        agents=BASELINES,
        seeds=(0, 1, 2, 3, 4),
    ),
    "digits": Preset(
        "the common problem of the benchmarks: 30 tasks, 400 rounds, 8x8 digits",
        WorldConfig(),
        num_rounds=400,
        agents=BASELINES,
        seeds=tuple(range(20)),
    ),
    "mnist": Preset(
        "section 6.1 of the paper: 10 tasks, 600 rounds, permuted rewards, noise 0.01",
        WorldConfig(kind="mnist", num_tasks=10, reward_map="permutation", noise_scale=0.01),
        num_rounds=600,
        agents=BASELINES,
        seeds=tuple(range(10)),
    ),
    "finite": Preset(
        "eight known representations, one of them true: every step of Algorithm 1 is exact",
        WorldConfig(kind="finite", num_tasks=4, num_actions=5),
        num_rounds=200,
        agents=(
            "gfucb",
            "multitask-greedy",
            "multitask-eps-greedy",
            "linucb",
            "oracle-ucb",
            "uniform",
        ),
        seeds=tuple(range(10)),
    ),
    "linear": Preset(
        "a linear representation of rank 2 in 6 dimensions, shared by 10 tasks",
        WorldConfig(kind="linear", num_tasks=10, num_actions=5),
        num_rounds=200,
        agents=(
            "gfucb",
            "multitask-greedy",
            "multitask-eps-greedy",
            "linucb",
            "oracle-ucb",
            "uniform",
        ),
        seeds=tuple(range(10)),
    ),
}


def preset(name: str) -> Preset:
    """The preset of that name, or an error that lists them all."""
    return lookup(PRESETS, name, "preset")
