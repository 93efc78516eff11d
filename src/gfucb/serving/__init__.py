"""Agents that run for months: named tasks, decision ids, a durable log."""

from gfucb.serving.agent import Agent
from gfucb.serving.decision_log import DecisionLog
from gfucb.serving.name_types import register_name_type
from gfucb.serving.named_decision import NamedDecision

__all__ = ["Agent", "DecisionLog", "NamedDecision", "register_name_type"]
