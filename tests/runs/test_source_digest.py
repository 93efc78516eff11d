"""Stored runs of code that was changed since are refused."""

from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property, partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

import gfucb
from gfucb.cli.main import main
from gfucb.cli.terminal import summary_table
from gfucb.core.errors import RunDirectoryError
from gfucb.environments import linear_bandit
from gfucb.runs import load_rows
from gfucb.runs.build_run import make_environment
from gfucb.runs.metrics import count_of_seeds, number_of_seeds
from gfucb.runs.registry import default_environment_config
from gfucb.runs.source_digest import source_digest

LOCK = default_environment_config("lock")
SMALL = {"seeds": [0], "num_rounds": 2}


def linucb(environment, seed, alpha=1.0, ridge=1.0):
    return gfucb.linucb(environment.num_tasks, alpha=alpha, ridge=ridge)


def with_alpha(alpha):
    return lambda environment, seed: linucb(environment, seed, alpha)


def small_bandit(seed, noise=0.1):
    sizes = {"num_tasks": 2, "num_actions": 2, "input_dim": 3, "feature_dim": 2}
    return linear_bandit(**sizes, noise_scale=noise, seed=seed)


class Holder:
    def __init__(self, value):
        self.value = value

    @cached_property
    def doubled(self):
        return 2 * self.value


@dataclass(slots=True)
class Settings:
    value: float
    found: list = field(default_factory=list, compare=False)


class Size(Enum):
    SMALL, LARGE = 1.0, 2.0


def by_another_function(value):
    def make(environment, seed):
        return linucb(environment, seed, value)

    return lambda environment, seed: make(environment, seed)


@pytest.mark.parametrize(
    "make",
    [
        with_alpha,
        lambda value: partial(linucb, alpha=value),
        lambda value: partial(with_alpha(value), None),
        lambda value: Holder(value),
        lambda value: Holder({"weights": [torch.full((2,), value)]}),
        lambda value: Holder(torch.full((2,), value, dtype=torch.bfloat16)),
        lambda value: Holder(torch.full((2,), value).to_sparse()),
        lambda value: Holder(np.array([value, None], dtype=object)),
        lambda value: Holder(np.float32(value)),
        lambda value: Holder({"texts": {f"{value}", "other"}}),
        lambda value: Holder(Size(value)),
        Settings,
        lambda value: partial(linucb, Settings(value)),
        by_another_function,
    ],
)
def test_values_that_a_definition_holds_count(make):
    assert source_digest(make(1.0)) == source_digest(make(1.0)) != source_digest(make(2.0))


def test_what_a_run_fills_does_not_count():
    """Otherwise a comparison could not be continued in the same session."""
    for used in (Holder(1.0), Settings(1.0), make_environment(LOCK, 0)):
        before = source_digest(used)
        if isinstance(used, Holder):
            assert used.doubled == 2.0
        elif isinstance(used, Settings):
            used.found.append(3)
        else:
            assert used.optimal_values.size
        assert source_digest(used) == before


def test_values_that_refer_to_themselves_have_a_digest():
    own: list = [1.0]
    own.append(own)
    other = [2.0]
    other.append(other)
    assert source_digest(Holder(own)) != source_digest(Holder(other))


def test_objects_without_a_plain_value_do_not_change_from_process_to_process():
    assert source_digest(Holder(object())) == source_digest(Holder(object()))
    assert source_digest(Holder([print, Holder])) == source_digest(Holder([print, Holder]))


@pytest.mark.parametrize("package", [pd, pl])
def test_tables_count_by_their_names_and_values(package):
    def digest(name, *values):
        return source_digest(Holder(package.DataFrame({name: values, "text": ["a", None]})))

    assert digest("a", 1, 2) == digest("a", 1, 2)
    assert len({digest("a", 1, 2), digest("a", 1, 3), digest("b", 1, 2)}) == 3
    assert source_digest(Holder(package.Series([1, 2]))) != source_digest(
        Holder(package.Series([1, 3]))
    )


