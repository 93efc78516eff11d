"""Latent classes of transitions: one step of expectation maximisation, and the evidence.

A transition of pair x in group g (a task and a stage) belongs to class j with probability
phi_j(x). Class j has in group g a distribution mu_gj of next states, with a symmetric Dirichlet
prior, and a mean reward, with a normal prior. mu and means are integrated out ("collapsed"): there
are many of them, each with few transitions. phi is a softmax regression on the inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln

from gfucb.episodic.class_data import ClassData
from gfucb.episodic.distinct_rows import Floats
from gfucb.episodic.latent_classes import log_softmax, log_sum

# Parameter of the Dirichlet prior on next states, for each state: a class leads to few states.
CONCENTRATION = 0.1
# Variance of the mean rewards of classes, as a share of the variance of rewards.
REWARD_SHARE = 0.3
# Penalty on the squared weights of the softmax regression.
WEIGHT_PENALTY = 0.3
# The evidence falls by this times log(n) for each weight. Laplace's approximation has 0.5; many
# weights of nearly certain classes are not determined by the data.
WEIGHT_COST = 0.25
SMALLEST_VARIANCE = 1e-9


@dataclass(frozen=True, eq=False)
class ClassModel:
    """The fit of some number of classes to data.

    Attributes:
        data: the transitions.
        design: coordinates of the inputs and a constant, [pair, coordinate].
        weights: of the softmax regression, [coordinate, class].
        shares: the probability of each class for each row, given the transition, [row, class].
        noise: the variance of rewards within a class.
        score: the log likelihood before the last step, each transition predicted from the others.
    """

    data: ClassData
    design: Floats
    weights: Floats
    shares: Floats
    noise: float
    score: float = -np.inf

    @classmethod
    def from_weights(
        cls, data: ClassData, design: Floats, weights: Floats, noise: float | None
    ) -> ClassModel:
        """The model in which shares are phi."""
        shares = np.exp(log_softmax(design @ weights))[data.pairs]
        known = _reward_variance(data) if noise is None else noise
        return cls(data, design, weights, shares, known)

    @property
    def num_classes(self) -> int:
        """The number of classes."""
        return int(self.weights.shape[1])

    @property
    def log_features(self) -> Floats:
        """Logarithms of phi, [pair, class]."""
        return log_softmax(self.design @ self.weights)

    @property
    def pair_shares(self) -> Floats:
        """Expected numbers of transitions of each class, [pair, class]."""
        return self.data.by_pair(self.data.counts[:, None] * self.shares)

    def step(self, temperature: float = 1.0) -> ClassModel:
        """One step: shares given the classes of all *other* transitions, then the regression.

        A temperature above 1 flattens the shares.
        """
        joint, noise = self._log_joint()
        score = float(self.data.counts @ log_sum(joint))
        shares = np.exp(log_softmax(joint / temperature))
        return self.with_shares(shares, 0.5 * (self.noise + noise), score)

    def with_shares(
        self, shares: Floats, noise: float, score: float = -np.inf, newton_steps: int = 1
    ) -> ClassModel:
        """The model with these shares, and the regression fitted to them."""
        updated = replace(self, shares=shares, noise=noise, score=score)
        weights = regress(self.design, updated.pair_shares, self.weights, newton_steps)
        return replace(updated, weights=weights)

    def iterate(self, steps: int) -> ClassModel:
        """At most so many steps; fewer once the score hardly rises."""
        model = self
        for step in range(steps):
            previous, model = model.score, model.step()
            if step > 4 and model.score - previous < 1e-4 * self.data.num_samples:
                break
        return model

    def _log_joint(self) -> tuple[Floats, float]:
        """Logarithms of p(class, transition | all others), [row, class]; variance of rewards."""
        data, shares = self.data, self.shares
        goes_on = data.goes_on
        weighted = data.counts[:, None] * shares
        of_outcome = data.by_outcome(weighted * goes_on)[data.outcomes]
        of_group = data.by_group(weighted * goes_on)[data.groups]
        vocabulary = data.num_next[data.groups][:, None]
        # Without the transition itself, "CVB0" of Asuncion et al. (2009).
        others, all_others = of_outcome - shares * goes_on, of_group - shares * goes_on
        transition = np.log(np.maximum(others, 0.0) + CONCENTRATION)
        transition -= np.log(np.maximum(all_others, 0.0) + CONCENTRATION * vocabulary)
        prior = self.noise / _mean_variance(data)
        center = data.rewards.sum() / data.num_samples
        mean = (data.rewards / data.counts)[:, None]
        number = data.by_group(weighted)
        total = data.by_group(shares * data.rewards[:, None])
        rest = np.maximum(number[data.groups] - shares, 0.0) + prior
        means = (total[data.groups] - shares * mean + prior * center) / rest
        variance = self.noise * (1 + 1 / rest)
        squares = (data.squares / data.counts)[:, None] - 2 * means * mean + means**2
        reward = -0.5 * squares / variance - 0.5 * np.log(variance)
        joint = self.log_features[data.pairs] + transition * goes_on + reward
        return np.asarray(joint), self._residual_variance(number, total, prior, center)

    def _residual_variance(
        self, number: Floats, total: Floats, prior: float, center: float
    ) -> float:
        """The variance of rewards around the means of their classes."""
        data = self.data
        means = ((total + prior * center) / (number + prior))[data.groups]
        squares = data.squares[:, None] - 2 * means * data.rewards[:, None]
        squares += data.counts[:, None] * means**2
        return max(
            float((self.shares * squares).sum() / data.num_samples), 1e-4 * _mean_variance(data)
        )

    def shares_without_inputs(self) -> Floats:
        """`shares` if only the frequencies of classes were known of a pair, [row, class]."""
        joint = self._log_joint()[0] - self.log_features[self.data.pairs]
        frequencies = log_softmax(np.log((self.data.counts @ self.shares) + 1.0))
        return np.exp(log_softmax(joint + frequencies))

    def evidence(self) -> float:
        """A lower bound of the log evidence, with mu and mean rewards integrated out.

        It is the criterion for the number of classes: `score` grows with that number, because
        classes come to agree with single outcomes.
        """
        data, shares = self.data, self.shares
        weighted = data.counts[:, None] * shares
        bound = dirichlet_evidence(
            data.by_outcome(weighted * data.goes_on),
            data.by_group(weighted * data.goes_on),
            data.num_next,
        )
        bound += float((weighted * (self.log_features[data.pairs] - np.log(shares + 1e-300))).sum())
        bound += self._reward_evidence(weighted)
        bound -= 0.5 * WEIGHT_PENALTY * float((self.weights**2).sum())
        num_weights = len(self.weights) * (self.num_classes - 1)  # one class is redundant
        return bound - WEIGHT_COST * num_weights * float(np.log(data.num_samples))

    def _reward_evidence(self, weighted: Floats) -> float:
        data = self.data
        center = data.rewards.sum() / data.num_samples
        number = data.by_group(weighted)
        total = data.by_group(self.shares * data.rewards[:, None]) - number * center
        prior = self.noise / _mean_variance(data)
        squares = data.squares.sum() - data.num_samples * center**2
        squares -= (total**2 / (number + prior)).sum()
        logs = data.num_samples * np.log(self.noise) + np.log(1 + number / prior).sum()
        return float(-0.5 * squares / self.noise - 0.5 * logs)


def dirichlet_evidence(outcomes: Floats, totals: Floats, num_next: Floats) -> float:
    """Logarithm of the probability of counts [outcome, class] with totals [group, class].

    It is the sum of the logarithms of one-step-ahead predictions, in any order.
    """
    prior = CONCENTRATION * num_next[:, None]
    # log Gamma is convex and true counts are integers: between these, the chord is a lower bound of
    # the expectation. Its value at the expected count would be far too low for small counts.
    whole = np.floor(outcomes)
    below = gammaln(CONCENTRATION + whole)
    found = below + (outcomes - whole) * np.log(CONCENTRATION + whole) - gammaln(CONCENTRATION)
    return float(found.sum() + (gammaln(prior) - gammaln(prior + totals)).sum())


def _reward_variance(data: ClassData) -> float:
    mean = data.rewards.sum() / data.num_samples
    variance = float(data.squares.sum() / data.num_samples - mean**2)
    return max(variance, SMALLEST_VARIANCE, 1e-12 * mean**2)


def _mean_variance(data: ClassData) -> float:
    """The prior variance of the mean rewards of classes."""
    return REWARD_SHARE * _reward_variance(data)


def regress(design: Floats, targets: Floats, weights: Floats, steps: int) -> Floats:
    """Softmax regression on targets [n, class] that need not add up to 1: Newton's method.

    Each class has a step of its own, as in one-against-rest regressions; a step that does not
    improve the penalised likelihood is halved.
    """
    numbers = targets.sum(axis=1)
    used = numbers > 0
    design, targets, numbers = design[used], targets[used], numbers[used]

    def objective(values: Floats) -> float:
        fit = float((targets * log_softmax(design @ values)).sum())
        return fit - 0.5 * WEIGHT_PENALTY * float((values**2).sum())

    best = objective(weights)
    for _ in range(steps):
        phi = np.exp(log_softmax(design @ weights))
        gradient = design.T @ (targets - numbers[:, None] * phi) - WEIGHT_PENALTY * weights
        curvature = (numbers[:, None] * phi * (1 - phi)).T[:, :, None]
        hessians = design.T @ (curvature * design)
        hessians += WEIGHT_PENALTY * np.eye(design.shape[1])
        step = np.linalg.solve(hessians, gradient.T[..., None])[..., 0].T
        improved = False
        for halvings in range(7):
            value = objective(weights + step / 2**halvings)
            if value > best:
                weights, best, improved = weights + step / 2**halvings, value, True
                break
        if not improved:
            break
    return weights
