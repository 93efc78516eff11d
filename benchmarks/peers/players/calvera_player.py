"""calvera: NeuralLinear (Thompson sampling) or NeuralUCB, for each task or for all tasks."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import lightning
import numpy as np
import torch
from calvera.bandits.neural_linear_bandit import NeuralLinearBandit
from calvera.bandits.neural_ucb_bandit import NeuralUCBBandit
from calvera.utils.data_storage import AllDataRetrievalStrategy, TensorDataBuffer

from .problem import Floats, Integers, Offer, Problem, one_hot, with_intercept

HIDDEN, EMBEDDING = 64, 16


class Calvera:
    """A network of one hidden layer; pooled models see the one-hot task beside the action."""

    def __init__(self, problem: Problem, settings: dict[str, Any], seed: int) -> None:
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        warnings.filterwarnings("ignore")
        logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
        self.problem, self.settings = problem, settings
        self.pooled = settings["sharing"] == "pooled"
        self.every, self.num_rounds = int(settings["every"]), 0
        columns = problem.num_columns + (problem.num_actions if problem.kind == "arms" else 0)
        if self.pooled and problem.num_tasks > 1:
            columns += problem.num_tasks
        count = 1 if self.pooled else problem.num_tasks
        self.bandits = [self._bandit(columns + 1) for _ in range(count)]
        self.vectors = torch.empty(0)

    def _bandit(self, columns: int) -> Any:
        buffer: Any = TensorDataBuffer(AllDataRetrievalStrategy())
        kind, rate = self.settings["kind"], self.settings.get("rate", 1e-2)
        layers = [torch.nn.Linear(columns, HIDDEN), torch.nn.ReLU()]
        trained: dict[str, Any] = {
            "buffer": buffer,
            "train_batch_size": 64,
            "learning_rate": rate,
            "min_samples_required_for_training": 1,
            "early_stop_threshold": None,
        }
        if kind == "NeuralUCB":
            network = torch.nn.Sequential(*layers, torch.nn.Linear(HIDDEN, 1))
            return NeuralUCBBandit(
                n_features=columns,
                network=network,
                exploration_rate=self.settings["alpha"],
                **trained,
            )
        network = torch.nn.Sequential(*layers, torch.nn.Linear(HIDDEN, EMBEDDING), torch.nn.ReLU())
        return NeuralLinearBandit(
            network=network, n_embedding_size=EMBEDDING, lambda_=self.settings["ridge"], **trained
        )

    def choose(self, offer: Offer) -> Integers:
        """The chosen one-hot actions, as numbers."""
        self.vectors = torch.from_numpy(self._vectors(offer)).to(torch.float32)
        if self.pooled:
            chosen, _ = self.bandits[0](self.vectors)
        else:
            pairs = zip(self.bandits, self.vectors, strict=True)
            chosen = torch.cat([bandit(own[None])[0] for bandit, own in pairs])
        return np.asarray(chosen.argmax(1))

    def learn(self, offer: Offer, actions: Integers, rewards: Floats) -> None:
        """Record all rewards, and train after some rounds."""
        rows = self.vectors[torch.arange(len(actions)), torch.from_numpy(actions)][:, None]
        values = torch.from_numpy(rewards).to(torch.float32)[:, None]
        self.num_rounds += 1
        is_due = self.num_rounds % self.every == 0 or self.num_rounds <= 3
        if self.pooled:
            self._record(self.bandits[0], rows, values, is_due)
            return
        for bandit, row, value in zip(self.bandits, rows, values, strict=True):
            self._record(bandit, row[None], value[None], is_due)

    def _record(self, bandit: Any, rows: torch.Tensor, values: torch.Tensor, is_due: bool) -> None:
        bandit.record_feedback(rows, values)
        if is_due:
            lightning.Trainer(
                max_epochs=1,
                accelerator="cpu",
                logger=False,
                enable_progress_bar=False,
                enable_checkpointing=False,
                enable_model_summary=False,
            ).fit(bandit)

    def _vectors(self, offer: Offer) -> Floats:
        problem = self.problem
        if offer.vectors is not None:
            vectors = offer.vectors
        elif offer.items is not None:
            vectors = one_hot(offer.items, problem.num_columns)
        else:
            assert offer.contexts is not None
            shown = np.repeat(offer.contexts[:, None], problem.num_actions, 1)
            arms = np.repeat(np.eye(problem.num_actions)[None], len(shown), 0)
            vectors = np.concatenate([shown, arms], 2)
        if self.pooled and problem.num_tasks > 1:
            tasks = one_hot(np.arange(problem.num_tasks), problem.num_tasks)[:, None]
            vectors = np.concatenate([vectors, np.repeat(tasks, problem.num_actions, 1)], 2)
        return with_intercept(vectors)


def make(problem: Problem, settings: dict[str, Any], seed: int) -> Calvera:
    """The player."""
    return Calvera(problem, settings, seed)
