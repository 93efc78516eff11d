"""One shard of an agent: the agent of some tasks, whose fits are those of all."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor, nn

from gfucb.bandits.default_learner import DefaultLearner
from gfucb.bandits.gfucb import GFUCB
from gfucb.bandits.learner import Learner
from gfucb.core.action_sets import ActionSets, ItemFeatures
from gfucb.core.errors import InvalidInputError
from gfucb.core.records import Decision
from gfucb.core.shards import OneShard, Shards, in_any
from gfucb.estimation.variable_projection import VariableProjection
from gfucb.exploration.last_layer import LastLayer

# What a shard says that refuses because another one does.
OTHER_SHARD = "another shard refuses these inputs"


class Shard:
    """The tasks of one process, with the representation of all.

    All shards call the methods together and in the same order, each with the rows of its own tasks,
    maybe none. Task t of all tasks is task t // count of the shard t % count.

    Args:
        agent: an agent for the tasks of this shard, without data. All shards have the same settings
            but for the number of tasks.
        shards: the exchange with the other shards.
    """

    def __init__(self, agent: GFUCB, shards: Shards) -> None:
        self.agent, self.shards = agent, shards
        require_divisible(agent)
        if not isinstance(shards, OneShard):
            agent.network_learner.divide(shards)
            if isinstance(agent.learner, DefaultLearner):
                agent.learner.divide(shards)

    def require_readable(self, inputs: Tensor) -> None:
        """Refuse inputs [n, *input] that the network of any shard does not read, in all shards.

        A shard that refused them alone, later, would leave the others waiting for it.
        """
        self._read(inputs.to(self.agent.device))

    def decide_readable(self, candidates: Tensor, tasks: Tensor, available: Tensor) -> Decision:
        """`decide`, with candidates that any shard does not read refused by all of them."""
        action_sets = self._action_sets(candidates, tasks, available)
        return self.agent.decide_sets(replace(action_sets, cache=self._read(action_sets.items)))

    def _read(self, inputs: Tensor) -> ItemFeatures | None:
        """The features of inputs [n, *input], if no shard refuses its own."""
        refusal = features = None
        try:
            features = self._features_of(inputs)
        except InvalidInputError as error:
            refusal = error
        if in_any(self.shards, refusal is not None):
            raise refusal or InvalidInputError(OTHER_SHARD)
        return features

    def _features_of(self, inputs: Tensor) -> ItemFeatures | None:
        own = self.agent.learner
        learner = own.for_inputs(inputs) if isinstance(own, DefaultLearner) else own
        if not isinstance(learner, Learner):
            return None
        learner.representation_class.validate_inputs(inputs)
        if not len(inputs):
            return None
        # An embedding may not know all ids, and a network may overflow.
        found = ItemFeatures(learner.fit_state(inputs)[0].representation)
        found.features(inputs)
        return found

    def decide(self, candidates: Tensor, tasks: Tensor, available: Tensor) -> Decision:
        """Choose an action in every row, as `GFUCB.decide` does for the rows of all shards.

        Args:
            candidates: [row, action, *input]; the shape of an action's inputs counts without rows.
            tasks: numbers in this shard, [row].
            available: [row, action] of booleans.
        """
        return self.agent.decide_sets(self._action_sets(candidates, tasks, available))

    def _action_sets(self, candidates: Tensor, tasks: Tensor, available: Tensor) -> ActionSets:
        device = self.agent.device
        return ActionSets(candidates.to(device), tasks.to(device), available.to(device))

    def observe(self, decision: Decision, rewards: Tensor) -> None:
        """Learn from rewards [row], as `GFUCB.observe` does from the rewards of all shards."""
        self.agent.observe(decision, rewards)


def require_divisible(agent: GFUCB) -> None:
    """Refuse an agent whose fits or decisions are no sums over tasks."""
    learner = agent.network_learner
    fit = learner.fit
    if not isinstance(fit, VariableProjection) or fit.stopping is not None:
        raise InvalidInputError(
            f"shards need fit=VariableProjection() without stopping, got {type(fit).__name__}"
        )
    if type(agent.action_selector) is not LastLayer:
        raise InvalidInputError(
            "shards need action_selector=LastLayer(), "
            f"got {type(agent.action_selector).__name__}, which needs the data of all tasks"
        )
    if learner.penalty.norm_bound is not None:
        raise InvalidInputError("shards have no head_norm_bound; leave it out")
    if not learner.keeping.keeps_all:
        raise InvalidInputError(
            "shards keep all samples; pass neither forgetting nor max_samples_per_task"
        )
    if learner.num_samples:
        raise InvalidInputError("a shard starts from an agent without data; build a new one")
    _require_no_batch_statistics(agent)


def _require_no_batch_statistics(agent: GFUCB) -> None:
    module = getattr(agent.representation_class, "module", None)
    layers = module.modules() if isinstance(module, nn.Module) else ()
    for layer in layers:
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            raise InvalidInputError(
                f"the network has a {type(layer).__name__}, whose batch would be that of one "
                "shard; use LayerNorm or GroupNorm"
            )
