"""Decoders compared: which self-supervised objective finds the states of a lock?

    python -m benchmarks.episodic.decoders --seeds 5 --json decoders.json

The default agent plays the first episodes; decoders are fitted to its transitions. A network has
features of the observation, which are fitted to predict the next observation, the action between
two observations ("inverse dynamics"), or which of several next observations followed
("contrastive"). It is told task and stage, and k-means is told the number of states. The decoder of
the library clusters observations and is told nothing. The table has the share of fresh observations
that are decoded rightly: those of states that were visited at least three times, each state of each
stage with the same weight; and the number of cells for each of these states.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from torch import Tensor, nn

from gfucb.core.random import random_stream
from gfucb.core.records import Row
from gfucb.environments import RichObservationMDPs, combination_lock
from gfucb.episodic import EpisodicGFUCB
from gfucb.episodic.cell_decoder import CellDecoder, fit_decoder
from gfucb.episodic.distinct_rows import Floats, Integers
from gfucb.episodic.observation_table import ObservationTable
from gfucb.runs.jobs import Job, run_all
from gfucb.runs.store import distinct_provenance
from gfucb.runs.text_files import json_text, write_json

from .table import mean_and_interval

OUT = Path("runs") / "decoders"
HORIZON, NUM_TASKS, NUM_STATES = 12, 5, 3
EMISSIONS: Mapping[str, Mapping[str, Any]] = {
    "hadamard": {},
    "noise 0.2": {"noise_scale": 0.2},
    "nonlinear": {"emission": "nonlinear"},
}
EPISODES = (20, 80)
NETWORKS = ("next observation", "inverse dynamics", "contrastive")
FEATURES, HIDDEN, STEPS, BATCH, RATE = 8, 64, 600, 256, 3e-3
FRESH = 200


@dataclass(frozen=True, eq=False)
class Data:
    """Transitions of the first episodes: all arrays [stage, n, ...]."""

    observations: Floats
    states: Integers
    tasks: Integers
    actions: Integers
    next_observations: Floats


def collect(environment: RichObservationMDPs, num_episodes: int, seed: int) -> Data:
    """Transitions of the default agent."""
    agent = EpisodicGFUCB(NUM_TASKS, HORIZON, seed=seed)
    length = environment.observation_dim
    found: list[list[list[NDArray[Any]]]] = [[[] for _ in range(5)] for _ in range(HORIZON)]
    for index in range(1, num_episodes + 1):
        episode = environment.episode(index)
        agent.plan(*reversed(episode.offered()))
        for stage in range(HORIZON):
            tasks, candidates = episode.offered()
            states = episode.states.copy()
            decision = agent.decide(stage, candidates, tasks)
            outcome = episode.play(decision.actions)
            agent.observe(stage, decision, outcome.rewards, outcome.next_candidates, outcome.ended)
            following = outcome.next_candidates[:, 0, :length].numpy()
            row = (candidates[:, 0, :length].numpy(), states, tasks.numpy(),
                   decision.actions.numpy(), following)  # fmt: skip
            for column, values in zip(found[stage], row, strict=True):
                column.append(values)
    columns = [np.stack([np.concatenate(own[i]) for own in found]) for i in range(5)]
    return Data(*columns)


def library_cells(data: Data) -> CellDecoder:
    """The decoder of the default agent, fitted to the observations of all stages."""
    dtype = np.dtype(np.float64)
    tables = [ObservationTable(rows.shape[1], 1, dtype) for rows in data.observations]
    for table, rows in zip(tables, data.observations, strict=True):
        table.keys.add(rows.astype(dtype))
    return fit_decoder(tables, [len(table.keys) for table in tables], is_recurrent=False, seed=0)


class Features(nn.Module):
    """Features of standardised observations, and the heads of the objectives."""

    def __init__(self, data: Data, num_actions: int, seed: int) -> None:
        super().__init__()
        rows = torch.from_numpy(data.observations.reshape(-1, data.observations.shape[-1])).float()
        self.mean, self.scale = rows.mean(0), rows.std(0) + 1e-6
        side = HORIZON + NUM_TASKS
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.features = _network(rows.shape[1], FEATURES)
            self.forward_head = _network(FEATURES + num_actions + side, rows.shape[1])
            self.inverse_head = _network(2 * FEATURES + side, num_actions)
            self.contrast_head = _network(FEATURES + num_actions + side, FEATURES)

    def forward(self, observations: Tensor) -> Tensor:
        """Features [n, feature] of observations [n, column]."""
        return self.features((observations - self.mean) / self.scale)

    def loss(
        self, objective: str, now: Tensor, actions: Tensor, side: Tensor, following: Tensor
    ) -> Tensor:
        """The loss of a batch of one stage."""
        features = self(now)
        if objective == "inverse dynamics":
            scores = self.inverse_head(torch.cat([features, self(following), side], 1))
            return nn.functional.cross_entropy(scores, actions.argmax(1))
        given = torch.cat([features, actions, side], 1)
        if objective == "next observation":
            standard = (following - self.mean) / self.scale
            return ((self.forward_head(given) - standard) ** 2).mean()
        scores = self.contrast_head(given) @ self(following).T
        return nn.functional.cross_entropy(scores, torch.arange(len(now)))


def _network(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, outputs))


def fitted_features(data: Data, objective: str, num_actions: int, seed: int) -> Features:
    """Features that are fitted to transitions of all stages but the last, which has no next one."""
    network = Features(data, num_actions, seed)
    optimiser = torch.optim.Adam(network.parameters(), lr=RATE)
    generator = random_stream(seed, "batches")
    now, following = (
        torch.from_numpy(rows).float() for rows in (data.observations, data.next_observations)
    )
    actions = nn.functional.one_hot(torch.from_numpy(data.actions), num_actions).float()
    tasks = nn.functional.one_hot(torch.from_numpy(data.tasks), NUM_TASKS).float()
    for _ in range(STEPS):
        stage = int(torch.randint(HORIZON - 1, (1,), generator=generator))
        rows = torch.randint(now.shape[1], (BATCH,), generator=generator)
        side = torch.zeros(BATCH, HORIZON)
        side[:, stage] = 1
        side = torch.cat([side, tasks[stage, rows]], 1)
        loss = network.loss(
            objective, now[stage, rows], actions[stage, rows], side, following[stage, rows]
        )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return network


def accuracy(cells: Integers, states: Integers, fresh: Integers, fresh_states: Integers) -> Floats:
    """The share of fresh observations decoded rightly, of each state that was visited: [state].

    A cell stands for the state that most of its observations have.
    """
    size = int(max(cells.max(), fresh.max())) + 1
    votes = np.zeros((size, NUM_STATES))
    np.add.at(votes, (cells, states), 1.0)
    decoded = votes.argmax(1)[fresh]
    visited = np.flatnonzero(np.bincount(states, minlength=NUM_STATES) >= 3)
    return np.array([(decoded[fresh_states == s] == s).mean() for s in visited])


def run(emission: str, num_episodes: int, seed: int) -> list[Row]:
    """All decoders on the same transitions."""
    torch.set_num_threads(1)
    environment = combination_lock(HORIZON, num_tasks=NUM_TASKS, seed=seed, **EMISSIONS[emission])
    data = collect(environment, num_episodes, seed)
    noise = np.random.default_rng(seed)
    fresh_states = np.repeat(np.arange(NUM_STATES), FRESH)
    shape = (len(fresh_states), environment.emission.num_coordinates)
    fresh = [
        environment.emission(fresh_states, h, noise.normal(size=shape)) for h in range(HORIZON)
    ]
    cells = library_cells(data)
    networks = {
        name: fitted_features(data, name, environment.num_actions, seed) for name in NETWORKS
    }
    shares: dict[str, list[Floats]] = {}
    num_cells = 0
    for stage, rows in enumerate(data.observations):
        states = data.states[stage]
        both = [cells.nearest(stage, own, cells.num_cells(stage)) for own in (rows, fresh[stage])]
        num_cells += cells.num_cells(stage)
        shares.setdefault("default", []).append(accuracy(both[0], states, both[1], fresh_states))
        for name, network in networks.items():
            with torch.no_grad():
                old, new = (network(torch.from_numpy(o).float()) for o in (rows, fresh[stage]))
            means = KMeans(NUM_STATES, n_init=10, random_state=seed).fit(old.numpy())
            shares.setdefault(name, []).append(
                accuracy(means.labels_, states, means.predict(new.numpy()), fresh_states)
            )
    return [
        {
            "decoder": name,
            "accuracy": float(np.concatenate(own).mean()),
            "cells_per_state": (num_cells if name == "default" else HORIZON * NUM_STATES)
            / len(np.concatenate(own)),
        }
        for name, own in shares.items()
    ]


def jobs(seeds: Sequence[int]) -> list[Job]:
    """One job for each emission, number of episodes and seed."""
    return [
        Job(
            f"{emission.replace(' ', '-')}/episodes={episodes}/seed={seed}",
            partial(run, emission, episodes, seed),
            settings={"emission": emission, "episodes": episodes, "seed": seed},
        )
        for emission in EMISSIONS
        for episodes in EPISODES
        for seed in seeds
    ]


def summary(
    done: Sequence[Job], computed: Mapping[str, Sequence[Mapping[str, str]]]
) -> list[dict[str, Any]]:
    """Mean accuracy with its interval, for each emission, number of episodes and decoder."""
    groups: dict[tuple[str, int, str], list[Mapping[str, str]]] = {}
    for one in done:
        for row in computed[one.name]:
            key = (one.settings["emission"], one.settings["episodes"], row["decoder"])
            groups.setdefault(key, []).append(row)
    return [
        {"emission": key[0], "episodes": key[1], "decoder": key[2], "seeds": len(rows)}
        | {
            name: mean_and_interval([float(row[name]) for row in rows])
            for name in ("accuracy", "cells_per_state")
        }
        for key, rows in groups.items()
    ]


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.episodic.decoders", description=__doc__
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seeds", type=int, default=5, help="from --first-seed on")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, default=OUT, help="directory of the runs")
    parser.add_argument("--json", type=Path)
    return parser


def main(words: Sequence[str] | None = None) -> None:
    """Compute what is missing and write the table."""
    given = parser().parse_args(words)
    done = jobs(range(given.first_seed, given.first_seed + given.seeds))
    computed = run_all(done, given.out, processes=given.processes)
    content = {
        "results": summary(done, computed),
        "provenance": distinct_provenance(given.out / name for name in computed),
    }
    print(json_text(content), end="")
    if given.json:
        write_json(given.json, content)


if __name__ == "__main__":
    main()
