"""The command that estimates the values of policies from a log."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich.console import Console

from gfucb.cli.paths import require_parent
from gfucb.cli.terminal import evaluation_table
from gfucb.core.errors import GFUCBWarning, InvalidInputError
from gfucb.evaluation import ESTIMATORS, LogColumns
from gfucb.runs.plugins import load_plugins
from gfucb.runs.policy_registry import named_policy
from gfucb.runs.text_files import write_json

if TYPE_CHECKING:
    from gfucb.evaluation import Evaluation, NamedLog


@dataclass(frozen=True)
class EvaluateCommand:
    """Estimate what policies would have earned, from a log of another policy.

    LOG is the log of a gfucb.Agent that draws its actions at random, or a table that has one row
    for each decision: the action, the probability with which it was drawn, the reward, and columns
    of context. The table has, for each policy, estimates of its mean reward per
    decision. ips: rewards weighted by the ratio of probabilities, unbiased. snips: the same divided
    by the sum of weights, less variance. dm: the mean of a reward model, the fit of GFUCB. dr:
    both, unbiased with less variance. The interval holds for this number of rows, and the one at
    all times also if you look again every day. Intervals of policies that are close overlap even
    where one is better.

    Example: gfucb evaluate log.csv --policy logged uniform action=coupon --columns.task store
    """

    log: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="LOG")]
    """The log: a decision log of gfucb.Agent, or a file whose name ends with .csv, .csv.gz or
    .parquet."""
    policy: tuple[str, ...] = ("logged", "uniform")
    """Which policies: logged, uniform, action=NAME, agent=FILE (saved with its schema), or the name
    of a policy that a plugin registers. `gfucb presets` lists them."""
    columns: LogColumns = field(default_factory=LogColumns)
    estimators: tuple[str, ...] = ESTIMATORS
    """Of ips, snips, dm and dr. dm and dr fit a model several times; leave them out for speed."""
    reward_range: tuple[float, float] | None = (0.0, 1.0)
    """A range that contains every possible reward, for intervals that are valid at all times; None
    computes none of them."""
    confidence: float = 0.95
    """Of the intervals."""
    max_weight: float | None = None
    """Reduce larger weights to this one: less variance, some bias."""
    sequence: Literal["empirical-bernstein", "betting"] = "empirical-bernstein"
    """The interval that is valid at all times. betting may be narrower, and needs contexts that all
    come from one distribution."""
    missing_reward: float | None = None
    """Of a decision log: the reward of decisions whose reward never came, often 0. Without it they
    are left out."""
    schema: Path | None = None
    """Of a decision log: the file of the schema (or of an agent that was saved with it) that made
    the candidates, which names their actions. A log of tables has it."""
    folds: int = 5
    """Of the cross-fitted models of dm and dr."""
    seed: int = 0
    """Of the folds and the models."""
    plugin: tuple[Path, ...] = ()
    """Python files that register policies of your own."""
    json: Path | None = None
    """Also write the results to this file."""

    def __call__(self, console: Console) -> None:
        """Read the log, evaluate every policy, print the table."""
        # Not at the top, here and below: `--help` needs no torch.
        import torch

        from gfucb.runs.log_files import read_log
        from gfucb.tables import Schema

        require_parent(self.json)
        if not self.policy:
            raise InvalidInputError("--policy needs a name, such as uniform or action=NAME")
        load_plugins(self.plugin)
        torch.set_num_threads(1)
        with _printed_warnings(console, str(self.log)):
            named = read_log(
                self.log,
                self.columns,
                missing_reward=self.missing_reward,
                schema=None if self.schema is None else Schema.load(self.schema),
            )
        results = {}
        for word in dict.fromkeys(self.policy):
            with _printed_warnings(console, word):
                results[word] = self._evaluate(word, named)
        console.print(evaluation_table(results))
        if self.json is not None:
            content = {
                word: {**asdict(result), "estimates": result.rows()}
                for word, result in results.items()
            }
            write_json(self.json, content)

    def _evaluate(self, word: str, named: NamedLog) -> Evaluation:
        from gfucb.evaluation import Betting, ConfidenceSequence, EmpiricalBernstein, evaluate

        sequences: dict[str, ConfidenceSequence] = {
            "empirical-bernstein": EmpiricalBernstein(),
            "betting": Betting(),
        }
        return evaluate(
            named.log,
            named_policy(word, named),
            estimators=self.estimators,
            reward_range=self.reward_range,
            confidence=self.confidence,
            max_weight=self.max_weight,
            sequence=sequences[self.sequence],
            folds=self.folds,
            seed=self.seed,
        )


@contextmanager
def _printed_warnings(console: Console, about: str) -> Iterator[None]:
    """Print each warning once, after what it is about."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GFUCBWarning)
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        console.print(f"{about}: {message}", style="yellow", highlight=False)
