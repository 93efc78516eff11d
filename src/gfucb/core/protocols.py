"""All protocols of the library, on one page; that of decision logs is in `core/log_protocol.py`.

A class with the members of a protocol replaces the component; `gfucb.checks` tests such classes.
Axis names in shapes: `row` is one decision to make (usually one for each task), `action` one of
its candidates, `sample` one observation in the data, `task` a task, `feature` a feature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from gfucb.core.weight_protocols import WeightStatistics as WeightStatistics
from gfucb.core.weight_protocols import WeightStatisticsKind as WeightStatisticsKind

# Protocols need no torch to be imported: `gfucb compare --help` uses them, and computes nothing.
if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from gfucb.core.action_sets import ActionSets
    from gfucb.core.records import BanditRound, Decision, Outcome, Prediction, Row, Selection
    from gfucb.episodic.buffer import StageBuffer
    from gfucb.episodic.stage_plan import StagePlan
    from gfucb.models import ConfidenceSet, HeadPenalty, MultiheadFunction, MultitaskDataset
    from gfucb.models.nn.stacked import NetworkStack
Device: TypeAlias = "torch.device | str"


class Representation(Protocol):
    """A map phi from inputs [n, *input] to features [n, feature].

    It is a value: the same inputs have the same features. A fit returns a new object if it changes
    phi, otherwise that of `start`. Features stay valid as long as their object is in use.
    """

    def __call__(self, inputs: Tensor, /) -> Tensor:
        """Return the features [n, feature] of `inputs` [n, *input]."""


@runtime_checkable
class RepresentationClass(Protocol):
    """Phi: the representations that a fit chooses from. Agents never use the type of the class."""

    @property
    def structure(self) -> str:
        """Sets defaults: "finite", "linear", "neural" (`NeuralRepresentation`) or another."""

    @property
    def members(self) -> Sequence[Representation] | None:
        """All representations of the class if they can be listed, otherwise None."""

    @property
    def default_refit_growth(self) -> float:
        """The agent refits phi when the data has grown by this factor, if the user sets none."""

    def validate_inputs(self, inputs: Tensor) -> None:
        """Raise `InvalidInputError` if the class does not accept inputs [n, *input] like these."""

    def initial(self, inputs: Tensor, generator: torch.Generator, device: Device) -> Representation:
        """Return the representation before any data; all its randomness is from `generator`."""

    def state_of(self, representation: Representation) -> dict[str, Tensor]:
        """Return named tensors from which `restored` builds the same representation."""

    def restored(
        self,
        state: Mapping[str, Tensor],
        inputs: Tensor,
        generator: torch.Generator,
        device: Device,
    ) -> Representation:
        """Return the representation with this state; the other arguments are those of `initial`."""

    def fingerprint(self) -> str:
        """Return a short string that identifies the class in every process; agents save it."""


class LeastSquares(Protocol):
    """Fits representation and heads to the data of all tasks, with the offset of `start`."""

    def __call__(
        self,
        data: MultitaskDataset,
        start: MultiheadFunction,
        penalty: HeadPenalty,
        generator: torch.Generator,
    ) -> MultiheadFunction:
        """Return a function of small penalised squared error, with the best heads for its phi."""


@runtime_checkable
class BatchedLeastSquares(LeastSquares, Protocol):
    """A fit that trains the networks of many independent replicas at once, for `BatchedAgents`."""

    def fit_stack(
        self,
        stack: NetworkStack,
        data: Sequence[MultitaskDataset],
        generators: Sequence[torch.Generator],
        *,
        offset: float,
        ridge: float,
        feature_dim: int,
    ) -> None:
        """Train the networks of a stack in place, as separate fits of the replicas would."""


@runtime_checkable
class SelfSupervision(Protocol):
    """Trains a network on offered candidates, chosen or not, before a fit to rewards.

    A step trains the weights below the last features on two random views of inputs from a pool.
    """

    pool_size: int  # the most inputs of the pool
    learning_rate: float
    weight_decay: float
    adaptive: bool  # whether there are steps only while the rewards show that they help

    def steps_for(self, samples_per_task: float) -> int:
        """Return the number of steps before a fit to so many samples of a task, on average."""

    def batch_size_for(self, num_inputs: int) -> int:
        """Return the inputs of a step on a pool of `num_inputs`; with fewer there are no steps."""

    def views_for(self, inputs: Tensor) -> Callable[[Tensor, torch.Generator], Tensor] | None:
        """Return a function from inputs like these [n, *input] to random views, or None."""

    def loss(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the losses [...] of outputs [..., n, output] for both views of n inputs."""


