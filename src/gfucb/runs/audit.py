"""Audits: replay finished runs with a known true function, and test the bounds of the theory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scipy.stats import binomtest

from gfucb.bandits import GFUCB
from gfucb.core.errors import GFUCBError, InvalidInputError, RunDirectoryError
from gfucb.core.records import BanditRound
from gfucb.environments import SyntheticBandit
from gfucb.runs.build_run import make_agent, make_environment
from gfucb.runs.config import AgentConfig, BanditAgentConfig, RunConfig
from gfucb.runs.single import load_config
from gfucb.runs.store import is_finished, read_config, read_rows
from gfucb.runs.summary import find_runs
from gfucb.theory import TheoryProblem
from gfucb.theory.bounds import (
    known_representation_theorem_1,
    printed_theorem_1,
    repaired_theorem_1,
)

# The widths at which Lemma 2 is tested.
WIDTHS = (0.5, 1.0, 2.0)
ROUNDING = 1e-9


@dataclass(frozen=True)
class WideRounds:
    """Lemma 2 at one width: the number of rounds with wider sets, and the number it allows."""

    width: float
    count: int
    allowed: float


@dataclass(frozen=True)
class RunAudit:
    """The results of the replay of one run. "True function" is that of the environment.

    Attributes:
        misses: rounds in which the true function was outside the confidence set.
        farthest: largest squared distance of the true function over the squared radius; a value
            above 1 is a miss.
        not_optimistic: rounds in which the optimistic value was below the best true value,
            although the true function was in the set: 0 for an exact action selector.
        beyond_width: rounds in which the regret exceeded the width of the set, although the true
            function was in it, which contradicts Lemma 0; None if widths have no closed form.
        wide_rounds: Lemma 2 at several widths; empty if widths have no closed form.
        regret: summed over tasks and rounds.
        trivial_bound: 2 M T; a larger bound carries no information.
        repaired_bound: Theorem 1 as it holds. With one representation it is a bound for the sets
            of the agent; with several, for heads of norm at most sqrt(k), which the sets do not
            enforce.
        printed_bound: Theorem 1 as printed.
        squared_radius, ridge, dimension: the beta_T, ridge and dimension in `repaired_bound`.
    """

    agent: str
    seed: int
    rounds: int
    misses: int
    farthest: float
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
        """`holds`, `violated`, or `vacuous` if it allows every round to be wide."""
        if any(wide.count > wide.allowed for wide in self.wide_rounds):
            return "violated"
        if all(wide.allowed >= self.rounds for wide in self.wide_rounds):
            return "vacuous"
        return "holds"


@dataclass(frozen=True)
class Coverage:
    """The number of runs without a miss, with an exact binomial interval of their share."""

    runs: int
    covered: int
    low: float
    high: float

    @classmethod
    def of(cls, audits: Sequence[RunAudit], confidence: float = 0.95) -> Coverage:
        """Count the runs without a miss; the interval is Clopper and Pearson's."""
        covered = sum(audit.misses == 0 for audit in audits)
        interval = binomtest(covered, len(audits)).proportion_ci(confidence)
        return cls(len(audits), covered, interval.low, interval.high)


def audit_runs(directory: Path) -> tuple[list[RunAudit], dict[str, str]]:
    """Audit the runs of gfucb at or below a directory.

    Returns the audits, and why other runs of gfucb cannot be audited, by their directories.
    """
    audits, refused = [], {}
    for path in find_runs(directory):
        try:
            if _agent_of(path) == "gfucb":
                audits.append(audit_run(path))
        except GFUCBError as error:
            refused[str(path)] = str(error)
    if not audits and not refused:
        raise RunDirectoryError(f"there is no run of gfucb in {directory}")
    return audits, refused


def _agent_of(directory: Path) -> str:
    """The name of the agent of a run; empty for runs of no agent, such as measurements."""
    agent = read_config(directory).get("agent")
    return str(agent.get("name", "")) if isinstance(agent, dict) else ""


def audit_run(directory: Path) -> RunAudit:
    """Replay the run in `directory` and audit it; the replay must give the stored rows."""
    if not is_finished(directory):
        raise RunDirectoryError(f"{directory} is not finished; finish the run before its audit")
    audit, regrets = replay(load_config(directory))
    try:
        stored = [float(row["regret"]) for row in read_rows(directory)]
    except (KeyError, TypeError, ValueError) as error:
        raise RunDirectoryError(f"{directory / 'rows.csv'} is damaged: {error!r}") from error
    if stored != regrets:
        raise RunDirectoryError(
            f"{directory} does not replay: this version or machine gives other rows; audit it with "
            "the version in its provenance.json"
        )
    return audit


