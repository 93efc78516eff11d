"""Algorithm 2 on cells or on latent classes, whichever predicts better."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.nested import below, with_prefix
from gfucb.core.random import random_stream
from gfucb.core.records import Decision, Row
from gfucb.core.validation.arrays import ArrayLike, to_inputs
from gfucb.core.validation.episodes import to_numpy
from gfucb.core.validation.settings import LARGEST_COMPUTED
from gfucb.core.validation.states import validate_state, validate_state_tensor
from gfucb.episodic.cell_learner import CellLearner
from gfucb.episodic.cell_model import CellModel
from gfucb.episodic.cell_values import decision_of
from gfucb.episodic.class_choice import explains_new_pairs, one_step_ahead
from gfucb.episodic.class_data import ClassData
from gfucb.episodic.class_fit import fit_classes
from gfucb.episodic.class_plan import StageCounts, plan_on_classes
from gfucb.episodic.class_values import ClassValues
from gfucb.episodic.distinct_rows import Floats, Integers
from gfucb.episodic.episodic_settings import Range
from gfucb.episodic.latent_classes import LatentClasses

# Classes are fitted again when the data has grown by this factor.
REFIT_GROWTH = 1.2
# Episodes before the first fit.
FIRST_FIT = 3
# Next states recur if at least this share of the transitions led to one seen before.
RECURRENT_SHARE = 0.1
# Sums of rewards that exceed their range by at most so many standard deviations may be noise.
NOISE_LIMIT = 4.0
# Names of saved tensors.
CLASSES, SIZES, CHOICE = "classes.", "class_sizes", "class_choice"
PLANNED = "class_planned_transitions"


class ClassLearner:
    """Learned cells, or latent classes of pairs where inputs describe pairs and states recur.

    Cells treat pairs alike or as unrelated. In linear MDPs pairs are mixtures of a few classes,
    which inputs predict also for pairs that were never tried. The agent uses classes if inputs
    predict the classes of new pairs, and if classes have predicted next states better than cells,
    one fit ahead.

    The arguments are those of `CellLearner`, which stores all data.
    """

    is_markov = True

    def __init__(
        self, num_tasks: int, horizon: int, ranges: Sequence[Range | None], seed: int
    ) -> None:
        self.cells = CellLearner(num_tasks, horizon, ranges, seed)
        self.num_tasks, self.horizon, self.seed = num_tasks, horizon, self.cells.seed
        self.classes: LatentClasses | None = None
        self.num_class_fits = 0
        self._sizes = [0] * horizon  # transitions at the last fit of classes, [stage]
        self._planned = [0] * horizon  # transitions at the last plan, [stage]
        self._is_informative, self._score = False, 0.0
        self._counts: list[StageCounts] = []
        self._values: list[ClassValues] = []  # empty while cells are used

    @property
    def plan_index(self) -> int:
        """The number of plans made."""
        return self.cells.plan_index

    @property
    def num_transitions(self) -> int:
        """Of all stages."""
        return self.cells.num_transitions

    @property
    def uses_classes(self) -> bool:
        """Whether values are functions of latent classes, and not of cells."""
        return self.classes is not None and self._is_informative and self._score > 0

    def describe(self) -> str:
        """The variant, for the repr of the agent."""
        return (
            f"{self.classes.num_classes} learned classes"
            if self._values and self.classes
            else (self.cells.describe())
        )

    def range_of(self, stage: int) -> Range | None:
        """The bounds of the values of a stage; None if none were given."""
        return self.cells.range_of(stage)

    def plan(self, candidates: ArrayLike, tasks: ArrayLike | None) -> None:
        """Lines 2 to 8 of Algorithm 2, if there are transitions since the last plan."""
        before = self.plan_index
        self.cells.plan(candidates, tasks)
        if self.plan_index == before:
            return
        model = self.cells.model
        self._values = []
        if model is None or not _may_have_classes(model):
            return
        self._refit_if_due(model)
        if self.uses_classes:
            self._planned = [len(table) for table in model.tables]
            self._values = self._backward(model, self._planned)

    def _refit_if_due(self, model: CellModel) -> None:
        total, first = model.num_transitions, FIRST_FIT * self.num_tasks * self.horizon
        if total < max(first, REFIT_GROWTH * sum(self._sizes)) or not _states_recur(model):
            return
        # Paper: phi is fitted to values in every episode. In a linear MDP it is also what predicts
        # next states, of which there are many more than values.
        if self.classes is not None:
            gain = one_step_ahead(self.classes, model.tables, self.num_tasks, self._sizes)
            self._score += gain
        data = ClassData.of(model.tables, self.num_tasks)
        generator = random_stream(self.seed, "classes", self.num_class_fits)
        self.classes, fitted = fit_classes(data, self.classes, generator)
        # Once shown: data of a good policy say little about pairs that it does not choose.
        self._is_informative = self._is_informative or explains_new_pairs(fitted)
        self._sizes = [len(table) for table in model.tables]
        self.num_class_fits += 1

    def _backward(
        self, model: CellModel, ends: Sequence[int], bonus: float = 1.0
    ) -> list[ClassValues]:
        """The values of all stages from the first `ends` [stage] transitions."""
        assert self.classes is not None
        if not self._counts or self._counts[0].table is not model.tables[0]:
            self._counts = [StageCounts(table) for table in model.tables]
        stages = [(own.table, own.until(end)) for own, end in zip(self._counts, ends, strict=True)]
        ranges = [self._bounds(stage) for stage in range(self.horizon)]
        return plan_on_classes(self.classes, stages, ranges, self.num_tasks, bonus)

    def _bounds(self, stage: int) -> Range:
        """The bounds of values: those given, widened by sums that noise does not explain."""
        assert self.classes is not None
        low, high = self.cells.ranges.of(stage)
        given = self.cells.ranges.given[stage]
        if given is None:
            return low, high
        noise = NOISE_LIMIT * (self.horizon * self.classes.noise) ** 0.5
        return min(given[0], low + noise), max(given[1], high - noise)

    def decide(self, stage: int, candidates: ArrayLike, tasks: ArrayLike | None) -> Decision:
        """Line 9: the action with the largest optimistic value in every row."""
        decision = self.cells.decide(stage, candidates, tasks)
        if not self._values:
            return decision
        given = to_inputs(candidates, "candidates")
        inputs = to_numpy(given).reshape(*given.shape[:2], -1)
        row_tasks = decision.tasks.numpy()
        upper = self._action_values(self._values, stage, inputs, row_tasks)
        order = self.cells.random_order(stage, inputs.shape[1])
        return decision_of(given, row_tasks, upper + 1e-9 * order[row_tasks], upper)

    def _action_values(
        self,
        values: Sequence[ClassValues],
        stage: int,
        inputs: NDArray[np.generic],
        tasks: Integers,
    ) -> Floats:
        """Values of inputs [row, action, column] of tasks [row]: [row, action]."""
        assert self.classes is not None
        rows, number, length = inputs.shape
        features = self.classes.features(inputs.reshape(rows * number, length))
        return values[stage](features, tasks.repeat(number)).reshape(rows, number)

    def greedy_policy(self) -> Callable[[int, Tensor, Tensor], Tensor]:
        """The best actions by the means of all data so far, without a bonus."""
        of_cells, model = self.cells.greedy_policy(), self.cells.model
        if not self._values or model is None:
            return of_cells
        # The counts of the plan stay as they are.
        own, self._counts = self._counts, []
        values = self._backward(model, [len(table) for table in model.tables], bonus=0.0)
        self._counts = own

        def policy(stage: int, candidates: Tensor, tasks: Tensor) -> Tensor:
            inputs = to_numpy(candidates).reshape(*candidates.shape[:2], -1)
            found = self._action_values(values, stage, inputs, tasks.numpy())
            return torch.from_numpy(found.argmax(axis=1))

        return policy

    def observe(
        self,
        stage: int,
        decision: Decision,
        rewards: ArrayLike,
        next_candidates: ArrayLike | None,
        ended: ArrayLike | None,
    ) -> None:
        """Line 10, and the data of the next plan."""
        self.cells.observe(stage, decision, rewards, next_candidates, ended)

    def diagnostics(self) -> Row:
        """The number of plans, of fits, of cells, and of classes: 0 while cells are used."""
        classes = self.classes.num_classes if self._values and self.classes else 0
        return {**self.cells.diagnostics(), "classes": classes}

    def settings(self) -> dict[str, str]:
        """What an agent must be built with to continue from this one's state."""
        return self.cells.settings()

    def state(self) -> dict[str, Tensor]:
        """The state of the cells, with the classes if there are any."""
        state = self.cells.state()
        if self.classes is None:
            return state
        choice = [self.num_class_fits, self._is_informative, bool(self._values)]
        return (
            state
            | with_prefix(CLASSES, self.classes.tensors())
            | {
                SIZES: torch.tensor(self._sizes),
                PLANNED: torch.tensor(self._planned),
                CHOICE: torch.tensor([*choice, self._score], dtype=torch.float64),
            }
        )

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from the state of an agent built with the same arguments."""
        validate_state(state)
        restored = ClassLearner(self.num_tasks, self.horizon, self.cells.ranges.given, self.seed)
        names = (SIZES, PLANNED, CHOICE)
        own = {n: t for n, t in state.items() if n in names or n.startswith(CLASSES)}
        restored.cells.load_state({n: t for n, t in state.items() if n not in own})
        if own:
            restored._restore(own)
        vars(self).update(vars(restored))

    def _restore(self, state: dict[str, Tensor]) -> None:
        model = self.cells.model
        if model is None or model.layout.is_factored:
            raise InvalidInputError("the state has classes of pairs, but its inputs are not pairs")
        columns = model.tables[0].keys.rows.shape[1]
        self.classes = LatentClasses.of_tensors(below(CLASSES, state), columns)
        self._sizes, self._planned = (
            validate_state_tensor(state, name, [self.horizon], dtype=torch.int64, low=0).tolist()
            for name in (SIZES, PLANNED)
        )
        for stage, table in enumerate(model.tables):
            if max(self._sizes[stage], self._planned[stage]) > len(table):
                raise InvalidInputError(
                    f"{SIZES!r} or {PLANNED!r} of the state exceed its {len(table)} transitions of "
                    f"stage {stage}"
                )
        most = LARGEST_COMPUTED
        choice = validate_state_tensor(
            state, CHOICE, [4], dtype=torch.float64, low=-most, high=most
        ).tolist()
        if choice[0] < 1 or choice[0] != int(choice[0]) or {*choice[1:3]} - {0.0, 1.0}:
            raise InvalidInputError(
                f"{CHOICE!r} of the state must be a number of fits, two flags and a score, got "
                f"{choice}"
            )
        self.num_class_fits, self._is_informative = int(choice[0]), bool(choice[1])
        self._score = choice[3]
        if choice[2]:
            self._values = self._backward(model, self._planned)


def _may_have_classes(model: CellModel) -> bool:
    """Whether inputs describe pairs, and not with as many columns as there are pairs.

    Such columns, as those of one-hot vectors, may do no more than name the pairs.
    """
    num_columns = len(model.layout.shared)
    most_pairs = max(len(table.keys) for table in model.tables)
    return not model.layout.is_factored and num_columns < most_pairs


def _states_recur(model: CellModel) -> bool:
    """Whether transitions often lead to observations that were seen before."""
    reached = [table.next_observations for table in model.tables]
    number = sum(int((own >= 0).sum()) for own in reached)
    distinct = sum(len(np.unique(own[own >= 0])) for own in reached)
    return number > 0 and number - distinct >= RECURRENT_SHARE * number