class SquaredRadius(Protocol):
    """The squared radius beta_t as a function of the round."""

    def __call__(self, round_index: int, /) -> float:
        """Return the squared radius of round t, from 1, that follows t - 1 rounds of rewards."""


@runtime_checkable
class Radius(Protocol):
    """A squared radius that also depends on the rewards, such as `CalibratedRadius`."""

    def initial(self) -> RadiusState:
        """Return its state before any reward."""


class RadiusState(Protocol):
    """A radius after some rewards, as a value; `Scheduled` is that of a function of the round."""

    def squared_radius(self, round_index: int, num_sharing: int) -> float:
        """Return beta_t for a decision in which `num_sharing` tasks share it."""

    def after(self, prediction: Prediction, rewards: Tensor) -> RadiusState:
        """Return the state after rewards [row] of a decision with this prediction."""

    def diagnostics(self) -> Row:
        """Numbers about the state, for `Agent.diagnostics`."""

    def tensors(self) -> dict[str, Tensor]:
        """Return the state as tensors, always under the same names: "<own word>.<name>"."""

    def restored(self, tensors: Mapping[str, Tensor]) -> RadiusState:
        """Return the state that has these `tensors`, or refuse them."""


class ActionSelector(Protocol):
    """Chooses one action in every row, from a confidence set.

    The properties state what a selector requires of the agent and what it guarantees. Subclass
    this protocol to inherit the defaults, those of Algorithm 1, and override the ones that differ
    by a dataclass field, a class variable or a property. An agent refuses a selector without them.
    """

    @property
    def joint(self) -> bool:
        """Whether all rows share one squared radius, as in Algorithm 1, or each has a whole one."""
        return True

    @property
    def weight_statistics(self) -> WeightStatisticsKind | None:
        """The statistics that the agent maintains, read from `ConfidenceSet.center_tangents`."""
        return None

    @property
    def reward_perturbation(self) -> float:
        """Standard deviation of the Gaussian noise that the agent adds to rewards in its fits."""
        return 0.0

    @property
    def returns_member(self) -> bool:
        """Whether `Selection.function` is always a member of the confidence set."""
        return True

    @property
    def is_optimistic(self) -> bool:
        """Whether the values sum to at least the best sum of the center's values."""
        return True

    def __call__(self, confidence_set: ConfidenceSet, action_sets: ActionSets, /) -> Selection:
        """Return actions with a large sum_row f_task(x_action), f plausible; change nothing."""