def replay(config: RunConfig) -> tuple[RunAudit, list[float]]:
    """Run a config again and examine the confidence set of every round.

    Returns the audit and the regret of every round. The cost is about twice that of the run: the
    set, its width and the distance of the true function are computed in every round.
    """
    environment = make_environment(config.environment, config.seed)
    agent = make_agent(config.agent, environment, config.seed)
    if not isinstance(environment, SyntheticBandit) or not isinstance(agent, GFUCB):
        raise InvalidInputError(
            "an audit needs an environment with a known true function (finite or linear) and an "
            "agent with a confidence set (gfucb), got "
            f"{config.environment.name} and {config.agent.name}"
        )
    rounds = [
        _audit_round(agent, environment, environment.round(index))
        for index in range(1, config.num_rounds + 1)
    ]
    return _audit(rounds, environment, config), [round_.regret for round_ in rounds]


@dataclass(frozen=True)
class _Round:
    """One round of a replay.

    Attributes:
        squared_radius: of the confidence set before the decision.
        distance: squared distance of the true function over the squared radius.
        width: of the set at the decision; None without a closed form.
        optimism: optimistic value minus the best true value, summed over the tasks.
        regret: mean over the tasks.
    """

    squared_radius: float
    distance: float
    width: float | None
    optimism: float
    regret: float

    @property
    def is_covered(self) -> bool:
        return self.distance <= 1 + ROUNDING


def _audit_round(agent: GFUCB, environment: SyntheticBandit, round_: BanditRound) -> _Round:
    """Play a round; describe the set that the decision was made with."""
    confidence_set = agent.confidence_set(round_.candidates.flatten(0, 1))
    decision = agent.decide(round_.candidates)
    agent.observe(decision, round_.rewards(decision.actions))
    radius = confidence_set.squared_radius
    has_widths = confidence_set.members is not None
    return _Round(
        squared_radius=radius,
        distance=confidence_set.squared_distance(environment.true_function) / radius,
        width=confidence_set.joint_width(decision.inputs, decision.tasks) if has_widths else None,
        optimism=_optimism(agent, round_),
        regret=float(round_.regrets(decision.actions).mean()),
    )


def _audit(rounds: Sequence[_Round], environment: SyntheticBandit, config: RunConfig) -> RunAudit:
    problem, last_radius = theory_problem(environment, config), rounds[-1].squared_radius
    dimension, bound = _repaired(problem, last_radius)
    num_tasks = environment.num_tasks
    widths = [round_.width for round_ in rounds if round_.width is not None]
    beyond_width = sum(
        r.is_covered and r.width is not None and num_tasks * r.regret > r.width + ROUNDING
        for r in rounds
    )
    return RunAudit(
        agent=config.agent.name,
        seed=config.seed,
        rounds=config.num_rounds,
        misses=sum(not round_.is_covered for round_ in rounds),
        farthest=max(round_.distance for round_ in rounds),
        not_optimistic=sum(r.is_covered and r.optimism < -ROUNDING for r in rounds),
        beyond_width=beyond_width if widths else None,
        wide_rounds=_wide_rounds(widths, problem, last_radius),
        regret=sum(num_tasks * round_.regret for round_ in rounds),
        trivial_bound=2.0 * num_tasks * config.num_rounds,
        repaired_bound=bound,
        printed_bound=printed_theorem_1(
            problem.size,
            eluder_dimension=problem.eluder_dimension(problem.size.cover_scale),
            squared_radius=problem.printed_radius(config.num_rounds),
        ),
        squared_radius=last_radius,
        ridge=problem.ridge,
        dimension=dimension,
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


def _optimism(agent: GFUCB, round_: BanditRound) -> float:
    """The optimistic value of the last decision minus the best true value."""
    selection = agent.last_selection
    assert selection is not None
    return float(selection.values.sum() - round_.mean_rewards.max(dim=1).values.sum())


def theory_problem(environment: SyntheticBandit, config: RunConfig) -> TheoryProblem:
    """The quantities of the environment and the agent that the bounds depend on."""
    known = environment.representation_class
    return TheoryProblem(
        kind=known.structure,
        num_tasks=environment.num_tasks,
        feature_dim=environment.true_function.heads.shape[1],
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
