"""The built-in environments of the command line, and their settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gfucb.core.protocols import BanditEnvironment
from gfucb.runs.config import EnvironmentConfig
from gfucb.runs.registry import register_environment

if TYPE_CHECKING:
    from gfucb.environments import ImageBandit, LabelledImages, TabularMDPs


@dataclass(frozen=True)
class ImageBanditConfig(EnvironmentConfig):
    """Bandits whose actions are images of digits."""

    name: str = "digits"
    """Which environment; an unknown name lists the known ones."""
    num_tasks: int = 30
    """M, the number of tasks."""
    num_actions: int = 10
    """K, the number of images each task can choose from in a round."""
    reward_map: Literal["permutation", "tenths", "uniform"] = "uniform"
    """Mean reward of a digit. permutation: of 0, 0.1 .. 0.9, with distinct best digits; tenths:
    digit / 10 in all tasks; uniform: drawn from [0, 1]."""
    digits: Literal["iid", "distinct"] = "iid"
    """The K images: independent draws, or K different digits."""
    noise_scale: float = 0.1
    """Standard deviation of the reward noise."""


@dataclass(frozen=True)
class TransformedImageConfig(ImageBanditConfig):
    """Bandits whose rewards depend on a transformation of images."""

    name: str = "transformed-digits"
    """Which environment; an unknown name lists the known ones."""
    transformation: Literal["rotation", "mirroring", "contrast"] = "rotation"
    """What the ten classes are: angles from -45 to 45 degrees, five digits and their mirror
    images, or ten powers of the brightness."""


@dataclass(frozen=True)
class SyntheticBanditConfig(EnvironmentConfig):
    """Bandits with a known representation class, for which confidence sets are exact."""

    name: str = "linear"
    """Which environment; an unknown name lists the known ones."""
    num_tasks: int = 30
    """M, the number of tasks."""
    num_actions: int = 10
    """K, the number of candidates each task can choose from in a round."""
    noise_scale: float = 0.1
    """Standard deviation of the reward noise."""
    input_dim: int = 6
    """Length of an input."""
    feature_dim: int = 2
    """Length of the true representation."""


@dataclass(frozen=True)
class FiniteBanditConfig(SyntheticBanditConfig):
    """Bandits whose true representation is one of a finite class."""

    name: str = "finite"
    """Which environment; an unknown name lists the known ones."""
    num_representations: int = 8
    """Number of representations in the class."""


@dataclass(frozen=True)
class LockConfig(EnvironmentConfig):
    """Combination locks: one action in each stage leads on, the last stage pays."""

    name: str = "lock"
    """Which environment; an unknown name lists the known ones."""
    num_tasks: int = 10
    """M, the number of tasks."""
    num_actions: int = 10
    """A, the number of actions."""
    horizon: int = 5
    """H, the number of stages."""


@dataclass(frozen=True)
class RichLockConfig(LockConfig):
    """Combination locks whose states are observed through a shared random emission."""

    name: str = "rich-lock"
    """Which environment; an unknown name lists the known ones."""
    observation_dim: int = 16
    """Length of an observation."""
    bank_size: int = 16
    """Number of observations of each latent state."""
    noise_scale: float = 0.1
    """Standard deviation of the observation noise."""


@dataclass(frozen=True)
class LinearMDPConfig(LockConfig):
    """Linear MDPs whose true representation is one of a finite class."""

    name: str = "linear-mdp"
    """Which environment; an unknown name lists the known ones."""
    num_states: int = 30
    """S, the number of states."""
    feature_dim: int = 5
    """Length of the true representation."""
    input_dim: int = 20
    """Length of an input."""
    num_representations: int = 64
    """Number of representations in the class."""
    mix: float = 0.0
    """Share of transitions that are not linear in the features; 0 for a linear MDP."""
    noise_scale: float = 0.1
    """Standard deviation of the reward noise."""


@register_environment(
    "digits",
    label="Handwritten digits, 8 by 8",
    description="scikit-learn's 8x8 digits as actions.",
    config=ImageBanditConfig,
)
def digits(config: ImageBanditConfig, seed: int) -> BanditEnvironment:
    """scikit-learn's digits, which need no download."""
    from gfucb.environments import load_digits

    return _image_bandit(load_digits(), config, seed)


@register_environment(
    "mnist",
    label="MNIST digits",
    description="MNIST images as actions; IDX files from --data-dir.",
    config=ImageBanditConfig,
    uses_data_dir=True,
)
def mnist(config: ImageBanditConfig, seed: int, data_dir: str | None) -> BanditEnvironment:
    """MNIST, from the IDX files in `data_dir`."""
    from gfucb.environments import load_mnist

    return _image_bandit(load_mnist(data_dir), config, seed)


