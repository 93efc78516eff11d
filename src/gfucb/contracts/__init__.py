"""Every extension point, and the records that cross rooms.

Axis names: `entry` is a line of a menu (usually one a task), `action` one of its candidates,
`sample` a line of the data, `task` and `feature` what they say.
"""

from gfucb.contracts.bandits import BanditAgent, BanditEnvironment, BanditRound
from gfucb.contracts.episodes import Episode, EpisodicAgent, EpisodicEnvironment, Outcome
from gfucb.contracts.records import Decision, Menu, OptimisticChoice, Promise, Row, is_repeated
from gfucb.contracts.rooms import LeastSquares, OptimismSolver, SquaredRadius

__all__ = [
    "BanditAgent",
    "BanditEnvironment",
    "BanditRound",
    "Decision",
    "Episode",
    "EpisodicAgent",
    "EpisodicEnvironment",
    "LeastSquares",
    "Menu",
    "OptimismSolver",
    "OptimisticChoice",
    "Outcome",
    "Promise",
    "Row",
    "SquaredRadius",
    "is_repeated",
]
