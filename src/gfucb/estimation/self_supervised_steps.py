"""Self-supervised steps on a pool of inputs, for one network and for a stack of networks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gfucb.core.errors import InvalidInputError
from gfucb.core.memory import keep_freed_memory
from gfucb.core.protocols import SelfSupervision
from gfucb.core.shards import ONE_SHARD, Shards, totals
from gfucb.estimation.shard_gradients import sum_gradients
from gfucb.estimation.views import SeededViews, Views
from gfucb.models.nn.adamw import FusedAdamW
from gfucb.models.nn.cuda_graphs import CudaGraphed
from gfucb.models.nn.global_draws import is_known, training_randomness_from
from gfucb.models.nn.networks import body_of
from gfucb.models.nn.seeded_layers import seed_names, seeded_layers
from gfucb.models.nn.stacked import NetworkStack
from gfucb.models.representations import NeuralRepresentation, module_dtype, readable, train_on

# Of Adam, as in the fit.
EPSILON = 1e-5
# The inputs of a step are drawn with replacement from pools larger than this.
MANY_INPUTS = 4096


def train_network(
    method: SelfSupervision,
    representation: NeuralRepresentation,
    pool: Tensor,
    generator: torch.Generator,
    num_steps: int,
    *,
    batch_size: int | None = None,
    shards: Shards = ONE_SHARD,
) -> NeuralRepresentation:
    """A copy of the network after steps on a pool of inputs [item, *input].

    If the pool is too small, its inputs have no views, or the steps diverge, it is the network
    itself. The batches are those of the method for this pool, unless `batch_size` is given. With
    several shards each has batches of its own pool, and the steps follow the mean gradient of those
    whose pool is large enough.
    """
    trained = representation.copy()
    networks = _OneNetwork(trained.module)
    size = method.batch_size_for(len(pool)) if batch_size is None else batch_size
    steps = _Steps.of(method, networks, [pool], [generator], num_steps, size)
    (num_ready,) = totals(shards, float(steps is not None))
    if not num_ready:
        return representation
    if steps is None:
        _follow(method, networks.weights, num_steps, shards)
    else:
        steps.shards, steps.num_ready = shards, int(num_ready)
        steps.run()
    is_finite = all(bool(p.isfinite().all()) for p in trained.module.parameters())
    return trained if is_finite else representation


def _follow(
    method: SelfSupervision, weights: Sequence[Tensor], num_steps: int, shards: Shards
) -> None:
    """Make the steps of the other shards."""
    optimiser = _optimiser(method, weights, capturable=weights[0].is_cuda)
    for _ in range(num_steps):
        optimiser.zero_grad()
        sum_gradients(weights, shards)
        optimiser.step()


def _optimiser(
    method: SelfSupervision, weights: Sequence[Tensor], *, capturable: bool
) -> FusedAdamW:
    return FusedAdamW(
        weights,
        learning_rate=method.learning_rate,
        weight_decay=method.weight_decay,
        epsilon=EPSILON,
        capturable=capturable,
    )


def train_stack(
    method: SelfSupervision,
    stack: NetworkStack,
    pools: Sequence[Tensor],
    generators: Sequence[torch.Generator],
    num_steps: int,
    *,
    batch_size: int | None = None,
) -> None:
    """Train the networks of a stack in place, each as `train_network` does.

    One pool [item, *input] and one generator for each network.
    """
    sizes = [
        method.batch_size_for(len(pool)) if batch_size is None else batch_size for pool in pools
    ]
    for size in sorted(set(sizes)):
        ready = [r for r, pool in enumerate(pools) if sizes[r] == size <= len(pool)]
        if not ready:
            continue
        trained = stack.taken(ready)
        steps = _Steps.of(
            method,
            _Stacked(trained),
            [pools[replica] for replica in ready],
            [generators[replica] for replica in ready],
            num_steps,
            size,
        )
        if steps is None:
            continue
        steps.run()
        weights = trained.weights.values()
        is_finite = torch.stack([w.detach().isfinite().flatten(1).all(1) for w in weights]).all(0)
        if finite := is_finite.nonzero().flatten().tolist():
            stack.put([ready[index] for index in finite], trained.taken(finite))


class _Networks(ABC):
    """The networks that a step trains: inputs [replica, n, *input] -> [replica, n, output]."""

    def __init__(self, module: nn.Module) -> None:
        self.module, self.body = module, body_of(module)

    @property
    @abstractmethod
    def weights(self) -> list[Tensor]:
        """Those that are trained."""

    @abstractmethod
    def set_seeds(self, seeds: Tensor) -> None:
        """Set the seeds [replica, layer] of the layers that draw at random."""

    @abstractmethod
    def outputs(self, inputs: Tensor) -> Tensor:
        """Outputs [replica, n, output] of the body, with gradients."""

    @abstractmethod
    def views(self, views: SeededViews, inputs: Tensor, seeds: Tensor) -> Tensor:
        """Views of inputs [replica, n, *input] with seeds [replica, n]."""


class _OneNetwork(_Networks):
    @property
    def weights(self) -> list[Tensor]:
        return [p for p in self.body.parameters() if p.requires_grad]

    def set_seeds(self, seeds: Tensor) -> None:
        for layer, seed in zip(seeded_layers(self.module), seeds[0], strict=True):
            layer.seed = seed

    def outputs(self, inputs: Tensor) -> Tensor:
        train_on(self.module, inputs.shape[1])
        return self.body(inputs[0]).unsqueeze(0)

    def views(self, views: SeededViews, inputs: Tensor, seeds: Tensor) -> Tensor:
        return views.seeded(inputs[0], seeds[0]).unsqueeze(0)


class _Stacked(_Networks):
    def __init__(self, stack: NetworkStack) -> None:
        super().__init__(stack.module)
        self.stack = stack
        self.names = {name for name, _ in self.body.named_parameters()}
        self.buffer_names = {name for name, _ in self.body.named_buffers()}

    @property
    def weights(self) -> list[Tensor]:
        named = self.stack.weights.items()
        return [w for name, w in named if name in self.names and w.requires_grad]

    def set_seeds(self, seeds: Tensor) -> None:
        names = seed_names(self.module)
        self.stack.buffers |= {name: seeds[:, index] for index, name in enumerate(names)}

    def outputs(self, inputs: Tensor) -> Tensor:
        self.module.train()
        weights = {n: w for n, w in self.stack.weights.items() if n in self.names}
        buffers = {n: b for n, b in self.stack.buffers.items() if n in self.buffer_names}

        def one(weights: dict[str, Tensor], buffers: dict[str, Tensor], x: Tensor) -> Tensor:
            return torch.func.functional_call(self.body, (weights, buffers), (x,))

        return torch.func.vmap(one, randomness="different")(weights, buffers, inputs)

    def views(self, views: SeededViews, inputs: Tensor, seeds: Tensor) -> Tensor:
        return torch.func.vmap(views.seeded)(inputs, seeds)


class _Steps:
    """The steps of one training.

    Args:
        method: the settings and the loss.
        networks: those that are trained, in place.
        views: of the inputs.
        pools: the inputs of each network, [item, *input], at least a batch.
        generators: one for each network; the only sources of randomness.
        num_steps: how many.
        batch_size: inputs of a step.
    """

    def __init__(
        self,
        method: SelfSupervision,
        networks: _Networks,
        views: Views,
        pools: Sequence[Tensor],
        generators: Sequence[torch.Generator],
        num_steps: int,
        batch_size: int,
    ) -> None:
        self.method, self.networks, self.views = method, networks, views
        self.num_steps, self.batch_size = num_steps, batch_size
        self.generators, self.device = generators, pools[0].device
        self.pools = nn.utils.rnn.pad_sequence(list(pools), batch_first=True)
        self.sizes = [len(pool) for pool in pools]
        self.batch: tuple[Tensor, ...] = ()
        self.optimiser = _optimiser(method, networks.weights, capturable=self.device.type == "cuda")
        self.shards: Shards = ONE_SHARD
        self.num_ready = 1

    @classmethod
    def of(
        cls,
        method: SelfSupervision,
        networks: _Networks,
        pools: Sequence[Tensor],
        generators: Sequence[torch.Generator],
        num_steps: int,
        batch_size: int,
    ) -> _Steps | None:
        """The steps, or None if there is nothing to train or to train on."""
        views = method.views_for(pools[0])
        if views is None or not num_steps or not networks.weights:
            return None
        if min(len(pool) for pool in pools) < batch_size:
            return None
        return cls(method, networks, views, pools, generators, num_steps, batch_size)

    def run(self) -> None:
        """Make all steps."""
        keep_freed_memory()
        # Views that draw from a generator, and exchanges, cannot be part of a CUDA graph.
        is_graphed = isinstance(self.views, SeededViews) and self.shards.count == 1
        step = CudaGraphed(self._step, self.device) if is_graphed else self._step
        plans = [
            [part.to(self.device) for part in self._plan(size, generator)]
            for size, generator in zip(self.sizes, self.generators, strict=True)
        ]
        stacked = [torch.stack(parts, dim=1) for parts in zip(*plans, strict=True)]
        randomness = training_randomness_from(
            self.generators[0],
            self.networks.module,
            others_draw=not (is_known(self.views) and is_known(self.method)),
            waits_for_others=self.shards.count > 1,
        )
        with randomness:
            for batch in zip(*stacked, strict=True):
                self._set_batch(batch)
                step()
        self.networks.module.eval()

    def _plan(self, size: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Items [step, n], seeds of their views [step, 2 n] and of the layers [step, layer]."""
        steps, batch_size = self.num_steps, self.batch_size
        if size > MANY_INPUTS:  # repetitions are rare, and a permutation for each step takes long
            items = torch.randint(size, (steps, batch_size), generator=generator)
        else:
            items = torch.rand(steps, size, generator=generator).argsort(1)[:, :batch_size]
        seeds = torch.randint(2**62, (steps, 2 * batch_size), generator=generator)
        num_layers = len(seeded_layers(self.networks.module))
        return items, seeds, torch.randint(2**62, (steps, num_layers), generator=generator)

    def _set_batch(self, batch: tuple[Tensor, ...]) -> None:
        # A CUDA graph reads its batch from the same memory in every step.
        if self.batch:
            for buffer, values in zip(self.batch, batch, strict=True):
                buffer.copy_(values)
            return
        self.batch = tuple(values.clone() for values in batch)
        self.networks.set_seeds(self.batch[2])

    def _step(self) -> None:
        items, seeds, _ = self.batch
        replicas = torch.arange(len(items), device=self.device)[:, None]
        inputs = readable(self.pools[replicas, items], module_dtype(self.networks.module))
        with torch.no_grad():
            views = self._views_of(torch.cat([inputs, inputs], dim=1), seeds)
        first, second = self.networks.outputs(views).chunk(2, dim=1)
        self.optimiser.zero_grad()
        loss = self.method.loss(first, second).sum()
        (loss if self.shards.count == 1 else loss / self.num_ready).backward()
        sum_gradients(self.networks.weights, self.shards)
        self.optimiser.step()

    def _views_of(self, inputs: Tensor, seeds: Tensor) -> Tensor:
        if isinstance(self.views, SeededViews):
            return self.networks.views(self.views, inputs, seeds)
        pairs = zip(inputs, self.generators, strict=True)
        return torch.stack([self._checked(own, generator) for own, generator in pairs])

    def _checked(self, inputs: Tensor, generator: torch.Generator) -> Tensor:
        """Views of the user's own, if they have the shape of the inputs."""
        views = self.views(inputs, generator)
        if not isinstance(views, Tensor) or views.shape != inputs.shape:
            found = list(views.shape) if isinstance(views, Tensor) else type(views).__name__
            raise InvalidInputError(
                f"views must return inputs of the shape {list(inputs.shape)}, got {found}"
            )
        return views.to(inputs)
