"""Did a run keep the theory's promises? Replays finished runs on worlds whose truth is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scipy.stats import binomtest

from gfucb.agents import GFUCB
from gfucb.contracts import BanditRound
from gfucb.environments import SyntheticBandit
from gfucb.errors import InvalidInputError, RunFolderError
from gfucb.experiments.agent_table import make_agent
from gfucb.experiments.config import RunConfig, make_world
from gfucb.experiments.records import load_config, read_provenance, read_rows
from gfucb.functions import FiniteClass
from gfucb.theory.bounds import printed_theorem_1, repaired_theorem_1
from gfucb.theory.promises import TheoryProblem

WIDTHS = (0.5, 1.0, 2.0)


@dataclass(frozen=True)
class WideRounds:
    """Lemma 2 at one width: rounds wider than it, and how many the lemma allows."""

    width: float
    count: int
    allowed: float


@dataclass(frozen=True)
class RunAudit:
    """What the replay of one run found.

    Attributes:
        misses: rounds in which the truth was not in the confidence set.
        tightest: largest squared distance of the truth over the squared radius; above 1, a miss.
        hopeless: rounds in which the optimistic value was below the truth's best, although the
            truth was in the set: an exact solver never is.
        wide_rounds: empty where widths have no closed form.
        regret: summed over tasks and rounds.
        repaired_bound, printed_bound: Theorem 1 with the radius of the run, and as printed.
    """

    agent: str
    seed: int
    rounds: int
    misses: int
    tightest: float
    hopeless: int
    wide_rounds: tuple[WideRounds, ...]
    regret: float
    repaired_bound: float
    printed_bound: float

    @property
    def within_lemma_2(self) -> bool:
        """Whether no width was exceeded more often than the lemma allows."""
        return all(wide.count <= wide.allowed for wide in self.wide_rounds)


@dataclass(frozen=True)
class Coverage:
    """In how many runs the truth was in every set, with an exact binomial interval."""

    runs: int
    covered: int
    low: float
    high: float

    @classmethod
    def of(cls, audits: Sequence[RunAudit], confidence: float = 0.95) -> Coverage:
        """Clopper and Pearson's interval of the share of runs without a miss."""
        covered = sum(audit.misses == 0 for audit in audits)
        interval = binomtest(covered, len(audits)).proportion_ci(confidence)
        return cls(len(audits), covered, interval.low, interval.high)


def audit_run(folder: Path) -> RunAudit:
    """Replay the run in `folder` and check it; its rows must come out as they were written."""
    if not read_provenance(folder).get("finished"):
        raise RunFolderError(f"{folder} is not finished; finish it before it is audited")
    config = load_config(folder)
    audit, regrets = replay(config)
    written = [float(row["regret"]) for row in read_rows(folder)]
    if written != regrets:
        raise RunFolderError(
            f"{folder} does not replay: its rows are not those this version and machine give"
        )
    return audit


def replay(config: RunConfig) -> tuple[RunAudit, list[float]]:
    """Play a config again, looking at every confidence set; return the audit and the regrets."""
    world = make_world(config.world, config.seed)
    agent = make_agent(config.agent, world, config.seed)
    if not isinstance(world, SyntheticBandit) or not isinstance(agent, GFUCB):
        raise InvalidInputError(
            "an audit needs a world whose truth is known (finite or linear) and an agent with a "
            f"confidence set (gfucb), got {config.world.kind} and {config.agent.name}"
        )
    distances, widths, gaps, regrets = [], [], [], []
    for round_index in range(1, config.num_rounds + 1):
        round_ = world.round(round_index)
        confidence_set = agent.confidence_set(round_.candidates.flatten(0, 1))
        decision = agent.decide(round_.candidates)
        agent.observe(decision, round_.rewards(decision.actions))
        radius = confidence_set.squared_radius
        distances.append(confidence_set.squared_distance(world.truth) / radius)
        gaps.append(_optimism_gap(agent, round_))
        if confidence_set.members is not None:
            widths.append(confidence_set.joint_width(decision.inputs, decision.tasks))
        regrets.append(float(round_.regrets(decision.actions).mean()))
    problem = theory_problem(world, config.num_rounds)
    last_radius = agent.squared_radius(config.num_rounds)
    covered = [distance <= 1 + 1e-9 for distance in distances]
    return (
        RunAudit(
            agent=config.agent.name,
            seed=config.seed,
            rounds=config.num_rounds,
            misses=covered.count(False),
            tightest=max(distances),
            hopeless=sum(c and gap < -1e-9 for c, gap in zip(covered, gaps, strict=True)),
            wide_rounds=_wide_rounds(widths, problem, last_radius),
            regret=world.num_tasks * sum(regrets),
            repaired_bound=repaired_theorem_1(
                problem.size,
                generalised_dimension=problem.generalised_dimension(),
                squared_radius=last_radius,
                value_bound=math.sqrt(problem.feature_dim),
            ),
            printed_bound=printed_theorem_1(
                problem.size,
                eluder_dimension=problem.eluder_dimension(problem.size.cover_scale),
                squared_radius=problem.printed_radius(config.num_rounds),
            ),
        ),
        regrets,
    )


def _optimism_gap(agent: GFUCB, round_: BanditRound) -> float:
    """How much more the agent hoped for in its last decision than the truth offers at best."""
    hoped = agent.last_choice
    assert hoped is not None
    return float(hoped.values.sum() - round_.mean_rewards.max(dim=1).values.sum())


def theory_problem(world: SyntheticBandit, num_rounds: int) -> TheoryProblem:
    """The world as the theory sees it."""
    known = world.representation_class
    return TheoryProblem(
        kind="finite" if isinstance(known, FiniteClass) else "linear",
        num_tasks=world.num_tasks,
        feature_dim=world.truth.heads.shape[1],
        num_rounds=num_rounds,
        num_representations=len(known.members) if isinstance(known, FiniteClass) else 1,
        input_dim=world.input_dim,
        noise_scale=world.noise_scale,
    )


def _wide_rounds(
    widths: list[float], problem: TheoryProblem, squared_radius: float
) -> tuple[WideRounds, ...]:
    if not widths:
        return ()
    return tuple(
        WideRounds(
            width=width,
            count=sum(w > width for w in widths),
            allowed=(4 * problem.num_tasks * squared_radius / width**2 + 1)
            * problem.eluder_dimension(width),
        )
        for width in WIDTHS
    )
