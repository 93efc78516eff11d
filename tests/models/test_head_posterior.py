"""The posterior of heads: updates, confidence sets and saved tensors, against dense algebra."""

from dataclasses import replace

import pytest
import torch

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.models import MultiheadFunction, MultitaskDataset
from gfucb.models.copy_on_write import CopyOnWriteRows
from gfucb.models.head_posterior import (
    UNTRIED_FACTOR,
    HeadPosterior,
    PosteriorFit,
)
from gfucb.models.posterior_set import PosteriorEllipsoid, PosteriorSet
from gfucb.models.posterior_state import posterior_state, restored_posterior

TASKS, DIM, LINEAR = 5, 4, 2
FULL = DIM + LINEAR
NOISE, EXPLORED = 0.3, 1.7
NAMES = ("covariances", "moments", "mean", "mean_covariance", "exploration", "tries", "heads")


def normal(name: str, *shape: int) -> torch.Tensor:
    draws = random_stream(0, "head posterior", name)
    return torch.randn(*shape, generator=draws, dtype=torch.float64)


def unchanged(inputs: torch.Tensor) -> torch.Tensor:
    return inputs


def prior() -> HeadPosterior:
    """With a mean that is neither zero nor known."""
    square = normal("mean covariance", DIM, DIM)
    empty = HeadPosterior.empty(
        TASKS,
        DIM,
        LINEAR,
        mean_variances=torch.ones(DIM, dtype=torch.float64),
        exploration_scale=EXPLORED,
        noise=NOISE,
    )
    return replace(empty, mean=normal("mean", DIM), mean_covariance=square @ square.T)


# Task 3 has no samples, and task 1 has several in a row.
SAMPLED = torch.tensor([1, 1, 0, 4, 1, 0, 2, 1, 4, 2, 1, 0])
FEATURES = normal("features", len(SAMPLED), FULL)
TARGETS = normal("targets", len(SAMPLED))


def posterior() -> HeadPosterior:
    return prior().given(FEATURES, SAMPLED, TARGETS)


def dense_heads() -> torch.Tensor:
    heads = torch.zeros(TASKS, FULL, dtype=torch.float64)
    for task in range(TASKS):
        own = FEATURES[SAMPLED == task, :DIM]
        precision = torch.eye(DIM, dtype=torch.float64) + own.T @ own
        moment = own.T @ TARGETS[SAMPLED == task] + prior().mean
        heads[task, :DIM] = torch.linalg.solve(precision, moment)
    return heads


def dense_covariances() -> torch.Tensor:
    """In units of the noise variance, [task, feature, feature]."""
    dense = torch.zeros(TASKS, FULL, FULL, dtype=torch.float64)
    for task in range(TASKS):
        own, linear = FEATURES[SAMPLED == task].split([DIM, LINEAR], dim=1)
        inverse = torch.linalg.inv(torch.eye(DIM, dtype=torch.float64) + own.T @ own)
        dense[task, :DIM, :DIM] = inverse + inverse @ prior().mean_covariance @ inverse
        linear_gram = torch.eye(LINEAR, dtype=torch.float64) + linear.T @ linear
        dense[task, DIM:, DIM:] = EXPLORED * torch.linalg.inv(linear_gram)
    return dense


def assert_same(found: HeadPosterior, expected: HeadPosterior, **tolerances: float) -> None:
    for name in NAMES:
        one, other = getattr(found, name), getattr(expected, name)
        if isinstance(one, CopyOnWriteRows):
            one, other = one.whole, other.whole
        torch.testing.assert_close(one, other, **tolerances)


