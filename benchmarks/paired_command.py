"""The command of a benchmark on paired seeds: make the missing runs, write results and tables."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from benchmarks.paired import Job, make_runs, stored_runs, write_table

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Column:
    """A column of a table in a document."""

    title: str
    cell: Callable[[Mapping[str, Any]], str]


@dataclass(frozen=True)
class Comparison:
    """What a benchmark computes.

    Attributes:
        name: of its files.
        description: for the help text.
        seeds: how many, from --first-seed on.
        jobs: all runs of the seeds, with the settings of the command line.
        play: the function of one job; a process must be able to import it.
        tables: from stored runs to the rows of each table; tables have the names of their
            marks in documents.
        columns: of these tables in documents.
    """

    name: str
    description: str
    seeds: int
    jobs: Callable[[Sequence[int], argparse.Namespace], list[Job]]
    play: Callable[[argparse.Namespace], Callable[[Job], Mapping[str, Any]]]
    tables: Callable[[Rows], Mapping[str, Rows]]
    columns: Mapping[str, Sequence[Column]]

    def parser(self) -> argparse.ArgumentParser:
        """With the arguments that all of these benchmarks have."""
        parser = argparse.ArgumentParser(description=self.description)
        parser.add_argument("--seeds", type=int, default=self.seeds, help="how many")
        parser.add_argument("--first-seed", type=int, default=0)
        parser.add_argument("--processes", type=int, default=1)
        parser.add_argument("--runs", type=Path, default=Path(f"runs/{self.name}.jsonl"))
        parser.add_argument("--only-stored", action="store_true", help="tables of all stored runs")
        parser.add_argument("--json", type=Path, default=None, help="file of the results")
        parser.add_argument("--page", type=Path, default=None, help="document to write tables to")
        return parser

    def main(self, choices: argparse.Namespace) -> None:
        """Make the runs that are missing; write what was asked for."""
        torch.set_num_threads(1)
        seeds = range(choices.first_seed, choices.first_seed + choices.seeds)
        if choices.only_stored:
            lines = stored_runs(choices.runs)
        else:
            jobs = self.jobs(seeds, choices)
            lines = make_runs(self.play(choices), jobs, choices.runs, choices.processes)
        tables = self.tables(lines)
        for name, rows in tables.items():
            print(name, *rows, sep="\n  ")
        if choices.json is not None:
            from gfucb.runs.provenance import current_provenance
            from gfucb.runs.text_files import write_json

            content = {"tables": tables, "runs": lines, "provenance": current_provenance()}
            write_json(choices.json, content)
        if choices.page is not None:
            for name, rows in tables.items():
                write_table(choices.page, name, self.cells(name, rows))

    def cells(self, name: str, rows: Rows) -> list[list[str]]:
        """A table of a document; the first row is the head."""
        columns = self.columns[name]
        body = [[column.cell(row) for column in columns] for row in rows]
        return [[column.title for column in columns], *body]
