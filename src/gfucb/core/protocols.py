"""All protocols of the library, on one page.

A class with the members of a protocol replaces the component; `gfucb.checks` tests such classes.
Axis names in shapes: `row` is one decision to make (usually one for each task), `action` one of
its candidates, `sample` one observation in the data, `task` a task, `feature` a feature.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import torch
from torch import Tensor

from gfucb.core.records import ActionSets, BanditRound, Decision, Outcome, Row, Selection

if TYPE_CHECKING:
    from gfucb.episodic.buffer import StageBuffer
    from gfucb.episodic.stage_plan import StagePlan
    from gfucb.models import ConfidenceSet, HeadPenalty, MultiheadFunction, MultitaskDataset
    from gfucb.models.nn.stacked import NetworkStack


class Representation(Protocol):
    """A map phi from inputs [n, *input] to features [n, feature].

    It is a value: it returns the same features for the same inputs. A fit returns a new object
    when it changes phi, and the object of `start` when it does not. Features that were computed
    by an object therefore stay valid as long as the agent uses that object.
    """

    def __call__(self, inputs: Tensor, /) -> Tensor:
        """Return the features [n, feature] of `inputs` [n, *input]."""


@runtime_checkable
class RepresentationClass(Protocol):
    """Phi: the representations that a fit chooses from.

    An agent uses these members and never the type of the class, so a class of your own needs
    nothing else. With `structure` "neural" its representations are `NeuralRepresentation` objects.
    """

    @property
    def structure(self) -> str:
        """Selects the default fit and action selector: "finite", "linear", "neural" or another.

        For another structure the agent must be given both.
        """

    @property
    def members(self) -> Sequence[Representation] | None:
        """All representations of the class if they can be listed, otherwise None."""

    @property
    def default_refit_growth(self) -> float:
        """The agent refits phi when the data has grown by this factor, if the user sets none."""

    def validate_inputs(self, inputs: Tensor) -> None:
        """Raise `InvalidInputError` if the class does not accept inputs [n, *input] like these."""

    def initial(
        self, inputs: Tensor, generator: torch.Generator, device: torch.device | str
    ) -> Representation:
        """Return the representation before any data, for inputs [n, *input] like these.

        `generator` is the only source of randomness.
        """

    def state_of(self, representation: Representation) -> dict[str, Tensor]:
        """Return named tensors from which `restored` builds the same representation."""

    def restored(
        self,
        state: Mapping[str, Tensor],
        inputs: Tensor,
        generator: torch.Generator,
        device: torch.device | str,
    ) -> Representation:
        """Return the representation with this state; the other arguments are those of `initial`."""

    def fingerprint(self) -> str:
        """Return a short string that differs between classes and is the same in every process.

        An agent saves it, and refuses the state of an agent with another one.
        """


class LeastSquares(Protocol):
    """Fits the representation and the heads to the data of all tasks."""

    def __call__(
        self,
        data: MultitaskDataset,
        start: MultiheadFunction,
        penalty: HeadPenalty,
        generator: torch.Generator,
    ) -> MultiheadFunction:
        """Return a function of the class with a small penalised squared error on `data`.

        Its heads minimise the error for its representation (`HeadStatistics.heads`). `start` is
        the previous fit: it sets offset and value range, and iterative methods start from it.
        `generator` is the only source of randomness. `data` and `start` are not changed.
        """


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


class SquaredRadius(Protocol):
    """The squared radius beta_t as a function of the round."""

    def __call__(self, round_index: int, /) -> float:
        """Return the squared radius of round t = `round_index`, counted from 1.

        It is finite and not negative. The data of round t are the rewards of rounds 1 .. t - 1.
        """


class WeightStatistics(Protocol):
    """Sums over samples of statistics of their gradients in the weights of a network."""

    def plus(self, other: Self) -> Self:
        """Return the statistics of both data sets together."""

    def tensors(self) -> dict[str, Tensor]:
        """Return the statistics as named tensors, for saving."""


class WeightStatisticsKind(Protocol):
    """Which statistics of gradients an agent maintains; two are in `gfucb.models`."""

    def statistics(
        self, function: MultiheadFunction, inputs: Tensor, tasks: Tensor, features: Tensor | None
    ) -> WeightStatistics:
        """Return those of samples [n, *input] of tasks [n]; features [n, feature] may be known."""

    def restored(self, tensors: Mapping[str, Tensor]) -> WeightStatistics:
        """Return the statistics that have these `tensors`."""


class ActionSelector(Protocol):
    """Chooses one action in every row, from a confidence set.

    The properties state what a selector requires of the agent and what it guarantees. The
    defaults are those of Algorithm 1. Subclass this protocol to inherit them, and override the
    ones that differ by a dataclass field, a class variable or a property. An agent refuses a
    selector that lacks one of them.
    """

    @property
    def joint(self) -> bool:
        """Whether all rows share one squared radius, as in Algorithm 1.

        If False, each row uses the whole radius, and a calibrated radius is that of one task.
        """
        return True

    @property
    def weight_statistics(self) -> WeightStatisticsKind | None:
        """The statistics of gradients in the weights that the agent maintains for this selector.

        `WeightSketch` for their sketched Gram matrix, `GradientSquares` for its diagonal. The
        selector reads them from `ConfidenceSet.center_tangents`.
        """
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
        """Return actions that make sum_row f_task(x_action) large for a plausible f.

        The same arguments give the same selection, and the arguments are not changed.
        """


@runtime_checkable
class BatchedActionSelector(ActionSelector, Protocol):
    """An action selector for `BatchedAgents`: it uses only means and head widths of candidates."""

    def select_batched(
        self, means: Tensor, squared_widths: Tensor, squared_radii: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return actions and bonuses, [replica, row] each.

        Shapes: means and squared widths (for squared radius 1) [replica, row, action], squared
        radii [replica]. Unavailable actions have a mean of minus infinity. The rows of a replica
        are different tasks, and each replica is a separate problem.
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
