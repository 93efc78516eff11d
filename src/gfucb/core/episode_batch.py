"""Several episodes of all tasks at once, so that an agent decides in one call."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import Episode
from gfucb.core.records import Outcome


class EpisodeBatch:
    """Episodes side by side, with the members of one `Episode`.

    Rows are those of the first episode, then those of the second, and so on; a task has a row in
    every episode that it still plays. Agents accept several rows of one task in `plan`, `decide`
    and `observe`, so a batch serves to evaluate and to learn.

    Args:
        episodes: of one environment, all at the same stage.

    Attributes:
        owners: the episode of each offered row, [row].
    """

    def __init__(self, episodes: Sequence[Episode]) -> None:
        if not episodes:
            raise InvalidInputError("a batch needs at least one episode, got none")
        self.episodes = list(episodes)
        self._refresh()

    def _refresh(self) -> None:
        offers = [episode.offered() for episode in self.episodes]
        self._tasks = [tasks for tasks, _ in offers]
        self._candidates = [candidates for tasks, candidates in offers if len(tasks)]
        sizes = torch.tensor([len(tasks) for tasks in self._tasks])
        self.owners = torch.arange(len(self.episodes)).repeat_interleave(sizes)

    def offered(self) -> tuple[Tensor, Tensor]:
        """The task of each row, [row], and its candidates, [row, action, *input]."""
        if not self._candidates:
            return self.episodes[0].offered()  # no rows, in the shape of the environment
        return torch.cat(self._tasks), torch.cat(self._candidates)

    def play(self, actions: Tensor) -> Outcome:
        """Take actions [row] in the episodes that continue, and move to the next stage."""
        if actions.shape != self.owners.shape:
            raise InvalidInputError(
                f"the batch has {len(self.owners)} rows, so actions must have the shape "
                f"[{len(self.owners)}], got {list(actions.shape)}"
            )
        if not len(self.owners):
            raise InvalidInputError("all episodes of the batch have ended")
        parts = actions.split([len(tasks) for tasks in self._tasks])
        outcomes = [
            episode.play(part)
            for episode, part in zip(self.episodes, parts, strict=True)
            if len(part)
        ]
        self._refresh()
        return Outcome(
            torch.cat([outcome.rewards for outcome in outcomes]),
            torch.cat([outcome.next_candidates for outcome in outcomes]),
            torch.cat([outcome.ended for outcome in outcomes]),
        )