class TestUpdates:
    @pytest.mark.parametrize("size", [1, 2, 5, len(SAMPLED)])
    def test_in_batches_of_any_size_give_the_posterior_of_all_samples(self, size):
        found = prior()
        for rows in torch.arange(len(SAMPLED)).split(size):
            found = found.after(FEATURES[rows], SAMPLED[rows], TARGETS[rows])
        assert_same(found, posterior(), rtol=1e-10, atol=1e-12)

    def test_follow_many_samples_without_drift(self):
        """A thousand updates of one covariance, in which all samples are large."""
        tasks = torch.zeros(1000, dtype=torch.int64)
        features, targets = 30 * normal("many", 1000, FULL), normal("many targets", 1000)
        found = prior().after(features, tasks, targets)
        assert_same(found, prior().given(features, tasks, targets), rtol=1e-6, atol=1e-12)

    def test_change_no_posterior_that_exists(self):
        before, start = posterior(), posterior()
        after = before.after(FEATURES[:4], SAMPLED[:4], TARGETS[:4])
        after = after.after(FEATURES[4:6], SAMPLED[4:6], TARGETS[4:6])
        assert_same(before, start, rtol=0, atol=0)
        assert not torch.equal(after.heads[1], before.heads[1])

    def test_of_a_task_leave_the_other_heads(self):
        before = posterior()
        after = before.after(FEATURES[:2], torch.tensor([3, 3]), TARGETS[:2])
        others = [0, 1, 2, 4]
        assert torch.equal(after.heads[others], before.heads[others])
        assert torch.equal(after.covariances.whole[others], before.covariances.whole[others])
        assert not torch.equal(after.heads[3], before.heads[3])

    def test_without_samples_change_nothing(self):
        none = torch.zeros(0, dtype=torch.int64)
        after = posterior().after(FEATURES[none], none, TARGETS[none])
        assert_same(after, posterior(), rtol=0, atol=0)


class TestMoments:
    def test_heads_are_posterior_means_and_zero_for_linear_features(self):
        torch.testing.assert_close(posterior().heads, dense_heads())
        torch.testing.assert_close(posterior().heads[3, :DIM], prior().mean)

    def test_widths_are_variances_of_values(self):
        tasks, features = torch.tensor([1, 3, 1]), normal("candidates", 3, 6, FULL)
        expected = torch.einsum("raf,rfg,rag->ra", features, dense_covariances()[tasks], features)
        torch.testing.assert_close(posterior().squared_widths(features, tasks), expected)
        every = torch.arange(TASKS)
        features = normal("all tasks", TASKS, 2, FULL)
        expected = torch.einsum("raf,rfg,rag->ra", features, dense_covariances(), features)
        torch.testing.assert_close(posterior().squared_widths(features, every), expected)

    def test_covariances_are_applied_to_directions(self):
        tasks, directions = torch.tensor([4, 0]), normal("directions", 2, 3, FULL)
        torch.testing.assert_close(
            posterior().applied(directions, tasks), directions @ dense_covariances()[tasks]
        )

    def test_rewards_only_reduce_variances(self):
        features = normal("candidates", TASKS, 6, FULL)
        every = torch.arange(TASKS)
        before, after = prior(), posterior()
        shrunk = after.squared_widths(features, every) <= before.squared_widths(features, every)
        assert bool(shrunk.all())


class TestRarelyTriedActions:
    """The first linear feature is the constant of an action that was tried once of 1,000 times."""

    def rare(self) -> HeadPosterior:
        return replace(posterior(), tries=torch.tensor([1.0, 999.0]).double())

    def test_have_further_variance(self):
        added = self.rare().untried_variances
        assert float(added[0]) == pytest.approx(UNTRIED_FACTOR * EXPLORED) and float(added[1]) == 0
        covariances = dense_covariances()
        covariances[:, DIM, DIM] += added[0]
        tasks, features = torch.tensor([1, 3]), normal("candidates", 2, 6, FULL)
        expected = features @ covariances[tasks]
        torch.testing.assert_close(self.rare().applied(features, tasks), expected)
        widths = self.rare().squared_widths(features, tasks)
        torch.testing.assert_close(widths, (expected * features).sum(-1))

    def test_are_counted_with_every_sample(self):
        features = normal("counted", 5, FULL)
        features[:3, DIM] = 0
        after = self.rare().after(features, torch.zeros(5, dtype=torch.int64), TARGETS[:5])
        assert after.tries.tolist() == [3.0, 1004.0]
        many = replace(self.rare(), tries=torch.tensor([4.0, 999.0]).double())
        assert not many.untried_variances.any()

    @pytest.mark.parametrize(("num_actions", "lacks"), [(5, True), (20, False)])
    def test_of_many_actions_need_fewer_tries(self, num_actions, lacks):
        """After five samples for each action one may lack a try, but not if actions are many."""
        tries = torch.full((num_actions,), 5.0).double()
        tries[0] = 1.0
        found = replace(posterior(), tries=tries)
        assert bool(found.missing_tries.any()) == lacks

    def test_reach_as_far_as_their_width(self):
        ellipsoid, directions = PosteriorEllipsoid(self.rare(), 2.0), torch.zeros(TASKS, FULL)
        directions = directions.double()
        directions[4] = normal("one", FULL)
        row, task = directions[4].view(1, 1, FULL), torch.tensor([4])
        farthest = ellipsoid.farthest_heads(directions)
        gain = ((farthest - ellipsoid.centers) * directions).sum()
        expected = (2.0 * ellipsoid.squared_widths(row, task)).sqrt().squeeze()
        torch.testing.assert_close(gain, expected)
        assert ellipsoid.squared_distance(farthest) == pytest.approx(2.0)


