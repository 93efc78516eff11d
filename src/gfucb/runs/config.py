"""Settings of a run: frozen dataclasses whose field docstrings are the help of the command line.

A `RunConfig` has two branches, the environment and the agent. The registry entry of each names
the dataclass of its settings; the classes here are those that built-in agents share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from gfucb.core.errors import InvalidInputError


@dataclass(frozen=True)
class EnvironmentConfig:
    """Settings that every environment has. Subclasses add their own, all with defaults."""

    name: str = ""
    """Which environment; an unknown name lists the known ones."""
    num_tasks: int = 10
    """M, the number of tasks."""


@dataclass(frozen=True)
class AgentConfig:
    """Settings that every agent has. Subclasses add their own, all with defaults."""

    name: str = ""
    """Which agent; an unknown name lists the known ones."""


@dataclass(frozen=True)
class BanditAgentConfig(AgentConfig):
    """Settings of the bandit agents. An agent ignores the settings that it does not have."""

    name: str = "gfucb"
    """Which agent; an unknown name lists the known ones."""
    ridge: float = 1.0
    """Ridge penalty on the heads."""
    fit: str = "default"
    """How the representation is fitted: default (that of the inputs or the representation class),
    or the name of a fit; an unknown name lists the known ones."""
    action_selector: str = "default"
    """How GFUCB selects actions: default (exact for finite classes, otherwise last-layer), or
    the name of an action selector; an unknown name lists the known ones."""
    weight_ridge: float = 10.0
    """Action selectors linearised, certified and gradient: ridge penalty on changes of the
    network weights. A larger value gives a smaller bonus."""
    radius: Literal["default", "constant", "printed-log", "corrected", "printed"] = "default"
    """Squared radius of GFUCB: default (calibrated to the coverage below; for tables and ids the
    posterior), a constant share of the value range, the schedule 0.4 log(0.5 t + 2) of the paper's
    experiments, or Lemma 1, corrected or as printed (environments finite and linear)."""
    coverage: float = 0.8
    """Calibrated radius: the share of rewards that should fall inside the predicted interval."""
    radius_scale: float = 1.0
    """Multiplies the squared radius of GFUCB, neural-ucb and neural-linear-ucb, and the variance
    of the samples of neural-ts and neural-linear-ts."""
    refit_growth: float | None = None
    """Refit the representation when the data has grown by this factor. By default finite
    classes refit in every round, ids at 1.1, others at 1.3."""
    self_supervision: Literal["none", "auto"] = "auto"
    """Whether networks learn from all candidates: none, or auto (images of the default network)."""
    fit_steps: int | None = None
    """Gradient steps in one fit of the default network while tasks have at most ten samples. By
    default 60, and 20 for images of 16 x 16 and more."""
    fit_loss: Literal["leave_one_out", "residual"] = "leave_one_out"
    """Loss of the default fit: leave-one-out errors, or residuals."""
    epsilon: float = 0.1
    """Epsilon-greedy agents: probability of a random action."""
    gap_scale: float = 10.0
    """SquareCB: multiplier of sqrt(K t) in the weight of gaps. A larger value explores less."""
    perturbation: float = 0.1
    """NPR: standard deviation of the noise added to rewards before each fit."""
    alpha: float = 0.3
    """LinUCB and oracle-ucb: multiplier of the standard deviation in the bonus."""
    group_size: int = 1
    """Independent agents: number of tasks that share one learner."""
    epochs: int = 200
    """The paper's procedure: epochs of Adam in every fit."""
    tuning_iterations: int = 200
    """The paper's procedure: fine-tuning steps in every decision."""

    def variable_projection_arguments(self) -> dict[str, Any]:
        """The arguments of `VariableProjection` that these settings have."""
        return {"steps": self.fit_steps, "loss": self.fit_loss}

    def adam_arguments(self) -> dict[str, Any]:
        """The arguments of `AdamFit` that these settings have."""
        return {"epochs": self.epochs}


@dataclass(frozen=True)
class EpisodicAgentConfig(AgentConfig):
    """Settings of the episodic agents. An agent ignores the settings that it does not have."""

    name: str = "gfucb-mdp"
    """Which agent; an unknown name lists the known ones."""
    bonus_scale: float = 0.3
    """The bonus is this factor times the standard deviation times the length of the value
    range."""
    ridge: float = 0.1
    """Ridge penalty on the heads."""
    representation: Literal["given", "network", "learned"] = "given"
    """Representation class of agents that learn one: given (the class of the environment, or
    the inputs themselves where it has none), network, or learned (the default of
    `EpisodicGFUCB`, for which all other settings but the agent's name are ignored)."""
    replan: str = "determinant"
    """When to compute a new plan: determinant, doubling or every."""
    share_stages: bool = False
    """Use one representation for all stages."""
    next_targets: int = 0
    """Number of directions of the next observation that networks also learn to predict."""
    reward_weight: float = 0.0
    """Weight of reward ranks among these auxiliary targets; 0 for none."""
    warm_start: bool = True
    """Start each fit of a network at the previous fit, not at the initial weights."""
    fit: str = "default"
    """How networks are fitted: default (variable projection with the settings below), or the
    name of a fit; an unknown name lists the known ones."""
    fit_steps: int = 60
    """Gradient steps in one fit of a network."""
    fit_rate: float = 1e-2
    """Learning rate of these steps."""
    weight_decay: float = 0.0
    """Weight decay of these steps."""
    fit_batch: int = 1024
    """Samples in one step, of all tasks together."""
    fit_window: int = 64
    """Most samples in one step of one task, stage and target."""
    feature_dim: int = 8
    """Number of features of networks."""
    hidden: int = 32
    """Hidden units of networks."""
    epsilon: float = 0.1
    """fitted-q: probability of a random action."""

    def variable_projection_arguments(self) -> dict[str, Any]:
        """The arguments of `VariableProjection` that these settings have."""
        return {
            "steps": self.fit_steps,
            "max_steps": self.fit_steps,
            "learning_rate": self.fit_rate,
            "samples_at_full_rate": 0,
            "weight_decay": self.weight_decay,
            "batch_size": self.fit_batch,
            "samples_per_task": self.fit_window,
        }

    def adam_arguments(self) -> dict[str, Any]:
        """The arguments of `AdamFit` that these settings have."""
        return {"learning_rate": self.fit_rate, "batch_size": self.fit_batch}


@dataclass(frozen=True)
class RunConfig:
    """One run: one agent in one environment with one seed."""

    environment: EnvironmentConfig
    agent: AgentConfig
    num_rounds: int = 200
    """T, the number of rounds; in episodic environments, of episodes."""
    seed: int = 0
    """Environment and agent derive all their randomness from it."""

    def __post_init__(self) -> None:
        if self.num_rounds < 1:
            raise InvalidInputError(f"num_rounds must be at least 1, got {self.num_rounds}")
