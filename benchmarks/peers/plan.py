"""Which packages play which problems, with which settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Settings = Mapping[str, Any]
Grid = Sequence[Settings]
FIRST_TUNING_SEED = 2000
# Settings of these problems are those chosen on another one.
TUNED_ON = {"digits-100": "digits-30"}


@dataclass(frozen=True)
class Peer:
    """A package of the comparison.

    Attributes:
        name: of its player, and of its environment.
        title: in the table.
        distribution: the installed package, for its version; empty for none.
        grids: settings to choose from on tuning seeds, by the kind of the problem.
        one_task: settings for problems with a single task, if they differ.
        is_neural: whether it learns a network.
        is_own: whether it runs in the environment of this repository.
    """

    name: str
    title: str
    distribution: str
    grids: Mapping[str, Grid] = field(default_factory=dict)
    one_task: Grid = ()
    is_neural: bool = False
    is_own: bool = False

    def grid(self, kind: str, num_tasks: int) -> Grid:
        """The settings to try on a problem."""
        found = self.one_task if num_tasks == 1 and self.one_task else self.grids.get(kind, ({},))
        return found or ({},)


def _linear(sharing: str, *alphas: float, policy: str = "LinUCB") -> list[Settings]:
    return [{"sharing": sharing, "policy": policy, "alpha": alpha} for alpha in alphas]


def _coba(sharing: str, *alphas: float) -> list[Settings]:
    return [{"sharing": sharing, "alpha": alpha} for alpha in alphas]


def _normal(sharing: str, *pairs: tuple[float, float]) -> list[Settings]:
    return [{"sharing": sharing, "alpha": alpha, "beta": beta} for alpha, beta in pairs]


def _vw(sharing: str, explore: str, rate: float) -> Settings:
    return {"sharing": sharing, "explore": explore, "rate": rate}


def _neural(sharing: str, every: int, **settings: Any) -> Settings:
    kind = "NeuralUCB" if "alpha" in settings else "NeuralLinear"
    return {"sharing": sharing, "kind": kind, "every": every, **settings}


SQUARE, REG, GREEDY = (
    "--squarecb --gamma_scale 100",
    "--regcbopt --mellowness 0.01",
    "--epsilon 0.05",
)
VW_SHARED = [
    _vw("shared", SQUARE, 0.5),
    _vw("shared", SQUARE, 2.0),
    _vw("shared", "--squarecb --gamma_scale 1000", 2.0),
    _vw("shared", REG, 0.5),
    _vw("shared", GREEDY, 2.0),
    _vw("task", SQUARE, 2.0),
]
PRECISIONS = ((1.0, 100.0), (10.0, 100.0), (10.0, 1000.0), (1.0, 1000.0))

PEERS: Mapping[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer("gfucb", "gfucb (default agent)", "gfucb", is_neural=True, is_own=True),
        Peer(
            "mabwiser",
            "mabwiser",
            "mabwiser",
            {
                "features": [
                    *_linear("task", 0.03, 0.1, 0.3),
                    *_linear("task", 0.1, policy="LinTS"),
                    *_linear("pooled", 0.1),
                ],
                "arms": [
                    *_linear("task", 0.03, 0.1, 0.3),
                    *_linear("task", 0.1, policy="LinTS"),
                    *_linear("pooled", 0.1),
                ],
                "ids": [
                    *_linear("pooled", 0.03, 0.1, 0.3),
                    *_linear("pooled", 0.1, policy="LinTS"),
                ],
            },
        ),
        Peer(
            "vowpalwabbit",
            "Vowpal Wabbit",
            "vowpalwabbit",
            {
                "features": VW_SHARED,
                "arms": VW_SHARED,
                "ids": [
                    _vw("shared", SQUARE, 0.5),
                    _vw("shared", SQUARE, 2.0),
                    _vw("shared", GREEDY, 0.5),
                    _vw("factors", SQUARE, 0.5),
                    _vw("factors", GREEDY, 0.1),
                ],
            },
        ),
        Peer(
            "coba",
            "coba",
            "coba",
            {
                "features": _coba("task", 0.03, 0.1, 0.3),
                "arms": [*_coba("task", 0.03, 0.1, 0.3), *_coba("pooled", 0.1)],
                "ids": _coba("pooled", 0.03, 0.1, 0.3),
            },
            one_task=_coba("task", 0.01, 0.03, 0.1, 0.3),
        ),
        Peer(
            "bayesianbandits",
            "bayesianbandits",
            "bayesianbandits",
            {
                "features": [*_normal("task", *PRECISIONS), *_normal("pooled", (1.0, 100.0))],
                "arms": [*_normal("task", *PRECISIONS), *_normal("pooled", (1.0, 100.0))],
                "ids": _normal("pooled", *PRECISIONS, (1.0, 30.0)),
            },
        ),
        Peer(
            "calvera",
            "calvera",
            "calvera",
            {
                "features": [
                    _neural("pooled", 1, ridge=1.0),
                    _neural("task", 5, ridge=1.0),
                    _neural("task", 10, alpha=0.01),
                ],
                "arms": [
                    _neural("pooled", 1, ridge=1.0),
                    _neural("task", 5, ridge=1.0),
                ],
                "ids": [_neural("pooled", 1, ridge=1.0), _neural("pooled", 1, ridge=10.0)],
            },
            one_task=[
                _neural("task", 10, ridge=1.0),
                _neural("task", 10, ridge=0.1),
                _neural("task", 10, alpha=0.1),
            ],
            is_neural=True,
        ),
        Peer("uniform", "random actions", "", is_own=True),
    )
}