def test_the_index_of_a_table_counts_and_random_generators_do_not():
    tables = [pd.DataFrame({"a": [1, 2]}, index=[0, last]) for last in (1, 2)]
    assert source_digest(Holder(tables[0])) != source_digest(Holder(tables[1]))
    used = np.random.default_rng(0)
    used.random()
    assert source_digest(Holder(used)) == source_digest(Holder(np.random.default_rng(0)))


def test_a_comparison_refuses_runs_of_an_agent_with_other_values(tmp_path):
    gfucb.compare(small_bandit, {"own": with_alpha(0.5)}, out=tmp_path, **SMALL)
    gfucb.compare(small_bandit, {"own": with_alpha(0.5)}, out=tmp_path, **SMALL)
    with pytest.raises(RunDirectoryError, match=r"source_digest.*its code, or what it holds"):
        gfucb.compare(small_bandit, {"own": with_alpha(2.0)}, out=tmp_path, **SMALL)


def test_a_comparison_refuses_runs_in_another_environment_of_one_class(tmp_path):
    gfucb.compare(small_bandit(0), ["linucb"], out=tmp_path, **SMALL)
    with pytest.raises(RunDirectoryError, match=r"source_digest.*its code, or what it holds"):
        gfucb.compare(small_bandit(0, noise=0.3), ["linucb"], out=tmp_path, **SMALL)


PLUGIN = """
import gfucb
from gfucb.runs import register_agent

@register_agent("versioned", label="versioned", description="One of two versions.")
def versioned(config, environment, seed):
    return gfucb.linucb(environment.num_tasks, alpha=ALPHA)
"""


@pytest.mark.usefixtures("restored_registries")
def test_runs_of_a_plugin_that_was_changed_are_refused(tmp_path, capsys):
    plugin, out = tmp_path / "versioned_agent.py", tmp_path / "runs"
    small = ["--plugin", str(plugin), "--preset", "finite", "--num-rounds", "2"]

    def run(agent, seed):
        words = ["--agent.name", agent, "--seed", str(seed), "--out", str(out / f"{agent}{seed}")]
        main(["run", *small, *words])

    plugin.write_text(PLUGIN.replace("ALPHA", "0.5"))
    run("versioned", 0)
    plugin.write_text(PLUGIN.replace("ALPHA", "2.0"))
    run("uniform", 0)  # this agent is not of the plugin
    assert set(load_rows(str(out))["agent"]) == {"uniform", "versioned"}
    with pytest.raises(SystemExit):
        run("versioned", 0)
    assert "holds a run with plugins.versioned_agent.py" in capsys.readouterr().err
    run("versioned", 1)  # has no run yet, but a table would mix the versions
    with pytest.raises(RunDirectoryError, match="another version of the plugin versioned_agent"):
        load_rows(out)


def test_agents_with_different_numbers_of_seeds_are_said_to_have_them():
    rows = pd.DataFrame({"agent": ["a", "b", "b"], "seed": [0, 0, 1]})
    assert count_of_seeds(number_of_seeds(rows)) == "1 to 2 seeds"
    assert count_of_seeds(number_of_seeds(rows[1:])) == "2 seeds"
    table = pd.DataFrame({"agent": ["a", "b"], "seeds": [1, 2], "regret": 0.5})
    columns = ("regret_half_width", "regret_per_decision", "late_regret", "cpu_seconds")
    shown = summary_table(table.assign(**dict.fromkeys(columns, 1.0)), num_rounds=2)
    assert "interval over 1 to 2 seeds" in shown.caption


def test_lambdas_count_without_the_call_around_them():
    first = [lambda seed: (seed + 1, "é")]
    again, other = dict(a=(lambda seed: (seed + 1, "é"))), [lambda seed: (seed + 2, "é")]
    assert source_digest(first[0]) == source_digest(again["a"]) != source_digest(other[0])
    assert source_digest(first[0]) != source_digest(lambda round_: (round_ + 1, "é"))
    longer = [
        lambda seed: [
            seed + number for number in range(3) if number != seed
        ]
    ]  # fmt: skip
    assert source_digest(longer[0]) == source_digest(
        lambda seed: [
            seed + number for number in range(3) if number != seed
        ]
    )  # fmt: skip
