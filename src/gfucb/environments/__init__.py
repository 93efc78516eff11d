"""Worlds: functions from the round to what happens in it."""

from gfucb.environments.image_bandit import ImageBandit
from gfucb.environments.images import LabelledImages, fetch_mnist, load_digits, load_mnist
from gfucb.environments.synthetic_bandit import SyntheticBandit, finite_bandit, linear_bandit

__all__ = [
    "ImageBandit",
    "LabelledImages",
    "SyntheticBandit",
    "fetch_mnist",
    "finite_bandit",
    "linear_bandit",
    "load_digits",
    "load_mnist",
]
