"""The model of an agent: changed by operations, while a copy of it may be fitted."""

from __future__ import annotations

from gfucb.bandits import GFUCB
from gfucb.serving.operations import Operation

# A fit that is ready is applied under the lock of the agent when so few operations are left.
FEW_OPERATIONS = 4
# Or after so many attempts to apply operations faster than they arrive.
MOST_ROUNDS = 50


class LiveModel:
    """A bandit agent that decides now, and the fit of a copy that may be under way.

    Calls are made under the lock of the serving agent, except those of `Refit.run`.
    """

    def __init__(self, agent: GFUCB) -> None:
        self.agent = agent
        self._refit: Refit | None = None

    @property
    def is_fitting(self) -> bool:
        """Whether a copy was taken to be fitted."""
        return self._refit is not None

    def keep(self, operation: Operation) -> None:
        """An operation was applied and stored: a fit that is under way has to apply it too."""
        if self._refit is not None:
            self._refit.operations.append(operation)

    def begin_fit(self) -> Refit:
        """Take a copy to be fitted; operations that follow are kept for it."""
        self._refit = Refit(self.agent.snapshot())
        return self._refit

    def end_fit(self, refit: Refit) -> None:
        """Continue with a fit that is ready."""
        refit.catch_up()
        self.agent, self._refit = refit.agent, None

    def abandon_fit(self) -> None:
        """Forget a fit that has failed."""
        self._refit = None


class Refit:
    """A copy of a model to be fitted, and the operations since it was taken."""

    def __init__(self, agent: GFUCB) -> None:
        self.agent = agent
        self.operations: list[Operation] = []
        self._num_applied = 0

    def run(self, *, only_due: bool) -> None:
        """Fit the copy, or what is due of it, then apply most operations that came meanwhile.

        This takes long and needs no lock: nobody else uses the copy, and a list can be read while
        another thread appends to it.
        """
        self.agent.refit(only_due=only_due)
        for _ in range(MOST_ROUNDS):
            if len(self.operations) - self._num_applied <= FEW_OPERATIONS:
                break
            self.catch_up()

    def catch_up(self) -> None:
        """Apply the operations so far."""
        for operation in self.operations[self._num_applied : len(self.operations)]:
            operation.apply(self.agent)
            self._num_applied += 1
