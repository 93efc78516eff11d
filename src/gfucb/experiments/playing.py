"""From the config of a run to an agent and the rows it will give."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gfucb.contracts import BanditAgent, EpisodicAgent, Row
from gfucb.experiments.agent_table import AGENTS, make_agent
from gfucb.experiments.config import RunConfig, make_world
from gfucb.experiments.mdp_agents import MDP_AGENTS, make_mdp_agent
from gfucb.experiments.mdp_config import MDPRunConfig, make_mdp_world
from gfucb.experiments.mdp_runner import play_episodes
from gfucb.experiments.runner import play

AnyRunConfig = RunConfig | MDPRunConfig
AnyAgent = BanditAgent | EpisodicAgent
Rows = Callable[[int, float], Iterator[Row]]


def prepare(config: AnyRunConfig, data_dir: str | None = None) -> tuple[AnyAgent, Rows]:
    """The agent of a run, and its rows as a function of rounds done and regret so far."""
    if isinstance(config, MDPRunConfig):
        return _prepare_mdp(config)
    world = make_world(config.world, config.seed, data_dir)
    agent = make_agent(config.agent, world, config.seed)

    def rows(rounds_done: int, cumulative_regret: float) -> Iterator[Row]:
        return play(
            agent,
            world,
            num_rounds=config.num_rounds,
            reads_truth=AGENTS[config.agent.name].reads_truth,
            rounds_done=rounds_done,
            cumulative_regret=cumulative_regret,
        )

    return agent, rows


def _prepare_mdp(config: MDPRunConfig) -> tuple[AnyAgent, Rows]:
    world = make_mdp_world(config.world, config.seed)
    agent = make_mdp_agent(config.agent, world, config.seed)

    def rows(rounds_done: int, cumulative_regret: float) -> Iterator[Row]:
        return play_episodes(
            agent,
            world,
            num_episodes=config.num_rounds,
            reads_truth=MDP_AGENTS[config.agent.name].reads_truth,
            episodes_done=rounds_done,
            cumulative_regret=cumulative_regret,
        )

    return agent, rows


def relative_cost(agent: str) -> int:
    """Roughly how much longer an agent runs than others."""
    if agent in AGENTS:
        return AGENTS[agent].relative_cost
    return 10 if agent in ("independent-mdp", "lsvi-ucb-learned") else 1


def description(agent: str) -> str:
    """What an agent is, or nothing if it is not known."""
    entry = AGENTS.get(agent) or MDP_AGENTS.get(agent)
    return entry.description if entry else ""
