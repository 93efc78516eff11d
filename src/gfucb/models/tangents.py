"""A fit linearised in its heads and weights: the Gram matrix of its gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gfucb.core.errors import InvalidInputError
from gfucb.core.features import features_of
from gfucb.core.linalg import cholesky_solve, ridge_cholesky
from gfucb.core.random import random_stream
from gfucb.core.validation.settings import validate_count, validate_seed
from gfucb.models.gradients import network_of, num_weights, weight_gradients
from gfucb.models.heads import HeadStatistics
from gfucb.models.multihead import MultiheadFunction
from gfucb.models.representations import NeuralRepresentation

# Restored Gram matrices are positive definite up to this share of their largest number.
ROUNDING = 1e-3
# Samples whose products [sample, sketch, feature] are formed at once.
COUPLING_CHUNK = 4096


@dataclass(frozen=True)
class WeightSketch:
    """Gradients projected to `dim` numbers, which preserves inner products in expectation.

    Weight p is added, with a random sign, to coordinate p modulo `dim`: a count sketch (Charikar,
    Chen and Farach-Colton 2002) with a fixed hash. It costs one addition per weight and stores no
    matrix. Its transpose spans a random subspace of the weights, and a sketched gradient is the
    exact derivative along that subspace.
    """

    dim: int | None = 64
    """Length of a sketch; None uses every weight."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.dim is not None:
            validate_count(self.dim, "the dim of a sketch")
        validate_seed(self.seed)

    def length(self, weights: int) -> int:
        """The length of a sketch of this many weights."""
        return weights if self.dim is None else self.dim

    def of(self, function: MultiheadFunction, inputs: Tensor, tasks: Tensor) -> Tensor:
        """Sketched gradients of f_task(x) in the weights, float64: [sample, sketch]."""
        weights = num_weights(network_of(function))
        dim, signs = self.length(weights), self._signs(weights, inputs.device)
        sketches = torch.zeros(len(inputs), dim, dtype=torch.float64, device=inputs.device)
        if weights:
            for chunk, gradients in weight_gradients(function, inputs, tasks):
                padded = nn.functional.pad(gradients * signs, (0, -weights % dim))
                sketches[chunk] = padded.unflatten(1, (-1, dim)).sum(1).to(torch.float64)
        return sketches

    def lifted(self, phi: NeuralRepresentation, coordinates: Tensor) -> list[Tensor]:
        """The step of the weights with these coordinates [sketch], shaped like the parameters."""
        weights = num_weights(phi)
        repeats = -(-weights // len(coordinates)) if weights else 0
        step = coordinates.repeat(repeats)[:weights] * self._signs(weights, coordinates.device)
        steps = []
        for parameter in phi.module.parameters():
            part, step = step[: parameter.numel()], step[parameter.numel() :]
            steps.append(part.view_as(parameter).to(parameter.dtype))
        return steps

    def _signs(self, weights: int, device: torch.device) -> Tensor:
        if self.dim is None:
            return torch.ones(weights, device=device)
        generator = random_stream(self.seed, "weight sketch", self.dim)
        return (torch.randint(2, (weights,), generator=generator) * 2.0 - 1).to(device)

    def statistics(
        self, function: MultiheadFunction, inputs: Tensor, tasks: Tensor, features: Tensor | None
    ) -> TangentStatistics:
        """Statistics of samples [n, *input] of tasks [n], see `TangentStatistics.of`."""
        return TangentStatistics.of(self, function, inputs, tasks, features)

    def restored(self, tensors: Mapping[str, Tensor], heads: HeadStatistics) -> TangentStatistics:
        """The statistics that have these `tensors`, if some data have both them and `heads`."""
        found = TangentStatistics(self, tensors["shared"], tensors["couplings"])
        shared, sizes = found.shared, found.shared.diagonal()
        # Without data of the weights there is nothing to factor.
        if not bool(shared.any() or found.couplings.any()):
            return found
        head_ridge = ROUNDING * float(heads.grams.abs().max()) + 1e-9
        try:
            whitened = torch.linalg.solve_triangular(
                ridge_cholesky(heads.grams, head_ridge),
                found.couplings.transpose(1, 2),
                upper=False,
            )
            explained = torch.einsum("tks,tkr->sr", whitened, whitened)
            ridge_cholesky(shared - explained, ROUNDING * float(sizes.max()))
        except InvalidInputError as error:
            raise InvalidInputError(
                "the Gram matrix of 'shared', 'couplings' and the statistics of the heads in the "
                "state is not positive definite; the state was changed"
            ) from error
        return found


@dataclass(frozen=True, eq=False)
class TangentStatistics:
    """The blocks of the joint Gram matrix that involve the weights.

    To first order f_i(x) changes by <u, step of the weights> + <phi(x), step of head i>, with u
    the (sketched) gradient of f_i(x) in the weights. The blocks are sums over the data:

    Attributes:
        sketch: the projection of the gradients.
        shared: A = sum of u u^T over all tasks, [sketch, sketch].
        couplings: B_i = sum of u phi^T, [task, sketch, feature].
    """

    sketch: WeightSketch
    shared: Tensor
    couplings: Tensor

    @classmethod
    def of(
        cls,
        sketch: WeightSketch,
        function: MultiheadFunction,
        inputs: Tensor,
        tasks: Tensor,
        features: Tensor | None = None,
    ) -> TangentStatistics:
        """Statistics of samples [n, *input] of tasks [n], linearised at `function`.

        `features` [n, feature] are those of the inputs, if they are at hand.
        """
        if features is None:
            features = features_of(function.representation, inputs)
        sketches = sketch.of(function, inputs, tasks)
        couplings = features.new_zeros(function.num_tasks, sketches.shape[1], features.shape[1])
        chunks = (part.split(COUPLING_CHUNK) for part in (sketches, features, tasks))
        for u, phi, task in zip(*chunks, strict=True):
            couplings = couplings.index_add(0, task, u[:, :, None] * phi[:, None, :])
        return cls(sketch, sketches.T @ sketches, couplings)

    @classmethod
    def empty(cls, sketch: WeightSketch, function: MultiheadFunction) -> TangentStatistics:
        """The statistics of no data."""
        dim = sketch.length(num_weights(network_of(function)))
        num_tasks, feature_dim = function.heads.shape
        shared = function.heads.new_zeros(dim, dim)
        return cls(sketch, shared, shared.new_zeros(num_tasks, dim, feature_dim))

    def without_data(self) -> TangentStatistics:
        """The statistics of no data, in the same shapes."""
        zeros = torch.zeros_like(self.shared), torch.zeros_like(self.couplings)
        return TangentStatistics(self.sketch, *zeros)

    def with_tasks(self, count: int) -> TangentStatistics:
        """The same with `count` more tasks, which have no data."""
        more = self.couplings.new_zeros(count, *self.couplings.shape[1:])
        return TangentStatistics(self.sketch, self.shared, torch.cat([self.couplings, more]))

    def plus(self, other: TangentStatistics) -> TangentStatistics:
        """Statistics of both data sets together, the sum."""
        return TangentStatistics(
            self.sketch, self.shared + other.shared, self.couplings + other.couplings
        )

    def tensors(self) -> dict[str, Tensor]:
        """The statistics as named tensors."""
        return {"shared": self.shared, "couplings": self.couplings}


class Arrowhead:
    """The Gram matrix of the linearised fit, factored: one shared block, one for each head.

        [ A + weight_ridge I   B_1   B_2  ... ]
        [ B_1^T         D_1            ]      D_i = sum of phi phi^T + ridge I
        [ B_2^T               D_2      ]

    Eliminating the heads leaves S = A + weight_ridge I - sum_i B_i D_i^-1 B_i^T for the weights,
    so a gradient (u, phi) of task i has the squared width

        phi^T D_i^-1 phi  +  r^T S^-1 r,    r = u - B_i D_i^-1 phi:

    the uncertainty of the head of task i, and the uncertainty of the representation given the data
    of all tasks. O(M (k^3 + s k^2 + s^2 k) + s^3) once, O(k^2 + s k + s^2) per gradient.

    The ridge on the weights limits how far they move. It is in units of the data: with
    `weight_ridge` = 1 and no data, weights and head change the value of a typical sample equally.

    A task with one sample has no information on the weights: its head is parallel to the features
    of that sample, and for features of constant norm no weight changes the value. Such tasks do not
    count for the unit. If all tasks are such, the weights do not move.

    Args:
        heads, tangents: statistics of heads and of weights.
        counts: samples of each task, [task].
        ridge: on the heads.
        weight_ridge: on the weights, in units of the data.
    """

    def __init__(
        self,
        heads: HeadStatistics,
        tangents: TangentStatistics,
        counts: Tensor,
        *,
        ridge: float,
        weight_ridge: float,
    ) -> None:
        is_informative = counts > 1
        self.has_weight_information = bool(is_informative.any())
        if not self.has_weight_information:
            tangents = tangents.without_data()
        self.head_factors = heads.cholesky(ridge)  # [task, feature, feature]
        self.couplings = tangents.couplings
        gradient_size = float(tangents.shared.trace())
        feature_size = float(heads.grams.diagonal(dim1=-2, dim2=-1)[is_informative].sum())
        ratio = gradient_size / feature_size if feature_size > 0 and gradient_size > 0 else 1.0
        self.ridge, self.weight_ridge = ridge, weight_ridge * ridge * ratio
        # L_i^-1 B_i^T; its square is subtracted from the shared block when heads are eliminated.
        whitened = torch.linalg.solve_triangular(
            self.head_factors, self.couplings.transpose(1, 2), upper=False
        )
        explained = torch.einsum("tks,tkr->sr", whitened, whitened)
        self.shared_factor = ridge_cholesky(tangents.shared - explained, self.weight_ridge)
        self.tangents, self.heads = tangents, heads

    def whiten(self, sketches: Tensor, features: Tensor, tasks: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors whose squared norms are the two squared widths, of head and representation.

        Shapes: [row, action, sketch], [row, action, feature], [row] ->
        [row, action, feature], [row, action, sketch]. For the sum of several values, the head
        vectors of each task add up, and so do the representation vectors of all tasks.
        """
        factors = self.head_factors[tasks]
        known = cholesky_solve(factors[:, None], features)
        own = torch.linalg.solve_triangular(
            factors, features.transpose(1, 2), upper=False
        ).transpose(1, 2)
        rest = sketches - torch.einsum("esk,eak->eas", self.couplings[tasks], known)
        shared = torch.linalg.solve_triangular(
            self.shared_factor, rest.flatten(0, 1).T, upper=False
        ).T.unflatten(0, rest.shape[:2])
        return own, shared

    def steps(self, own: Tensor, shared: Tensor) -> tuple[Tensor, Tensor]:
        """G^-1 g: steps of heads [task, feature] and of weights [sketch].

        `own` [task, feature] and `shared` [sketch] are sums of whitened vectors of a gradient g.
        """
        weights = torch.linalg.solve_triangular(
            self.shared_factor.T, shared[:, None], upper=True
        ).squeeze(1)
        pull = torch.einsum("tsk,s->tk", self.couplings, weights)
        heads = torch.linalg.solve_triangular(
            self.head_factors.transpose(1, 2), own.unsqueeze(-1), upper=True
        ).squeeze(-1)
        return heads - cholesky_solve(self.head_factors, pull), weights

    def squared_lengths(self, features: Tensor, sketches: Tensor, tasks: Tensor) -> Tensor:
        """g^T G g of gradients (sketch, feature), [row, action, ...] -> [row, action].

        The squared distance, on the data and with the ridges, of a step along the gradient.
        """
        seen = (features @ self.heads.grams[tasks] * features).sum(-1)
        seen = seen + self.ridge * features.square().sum(-1)
        crossed = torch.einsum("eas,esk,eak->ea", sketches, self.couplings[tasks], features)
        moved = (sketches @ self.tangents.shared * sketches).sum(-1)
        moved = moved + self.weight_ridge * sketches.square().sum(-1)
        return seen + 2 * crossed + moved