class TestFurtherFeatures:
    """Features of a function that counts as known, after the linear features."""

    def test_add_to_means_and_not_to_widths(self):
        heads = torch.cat([posterior().heads, normal("known", TASKS, 3)], dim=1)
        wider = replace(posterior(), known_heads=heads)
        tasks, features = torch.tensor([1, 3]), normal("candidates", 2, 6, FULL + 3)
        own = features[..., :FULL]
        widths = posterior().squared_widths(own, tasks)
        torch.testing.assert_close(wider.squared_widths(features, tasks), widths)
        torch.testing.assert_close(
            wider.applied(features, tasks)[..., :FULL], posterior().applied(own, tasks)
        )
        ellipsoid = PosteriorEllipsoid(wider, 2.0)
        expected = (features * heads[tasks][:, None]).sum(-1)
        torch.testing.assert_close(ellipsoid.center_values(features, tasks), expected)
        farthest = ellipsoid.farthest_heads(normal("directions", TASKS, FULL + 3))
        torch.testing.assert_close(farthest[:, FULL:], heads[:, FULL:])
        assert ellipsoid.squared_distance(farthest) == pytest.approx(2.0)


class TestEllipsoid:
    RADIUS = 2.5

    def ellipsoid(self) -> PosteriorEllipsoid:
        return PosteriorEllipsoid(posterior(), self.RADIUS)

    def test_factors_are_those_of_the_inverse_covariances(self):
        factors = self.ellipsoid().cholesky
        torch.testing.assert_close(factors, factors.tril())
        torch.testing.assert_close(factors @ factors.mT, torch.linalg.inv(dense_covariances()))

    def test_distance_is_that_of_the_dense_covariances(self):
        heads = dense_heads() + normal("steps", TASKS, FULL)
        heads[2] = self.ellipsoid().centers[2]  # a task without a step has no distance
        steps = heads - dense_heads()
        expected = torch.einsum("tf,tfg,tg->", steps, torch.linalg.inv(dense_covariances()), steps)
        assert self.ellipsoid().squared_distance(heads) == pytest.approx(float(expected))
        assert self.ellipsoid().squared_distance(self.ellipsoid().centers) == 0

    def test_farthest_heads_are_on_the_boundary_and_have_the_largest_sum(self):
        ellipsoid, directions = self.ellipsoid(), normal("directions", TASKS, FULL)
        directions[1] = 0
        farthest = ellipsoid.farthest_heads(directions)
        assert ellipsoid.squared_distance(farthest) == pytest.approx(self.RADIUS)
        assert torch.equal(farthest[1], ellipsoid.centers[1])
        reach = torch.einsum("tf,tfg,tg->", directions, dense_covariances(), directions)
        gain = float((directions * (farthest - ellipsoid.centers)).sum())
        assert gain == pytest.approx(float((self.RADIUS * reach).sqrt()))

    def test_one_row_reaches_its_upper_confidence_bound(self):
        ellipsoid, directions = self.ellipsoid(), torch.zeros(TASKS, FULL).double()
        directions[4] = normal("one", FULL)
        row, task = directions[4].view(1, 1, FULL), torch.tensor([4])
        bound = (
            ellipsoid.center_values(row, task)
            + (self.RADIUS * ellipsoid.squared_widths(row, task)).sqrt()
        )
        value = (ellipsoid.farthest_heads(directions)[4] * directions[4]).sum()
        torch.testing.assert_close(value, bound.squeeze())

    @pytest.mark.parametrize("radius", [0.0, RADIUS])
    def test_without_radius_or_direction_the_center_is_farthest(self, radius):
        ellipsoid = PosteriorEllipsoid(posterior(), radius)
        directions = torch.full((TASKS, FULL), 1.0 if radius == 0 else 0.0).double()
        assert torch.equal(ellipsoid.farthest_heads(directions), ellipsoid.centers)