@register_environment(
    "transformed-digits",
    label="Transformed digits, 8 by 8",
    description="8x8 digits whose rewards depend on rotation, mirroring or contrast.",
    config=TransformedImageConfig,
)
def transformed_digits(config: TransformedImageConfig, seed: int) -> BanditEnvironment:
    """scikit-learn's digits, with transformations as classes."""
    from gfucb.environments import load_digits, transformed_images

    return _image_bandit(transformed_images(load_digits(), config.transformation), config, seed)


@register_environment(
    "transformed-mnist",
    label="Transformed MNIST digits",
    description="MNIST images whose rewards depend on rotation, mirroring or contrast.",
    config=TransformedImageConfig,
    uses_data_dir=True,
)
def transformed_mnist(
    config: TransformedImageConfig, seed: int, data_dir: str | None
) -> BanditEnvironment:
    """MNIST, with transformations as classes."""
    from gfucb.environments import load_mnist, transformed_images

    data = transformed_images(load_mnist(data_dir), config.transformation)
    return _image_bandit(data, config, seed)


def _image_bandit(data: LabelledImages, config: ImageBanditConfig, seed: int) -> ImageBandit:
    from gfucb.environments import ImageBandit

    return ImageBandit(
        data,
        num_tasks=config.num_tasks,
        num_actions=config.num_actions,
        reward_map=config.reward_map,
        digits=config.digits,
        noise_scale=config.noise_scale,
        seed=seed,
    )


@register_environment(
    "finite",
    label="A finite class of representations",
    description="Synthetic; the true representation is one of a known finite class.",
    config=FiniteBanditConfig,
)
def finite(config: FiniteBanditConfig, seed: int) -> BanditEnvironment:
    """A finite class, for which every step of Algorithm 1 is exact."""
    from gfucb.environments import finite_bandit

    return finite_bandit(
        num_tasks=config.num_tasks,
        num_actions=config.num_actions,
        input_dim=config.input_dim,
        feature_dim=config.feature_dim,
        num_representations=config.num_representations,
        noise_scale=config.noise_scale,
        seed=seed,
    )


@register_environment(
    "linear",
    label="A linear representation",
    description="Synthetic; the true representation is a low-rank matrix.",
    config=SyntheticBanditConfig,
)
def linear(config: SyntheticBanditConfig, seed: int) -> BanditEnvironment:
    """A shared low-rank linear representation."""
    from gfucb.environments import linear_bandit

    return linear_bandit(
        num_tasks=config.num_tasks,
        num_actions=config.num_actions,
        input_dim=config.input_dim,
        feature_dim=config.feature_dim,
        noise_scale=config.noise_scale,
        seed=seed,
    )


@register_environment(
    "lock",
    label="Combination locks",
    description="Combination locks with observed states.",
    kind="episodic",
    config=LockConfig,
)
def lock(config: LockConfig, seed: int) -> TabularMDPs:
    """Combination locks with observed states."""
    from gfucb.environments import tabular_lock

    return tabular_lock(
        horizon=config.horizon,
        num_tasks=config.num_tasks,
        num_actions=config.num_actions,
        seed=seed,
    )


@register_environment(
    "rich-lock",
    label="Combination locks with rich observations",
    description="Combination locks whose observations come from a shared random emission.",
    kind="episodic",
    config=RichLockConfig,
)
def rich_locks(config: RichLockConfig, seed: int) -> TabularMDPs:
    """Combination locks observed through a shared random emission."""
    from gfucb.environments import rich_lock

    return rich_lock(
        horizon=config.horizon,
        num_tasks=config.num_tasks,
        num_actions=config.num_actions,
        observation_dim=config.observation_dim,
        bank_size=config.bank_size,
        noise_scale=config.noise_scale,
        seed=seed,
    )


@register_environment(
    "linear-mdp",
    label="Linear MDPs",
    description="Linear MDPs; the true representation is one of a known finite class.",
    kind="episodic",
    config=LinearMDPConfig,
)
def linear_mdp(config: LinearMDPConfig, seed: int) -> TabularMDPs:
    """Linear MDPs on one of several representations."""
    from gfucb.environments import linear_mdps

    return linear_mdps(
        num_tasks=config.num_tasks,
        horizon=config.horizon,
        num_states=config.num_states,
        num_actions=config.num_actions,
        feature_dim=config.feature_dim,
        input_dim=config.input_dim,
        num_representations=config.num_representations,
        noise_scale=config.noise_scale,
        mix=config.mix,
        seed=seed,
    )
