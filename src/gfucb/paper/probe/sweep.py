"""What the linear probe measures: accuracies on frozen representations, and the probe itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from gfucb.bandits import GFUCB
from gfucb.core.random import random_stream
from gfucb.core.records import Row
from gfucb.environments.image_bandit import NUM_CLASSES
from gfucb.models import Representation
from gfucb.models.representations import flat_inputs
from gfucb.paper.driver import Job, Options
from gfucb.paper.logged_runs import (
    MILESTONES,
    SEEDS,
    Play,
    Source,
    features_on,
    learned_alone,
    learned_together,
    paper_played,
    played,
)

TOGETHER, ALONE, PIXELS, UNTRAINED = "M = 10", "single task", "raw pixels", "untrained network"
LBFGS_STEPS = 200


@dataclass(frozen=True)
class Sizes:
    """How much is looked at.

    Attributes:
        milestones: rounds after which the representation of ten tasks, or of one, is probed.
        long: further rounds of the single task, as many as ten tasks have samples.
        labels: how many labelled images a probe is fitted to.
        paper_seeds: on so many seeds the paper's network is probed too.
        long_seeds: on so many seeds the single task plays on.
    """

    milestones: tuple[int, ...] = MILESTONES
    long: tuple[int, ...] = (1000, 2000, 3000, 6000)
    labels: tuple[int, ...] = (100, 1000, 60_000)
    paper_seeds: int = 3
    long_seeds: int = 3
    epochs: int = 200


QUICK = Sizes(
    milestones=(5, 20), long=(40,), labels=(100, 1000), paper_seeds=1, long_seeds=1, epochs=10
)


def sizes_of(options: Options) -> Sizes:
    """How much is looked at with these options."""
    return QUICK if options.quick else Sizes()


def jobs(options: Options) -> list[Job]:
    """All that is to be made with these options."""
    sizes, source = sizes_of(options), Source.of(options)
    seeds = options.seeds or ((0, 1) if options.quick else SEEDS)
    together = learned_together(seeds, sizes.milestones)
    alone = learned_alone(seeds, sizes.milestones)
    long = learned_alone(seeds[: sizes.long_seeds], sizes.long)
    return [
        Job("references", partial(reference_rows, sizes, source, seeds)),
        Job("together", partial(played_rows, TOGETHER, together, sizes, source)),
        Job("alone", partial(played_rows, ALONE, alone, sizes, source)),
        Job("alone-long", partial(played_rows, ALONE, long, sizes, source)),
        *(
            Job(
                f"paper-{name}-seed={seed}",
                partial(paper_rows, setting, play, sizes, source, seed),
            )
            for name, setting, play in (("together", TOGETHER, together), ("alone", ALONE, alone))
            for seed in seeds[: sizes.paper_seeds]
        ),
    ]


def played_rows(setting: str, play: Play, sizes: Sizes, source: Source) -> Sequence[Row]:
    """The default network at every milestone."""
    rows: list[Row] = []
    for (seed, rounds), learned in played(play, source).items():
        facts = _facts(setting, "default", seed, rounds, rounds * play.num_tasks)
        rows += _rows(facts, learned.center.representation, sizes, source)
    return rows


def paper_rows(setting: str, play: Play, sizes: Sizes, source: Source, seed: int) -> Sequence[Row]:
    """The paper's network, fitted to all samples that the default agent has chosen."""
    rounds = play.milestones[-1]
    fitted = paper_played(play, source, seed, sizes.epochs)
    facts = _facts(setting, "paper", seed, rounds, rounds * play.num_tasks)
    return list(_rows(facts, fitted.center.representation, sizes, source))


def reference_rows(sizes: Sizes, source: Source, seeds: tuple[int, ...]) -> Sequence[Row]:
    """What needs no bandit: the pixels themselves, and the default network as it begins."""
    rows = list(_rows(_facts(PIXELS, "none", seeds[0], 0, 0), flat_inputs, sizes, source))
    example = source.shown().images[:1].to(source.device)
    for seed in seeds:
        untrained = GFUCB(1, seed=seed, device=source.device).confidence_set(example).center
        facts = _facts(UNTRAINED, "default", seed, 0, 0)
        rows += _rows(facts, untrained.representation, sizes, source)
    return rows


def _facts(
    setting: str, network: str, seed: int, rounds: int, samples: int
) -> dict[str, str | int]:
    return {
        "setting": setting,
        "network": network,
        "seed": seed,
        "rounds": rounds,
        "samples": samples,
    }


def _rows(
    facts: dict[str, str | int], phi: Representation, sizes: Sizes, source: Source
) -> Iterator[Row]:
    known, test = source.shown(), source.held_out()
    draws = torch.randperm(
        len(known.labels), generator=random_stream(int(facts["seed"]), "labelled images")
    )[: max(sizes.labels)]
    learned = features_on(phi, known.images[draws], source.device, unit=False)
    seen = features_on(phi, test.images, source.device, unit=False)
    labels = known.labels[draws]
    for count in sizes.labels:
        accuracy = probe_accuracy(learned[:count], labels[:count], seen, test.labels)
        yield {**facts, "labels": count, "accuracy": f"{accuracy:.4f}"}


def probe_accuracy(learned: Tensor, learned_labels: Tensor, seen: Tensor, labels: Tensor) -> float:
    """Test accuracy of multinomial logistic regression on standardised features.

        minimise  sum of log losses + |weights|^2 / 2      (scikit-learn's default, C = 1)

    by L-BFGS, on the device of the features: [image, feature], [image] twice.
    """
    middle, spread = learned.mean(0), learned.std(0, correction=0)
    spread = torch.where(spread > 0, spread, 1.0)
    inputs, targets = (learned - middle) / spread, learned_labels.to(learned.device)
    weights = inputs.new_zeros(inputs.shape[1], NUM_CLASSES, requires_grad=True)
    biases = inputs.new_zeros(NUM_CLASSES, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [weights, biases], max_iter=LBFGS_STEPS, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        optimiser.zero_grad()
        log_losses = torch.nn.functional.cross_entropy(inputs @ weights + biases, targets)
        value = log_losses + weights.square().sum() / (2 * len(inputs))
        value.backward()
        return value

    optimiser.step(loss)
    with torch.no_grad():
        guesses = ((seen - middle) / spread @ weights + biases).argmax(1).cpu()
    return float((guesses == labels).double().mean())