class TestSet:
    def confidence_set(self, squared_radius: float = 2.5) -> PosteriorSet:
        data = MultitaskDataset(TASKS, torch.Size([FULL]), torch.float64)
        data.append(SAMPLED, FEATURES, TARGETS)
        center = MultiheadFunction(unchanged, posterior().heads, 0.5)
        return PosteriorSet(center, data, squared_radius, posterior=posterior())

    def test_contains_its_farthest_member_and_nothing_beyond(self):
        found = self.confidence_set()
        center = found.center
        farthest = found.ellipsoid().farthest_heads(normal("directions", TASKS, FULL))
        assert found.contains(center)
        assert found.contains(center.with_heads(farthest))
        beyond = center.heads + 1.001 * (farthest - center.heads)
        assert not found.contains(center.with_heads(beyond))
        assert self.confidence_set(0.0).contains(center)
        assert not self.confidence_set(0.0).contains(center.with_heads(farthest))

    def test_has_one_representation(self):
        found = self.confidence_set()
        other = MultiheadFunction(lambda x: 2 * x, found.center.heads, 0.5)
        assert not found.contains(other)
        with pytest.raises(InvalidInputError, match="one representation"):
            found.ellipsoid(other.representation)
        assert found.ellipsoid(found.center.representation).squared_radius == 2.5

    def test_predicts_means_and_unit_variances(self):
        tasks, chosen = torch.tensor([1, 3]), normal("chosen", 2, FULL)
        found = self.confidence_set().head_prediction(chosen, tasks)
        torch.testing.assert_close(found.mean, 0.5 + (chosen * dense_heads()[tasks]).sum(1))
        expected = torch.einsum("rf,rfg,rg->r", chosen, dense_covariances()[tasks], chosen)
        torch.testing.assert_close(found.variance, expected)


class TestState:
    def state(self) -> dict[str, torch.Tensor]:
        return posterior_state(PosteriorFit(unchanged, posterior(), 7.0))

    def test_is_restored_exactly_and_shares_no_memory(self):
        state = self.state()
        offset, found = restored_posterior(state, TASKS, torch.device("cpu"))
        for tensor in state.values():
            tensor.zero_()
        assert_same(found, posterior(), rtol=0, atol=0)
        assert (offset, found.noise, found.exploration_scale) == (7.0, NOISE, EXPLORED)
        assert found.squared_radius == posterior().squared_radius

    @pytest.mark.parametrize("position", [1, 2, 3])
    def test_negative_numbers_are_refused(self, position):
        state = self.state()
        state["posterior.numbers"][position] = -1.0
        with pytest.raises(InvalidInputError, match=r"posterior\.numbers"):
            restored_posterior(state, TASKS, torch.device("cpu"))

    @pytest.mark.parametrize("name", ["covariances", "exploration"])
    def test_covariances_that_are_none_are_refused(self, name):
        state = self.state()
        state[f"posterior.{name}"] = -state[f"posterior.{name}"]
        with pytest.raises(InvalidInputError, match="no positive diagonal"):
            restored_posterior(state, TASKS, torch.device("cpu"))

    def test_has_the_memory_layout_of_saved_tensors(self):
        """In another layout products round differently, and a restored agent decides otherwise."""
        for name, tensor in self.state().items():
            assert tensor.is_contiguous(), name

    def test_another_number_of_tasks_is_refused(self):
        with pytest.raises(InvalidInputError, match="must have the shape"):
            restored_posterior(self.state(), TASKS + 1, torch.device("cpu"))