@runtime_checkable
class BatchedActionSelector(ActionSelector, Protocol):
    """An action selector for `BatchedAgents`: it uses only means and head widths of candidates."""

    def select_batched(
        self, means: Tensor, squared_widths: Tensor, squared_radii: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return actions and bonuses [replica, row], from [replica, row, action] and [replica].

        Widths are for squared radius 1. Unavailable actions have a mean of minus infinity.
        """


class Agent(Protocol):
    """The members that bandit and episodic agents have in common."""

    @property
    def num_tasks(self) -> int:
        """M."""

    def diagnostics(self) -> Row:
        """Numbers about the state and the last decision; each becomes a column of the rows."""

    def state(self) -> dict[str, Tensor]:
        """All that the agent has learned, as named tensors."""

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from the state of an agent built with the same arguments."""

    def settings(self) -> dict[str, str]:
        """What an agent must be built with to continue from this one's state."""


class BanditAgent(Agent, Protocol):
    """Decides, and learns from rewards."""

    def decide(
        self, candidates: Tensor, tasks: Tensor | None = None, available: Tensor | None = None
    ) -> Decision:
        """Choose an action for every row of candidates [row, action, *input]."""

    def observe(self, decision: Decision, rewards: Tensor) -> None:
        """Learn from the rewards [row] of a decision."""


class Environment(Protocol):
    """The members that bandit and episodic environments have in common."""

    @property
    def num_tasks(self) -> int:
        """M."""

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment for reports."""


class BanditEnvironment(Environment, Protocol):
    """M contextual bandits. A round is a function of its index: candidates, mean rewards, noise.

    Optional: `value_range`, `representation_class`, `noise_scale` (`core/environment_facts.py`).
    """

    def round(self, round_index: int) -> BanditRound:
        """Return round `round_index`, counted from 1; always the same one."""


class Episode(Protocol):
    """One episode of all tasks, stage by stage; all its randomness is already drawn."""

    def offered(self) -> tuple[Tensor, Tensor]:
        """Tasks whose episode goes on, [row], and their candidates, [row, action, *input]."""

    def play(self, actions: Tensor) -> Outcome:
        """Take actions [row] and move to the next stage."""


class EpisodicEnvironment(Environment, Protocol):
    """M episodic MDPs. An episode is a function of its index and of the actions."""

    @property
    def num_actions(self) -> int:
        """A, the same in all tasks."""

    @property
    def horizon(self) -> int:
        """H: no episode is longer."""

    def episode(self, episode_index: int) -> Episode:
        """Return episode `episode_index`, from 1, at its first stage."""


class Backup(Protocol):
    """A variant of Algorithm 2: which values stage h + 1 passes to stage h, how actions follow."""

    def is_markov(self, num_tasks: int) -> bool:
        """Whether, between plans, an action depends on its own row and stage alone."""

    def prepare(self, plan: StagePlan, generator: torch.Generator) -> StagePlan:
        """Return the plan of a stage with all that the methods below need."""

    def start_episode(
        self, plans: list[StagePlan], buffers: Sequence[StageBuffer], action_sets: ActionSets
    ) -> list[StagePlan]:
        """Return the plans of an episode with these first observations, [stage]."""

    def action_values(self, plan: StagePlan, inputs: Tensor, tasks: Tensor) -> Tensor:
        """Return the values that the previous stage uses, not clipped: [n, *input], [n] -> [n]."""

    def select(self, plan: StagePlan, action_sets: ActionSets) -> tuple[Tensor, Tensor]:
        """Return actions and their optimistic values, not clipped: both [row]."""


class EpisodicAgent(Agent, Protocol):
    """Plans before an episode, decides in every stage, and learns from transitions."""

    @property
    def horizon(self) -> int:
        """H; stages are numbered 0 .. H - 1."""

    @property
    def plan_index(self) -> int:
        """How many plans were made; decisions change only when it does."""

    @property
    def is_markov(self) -> bool:
        """Whether, between plans, an action depends on its own row and stage alone."""

    def plan(self, candidates: Tensor, tasks: Tensor | None = None) -> None:
        """Prepare an episode that starts with candidates [row, action, *input]."""

    def decide(self, stage: int, candidates: Tensor, tasks: Tensor | None = None) -> Decision:
        """Choose an action for every row of candidates [row, action, *input]."""

    def observe(
        self,
        stage: int,
        decision: Decision,
        rewards: Tensor,
        next_candidates: Tensor | None = None,
        ended: Tensor | None = None,
    ) -> None:
        """Learn from the rewards [row] and what followed a decision."""
