"""What can be set: frozen dataclasses whose field docstrings are the command line's help."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from gfucb.core.errors import InvalidInputError, lookup
from gfucb.core.protocols import BanditEnvironment
from gfucb.environments import (
    ImageBandit,
    SyntheticBandit,
    finite_bandit,
    linear_bandit,
    load_digits,
    load_mnist,
)


@dataclass(frozen=True)
class EnvironmentConfig:
    """The problem: which environment, how many tasks, what a round looks like."""

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
    """Synthetic environments: length of an input."""
    feature_dim: int = 2
    """Synthetic environments: length of the true representation."""
    num_representations: int = 8
    """Finite environment: how many representations the agent must tell apart."""


@dataclass(frozen=True)
class AgentConfig:
    """The learner. Settings an agent does not have are ignored by it."""

    name: str = "gfucb"
    """Which agent; an unknown name lists the known ones."""
    ridge: float = 1.0
    """Penalty on heads."""
    action_selector: Literal["default", "last-layer", "linearised", "certified", "gradient"] = (
        "default"
    )
    """Solver of GFUCB: its default (exact for finite environments, otherwise last-layer), or for
    networks one that sees the weights too."""
    weight_ridge: float = 10.0
    """Solvers that see the weights: how much the fitted weights are trusted."""
    radius: Literal["default", "constant", "printed-log", "corrected", "printed"] = "default"
    """Squared radius of GFUCB: calibrated to the coverage below (default), a constant share of
    the value range, the schedule 0.4 log(0.5 t + 2) of the paper's experiments, or Lemma 1,
    corrected or as printed (finite and linear environments)."""
    coverage: float = 0.8
    """Calibrated radius: the share of rewards that should fall within the width predicted."""
    radius_scale: float = 1.0
    """Multiplies the squared radius: of GFUCB, of neural-ucb and neural-linear-ucb, and the
    variance of the samples of neural-ts and neural-linear-ts."""
    refit_growth: float | None = None
    """Fit the representation anew when the data has grown by this factor; by default always
    for finite classes, and at 1.3 for others."""
    fit_steps: int | None = None
    """Gradient steps in one fit of the default network while tasks have up to ten samples; by
    default 60, and 20 for images of 16 x 16 and more."""
    fit_loss: Literal["leave_one_out", "residual"] = "leave_one_out"
    """What a fit of the default network makes small: held-out errors or plain residuals."""
    epsilon: float = 0.1
    """eps-greedy agents: probability of an action at random."""
    gap_scale: float = 10.0
    """SquareCB: multiplier of sqrt(K t) in the weight of gaps; larger is greedier."""
    perturbation: float = 0.1
    """NPR: standard deviation of what is added to rewards before fitting."""
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
    """One run: one agent in one environment under one seed."""

    environment: EnvironmentConfig = field(default_factory=EnvironmentConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)
    num_rounds: int = 200
    """T, the number of rounds."""
    seed: int = 0
    """Environment and agent derive all their randomness from it."""

    def __post_init__(self) -> None:
        if self.num_rounds < 1:
            raise InvalidInputError(f"num_rounds must be at least 1, got {self.num_rounds}")


def make_environment(
    config: EnvironmentConfig, seed: int, data_dir: str | None = None
) -> BanditEnvironment:
    """Build the environment of a config; `data_dir` is where MNIST's files lie."""
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
    return lookup(makers, config.kind, "environment")()
