"""From the config of a run to an agent and the rows it will give."""

from __future__ import annotations

from collections.abc import Iterator

from gfucb.core.records import Row
from gfucb.runs.bandit_agents import AGENTS, make_agent
from gfucb.runs.config import RunConfig, make_environment
from gfucb.runs.episodic_agents import EPISODIC_AGENTS, make_episodic_agent
from gfucb.runs.episodic_config import EpisodicRunConfig, make_episodic_environment
from gfucb.runs.loop import play
from gfucb.runs.work import AgentRun

AnyRunConfig = RunConfig | EpisodicRunConfig


def prepare(config: AnyRunConfig, data_dir: str | None = None) -> AgentRun:
    """The agent of a run in its environment."""
    if isinstance(config, EpisodicRunConfig):
        return _prepare_mdp(config)
    environment = make_environment(config.environment, config.seed, data_dir)
    agent = make_agent(config.agent, environment, config.seed)

    def rows(rounds_done: int, cumulative_regret: float) -> Iterator[Row]:
        return play(
            agent,
            environment,
            num_rounds=config.num_rounds,
            reads_truth=AGENTS[config.agent.name].reads_truth,
            rounds_done=rounds_done,
            cumulative_regret=cumulative_regret,
        )

    return AgentRun(agent, rows)


def _prepare_mdp(config: EpisodicRunConfig) -> AgentRun:
    environment = make_episodic_environment(config.environment, config.seed)
    agent = make_episodic_agent(config.agent, environment, config.seed)

    def rows(rounds_done: int, cumulative_regret: float) -> Iterator[Row]:
        return play(
            agent,
            environment,
            num_rounds=config.num_rounds,
            reads_truth=EPISODIC_AGENTS[config.agent.name].reads_truth,
            rounds_done=rounds_done,
            cumulative_regret=cumulative_regret,
        )

    return AgentRun(agent, rows)


def relative_cost(agent: str) -> int:
    """Roughly how much longer an agent runs than others."""
    if agent in AGENTS:
        return AGENTS[agent].relative_cost
    return 10 if agent in ("independent-mdp", "lsvi-ucb-learned") else 1


def description(agent: str) -> str:
    """What an agent is, or nothing if it is not known."""
    entry = AGENTS.get(agent) or EPISODIC_AGENTS.get(agent)
    return entry.description if entry else ""
