"""Did a run keep the theory's bounds? Replays finished runs on environments whose truth is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scipy.stats import binomtest

from gfucb.bandits import GFUCB
from gfucb.core.errors import InvalidInputError, RunDirectoryError
from gfucb.core.records import BanditRound
from gfucb.environments import SyntheticBandit
from gfucb.runs.build_run import make_agent, make_environment
from gfucb.runs.config import AgentConfig, BanditAgentConfig, RunConfig
from gfucb.runs.single import load_config
from gfucb.runs.store import read_provenance, read_rows
from gfucb.theory.bounds import (
    known_representation_theorem_1,
    printed_theorem_1,
    repaired_theorem_1,
)
from gfucb.theory.bounds_table import TheoryProblem

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
        not_optimistic: rounds in which the optimistic value was below the truth's best, although
            the truth was in the set: never so for an exact solver.
        beyond_width: rounds in which the regret exceeded the width of the set, although the truth
            was in it, against Lemma 0; None where widths have no closed form.
        wide_rounds: Lemma 2 at several widths; empty where widths have no closed form.
        regret: summed over tasks and rounds.
        trivial_bound: 2 M T; a bound above it says nothing.
        repaired_bound: Theorem 1 as it holds: with one representation for the sets as they are,
            with several for heads of norm at most sqrt(k), which the sets do not enforce.
        printed_bound: Theorem 1 as printed.
        squared_radius, ridge, dimension: the beta_T, ridge and dimension in `repaired_bound`.
    """

    agent: str
    seed: int
    rounds: int
    misses: int
    tightest: float
    not_optimistic: int
    beyond_width: int | None
    wide_rounds: tuple[WideRounds, ...]
    regret: float
    trivial_bound: float
    repaired_bound: float
    printed_bound: float
    squared_radius: float
    ridge: float
    dimension: float

    @property
    def lemma_2(self) -> str:
        """`kept`, `broken`, or `vacuous` where it allows every round to be wide."""
        if any(wide.count > wide.allowed for wide in self.wide_rounds):
            return "broken"
        if all(wide.allowed >= self.rounds for wide in self.wide_rounds):
            return "vacuous"
        return "kept"


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


def audit_run(directory: Path) -> RunAudit:
    """Replay the run in `directory` and check it; its rows must come out as they were written."""
    if not read_provenance(directory).get("finished"):
        raise RunDirectoryError(f"{directory} is not finished; finish it before it is audited")
    config = load_config(directory)
    audit, regrets = replay(config)
    written = [float(row["regret"]) for row in read_rows(directory)]
    if written != regrets:
        raise RunDirectoryError(
            f"{directory} does not replay: its rows are not those this version and machine give"
        )
    return audit


def replay(config: RunConfig) -> tuple[RunAudit, list[float]]:
    """Play a config again, looking at every confidence set; return the audit and the regrets.

    Costs about twice the run: a set, its width and the truth's distance in every round.
    """
    environment = make_environment(config.environment, config.seed)
    agent = make_agent(config.agent, environment, config.seed)
    if not isinstance(environment, SyntheticBandit) or not isinstance(agent, GFUCB):
        raise InvalidInputError(
            "an audit needs a environment whose truth is known (finite or linear) and an agent with a "
            f"confidence set (gfucb), got {config.environment.name} and {config.agent.name}"
        )
    distances, widths, gaps, regrets = [], [], [], []
    for round_index in range(1, config.num_rounds + 1):
        round_ = environment.round(round_index)
        confidence_set = agent.confidence_set(round_.candidates.flatten(0, 1))
        decision = agent.decide(round_.candidates)
        agent.observe(decision, round_.rewards(decision.actions))
        radius = confidence_set.squared_radius
        distances.append(confidence_set.squared_distance(environment.truth) / radius)
        gaps.append(_optimism_gap(agent, round_))
        if confidence_set.members is not None:
            widths.append(confidence_set.joint_width(decision.inputs, decision.tasks))
        regrets.append(float(round_.regrets(decision.actions).mean()))
    covered = [distance <= 1 + 1e-9 for distance in distances]
    totals = [environment.num_tasks * regret for regret in regrets]
    beyond = [c and r > w + 1e-9 for c, r, w in zip(covered, totals, widths, strict=False)]
    problem = theory_problem(environment, config)
    last_radius = radius
    dimension, bound = _repaired(problem, last_radius)
    return (
        RunAudit(
            agent=config.agent.name,
            seed=config.seed,
            rounds=config.num_rounds,
            misses=covered.count(False),
            tightest=max(distances),
            not_optimistic=sum(c and gap < -1e-9 for c, gap in zip(covered, gaps, strict=True)),
            beyond_width=sum(beyond) if widths else None,
            wide_rounds=_wide_rounds(widths, problem, last_radius),
            regret=sum(totals),
            trivial_bound=2.0 * environment.num_tasks * config.num_rounds,
            repaired_bound=bound,
            printed_bound=printed_theorem_1(
                problem.size,
                eluder_dimension=problem.eluder_dimension(problem.size.cover_scale),
                squared_radius=problem.printed_radius(config.num_rounds),
            ),
            squared_radius=last_radius,
            ridge=problem.ridge,
            dimension=dimension,
        ),
        regrets,
    )


def _repaired(problem: TheoryProblem, squared_radius: float) -> tuple[float, float]:
    """The dimension and the bound of Theorem 1 as it holds."""
    if problem.kind == "finite" and problem.num_representations == 1:
        bound = known_representation_theorem_1(
            problem.size, squared_radius=squared_radius, ridge=problem.ridge
        )
        return float(problem.feature_dim), bound
    dimension = problem.generalised_dimension()
    bound = repaired_theorem_1(
        problem.size,
        generalised_dimension=dimension,
        squared_radius=squared_radius,
        value_bound=math.sqrt(problem.feature_dim),
    )
    return dimension, bound


def _optimism_gap(agent: GFUCB, round_: BanditRound) -> float:
    """How much more the agent hoped for in its last decision than the truth offers at best."""
    hoped = agent.last_selection
    assert hoped is not None
    return float(hoped.values.sum() - round_.mean_rewards.max(dim=1).values.sum())


def theory_problem(environment: SyntheticBandit, config: RunConfig) -> TheoryProblem:
    """The environment as the theory sees it."""
    known = environment.representation_class
    return TheoryProblem(
        kind=known.structure,
        num_tasks=environment.num_tasks,
        feature_dim=environment.truth.heads.shape[1],
        num_rounds=config.num_rounds,
        num_representations=len(known.members or [known]),
        input_dim=environment.input_dim,
        noise_scale=environment.noise_scale,
        ridge=_ridge(config.agent),
    )


def _ridge(config: AgentConfig) -> float:
    """The ridge of a bandit agent's settings."""
    if not isinstance(config, BanditAgentConfig):
        raise InvalidInputError(f"agent {config.name!r} has no ridge setting")
    return config.ridge


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
