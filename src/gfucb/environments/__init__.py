"""Environments: bandits and episodic MDPs whose rounds and episodes derive from (seed, index)."""

from gfucb.core.discrete_actions import with_actions
from gfucb.environments.bsuite_problems import deep_sea, discounting_chain, umbrella_chain
from gfucb.environments.combination_lock import combination_lock
from gfucb.environments.emissions import Emission
from gfucb.environments.image_bandit import ImageBandit
from gfucb.environments.images import LabelledImages, fetch_mnist, load_digits, load_mnist
from gfucb.environments.linear_mdp import LinearMDPs, linear_mdps
from gfucb.environments.locks import rich_lock, tabular_lock
from gfucb.environments.rich_observations import RichObservationMDPs
from gfucb.environments.synthetic_bandit import SyntheticBandit, finite_bandit, linear_bandit
from gfucb.environments.tabular_episode import TabularEpisode
from gfucb.environments.tabular_mdp import TabularMDPs, tabular_mdps
from gfucb.environments.transformed_images import transformed_images
from gfucb.environments.wheel_bandit import WheelBandit

__all__ = [
    "Emission",
    "ImageBandit",
    "LabelledImages",
    "LinearMDPs",
    "RichObservationMDPs",
    "SyntheticBandit",
    "TabularEpisode",
    "TabularMDPs",
    "WheelBandit",
    "combination_lock",
    "deep_sea",
    "discounting_chain",
    "fetch_mnist",
    "finite_bandit",
    "linear_bandit",
    "linear_mdps",
    "load_digits",
    "load_mnist",
    "rich_lock",
    "tabular_lock",
    "tabular_mdps",
    "transformed_images",
    "umbrella_chain",
    "with_actions",
]
