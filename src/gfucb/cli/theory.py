"""Commands about the theory: bounds for a problem, and checks of finished runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from gfucb.cli.paths import require_parent
from gfucb.cli.terminal import audit_table, bounds_table_view
from gfucb.core.errors import RunDirectoryError
from gfucb.runs.text_files import write_json
from gfucb.theory import TheoryProblem


@dataclass(frozen=True)
class TheoryCommand:
    """Print the bounds of the theory for a class and a problem size, as printed and corrected.

    Covering number, dimensions, squared radii of Lemmas 1 and 4, regret bounds of Theorems 1
    and 2, all with their constants.
    """

    problem: Annotated[TheoryProblem, tyro.conf.arg(name="")] = field(default_factory=TheoryProblem)
    json: Path | None = None
    """Also write the table to this file."""

    def __call__(self, console: Console) -> None:
        """Print the table."""
        from gfucb.theory import evaluate_bounds  # not at the top: it needs torch

        require_parent(self.json)
        lines = evaluate_bounds(self.problem)
        console.print(bounds_table_view(lines))
        if self.json is not None:
            content = {
                "problem": asdict(self.problem),
                "bounds": [asdict(line) for line in lines],
            }
            write_json(self.json, content)


@dataclass(frozen=True)
class AuditCommand:
    """Replay finished runs in environments with a known representation, and check the bounds.

    Checks that the true function was in every confidence set, that regret was within the width
    of the set (Lemma 0), that wide sets were as rare as Lemma 2 states, and that the sum was
    within Theorem 1. Runs of agents without a confidence set are skipped. Runs of gfucb that cannot
    be audited are named, and the command then ends with exit code 2. The JSON file has the
    constants.
    """

    directory: Annotated[Path, tyro.conf.Positional]
    """A directory that `gfucb compare` or `gfucb run` wrote, of a finite or linear environment."""
    json: Path | None = None
    """Also write the results to this file."""

    def __call__(self, console: Console) -> None:
        """Replay, then print one line per run and the coverage."""
        # Not at the top: `--help` needs no torch.
        import torch

        from gfucb.runs.audit import Coverage, audit_runs

        require_parent(self.json)
        torch.set_num_threads(1)
        audits, refused = audit_runs(self.directory)
        for path, reason in refused.items():
            console.print(f"{path}: {reason}", style="yellow", highlight=False)
        coverage = Coverage.of(audits) if audits else None
        if coverage is not None:
            console.print(audit_table(audits))
            console.print(
                f"the true function was in every confidence set in {coverage.covered} of "
                f"{coverage.runs} runs "
                f"(95% interval {coverage.low:.3f} to {coverage.high:.3f})",
                highlight=False,
            )
        if self.json is not None:
            content = {
                "coverage": coverage and asdict(coverage),
                "runs": [asdict(audit) for audit in audits],
                "refused": refused,
            }
            write_json(self.json, content)
        if refused:
            raise RunDirectoryError(
                f"{len(refused)} of {len(audits) + len(refused)} runs of gfucb could not be "
                "audited, for the reasons above"
            )
