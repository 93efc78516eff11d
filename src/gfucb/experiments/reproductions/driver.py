"""What every reproduction has: a claim, pieces that can be resumed, a figure and verdicts.

A folder gets rows.csv, figure.png, figure.svg, verdict.md, verdict.json and provenance.json. A
finished piece is not made again, and provenance says which code and machine finished it.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from gfucb.agents.saving import read_state, write_state
from gfucb.contracts import Row
from gfucb.errors import InvalidInputError, RunFolderError
from gfucb.experiments.figures import save
from gfucb.experiments.ratios import device_name
from gfucb.experiments.records import provenance_now
from gfucb.experiments.reproductions.folder import Folder, csv_of, json_of, write


@dataclass(frozen=True)
class Options:
    """What can be asked of a reproduction.

    Attributes:
        seeds: which seeds; None for those of the claim.
        quick: a small version, under a minute: it shows that everything runs, and claims nothing.
        data_dir: where data files lie, for those that need some.
        device: where networks live.
    """

    seeds: tuple[int, ...] | None = None
    quick: bool = False
    data_dir: str | None = None
    device: str = "cpu"


@dataclass(frozen=True)
class Verdict:
    """One sentence of the claim, and what was measured."""

    claim: str
    measured: str
    holds: bool
    margin: str = ""


@dataclass(frozen=True)
class Piece:
    """A part that can be made alone: a name, and a pure function that gives its rows.

    Where several processes make pieces, the function is sent to one: a `functools.partial` of a
    function of a module.

    Attributes:
        resumes: a piece that takes hours: its function is given the path of a `Progress` that it
            keeps and from which it goes on.
    """

    name: str
    make: Callable[..., Sequence[Row]]
    resumes: bool = False


@dataclass(frozen=True)
class Progress:
    """How far a piece has come: the rows it has, and what it needs to go on."""

    rows: Sequence[Row]
    state: dict[str, Tensor]
    facts: dict[str, str]

    def write(self, path: Path) -> None:
        """Replace what is kept at `path`, all at once."""
        write_state(path, self.state, {**self.facts, "rows": json.dumps(self.rows)})

    @classmethod
    def read(cls, path: Path) -> Progress:
        """What is kept at `path`."""
        state, facts = read_state(path)
        if "rows" not in facts:
            raise RunFolderError(f"{path} is not the progress of a piece; remove it to start over")
        return cls(json.loads(facts.pop("rows")), state, facts)


@dataclass(frozen=True)
class Reproduction:
    """A claim and how it is checked.

    Attributes:
        claim: the claim in a sentence.
        pieces: from the options to the pieces.
        figure: from all rows to the picture.
        verdicts: from all rows to what holds.
        config: settings worth recording, from the options.
        choices: what was chosen where the claim leaves something open, in Markdown, no numbers
            that are measured.
        table: from all rows to more numbers for the page, in Markdown.
    """

    claim: str
    pieces: Callable[[Options], Sequence[Piece]]
    figure: Callable[[pd.DataFrame], Figure]
    verdicts: Callable[[pd.DataFrame], Sequence[Verdict]]
    config: Callable[[Options], dict[str, Any]] = field(default=lambda options: {})
    choices: str = ""
    table: Callable[[pd.DataFrame], str] = field(default=lambda rows: "")


def reproduce(
    name: str,
    reproduction: Reproduction,
    out: Path,
    options: Options,
    *,
    advance: Callable[[int], None] = lambda done: None,
    processes: int = 1,
    only: str = "*",
    only_what_is_there: bool = False,
) -> list[Verdict]:
    """Make what is missing in `out`, then rows, figure and verdicts; `advance` counts pieces.

    Pieces are made by so many `processes` at a time, of one thread each; results are the same for
    any number. Made are those whose names match the pattern `only`; while others are missing
    there is no verdict. With `only_what_is_there` nothing is made, the page says of how many
    pieces it speaks, and those under way count as far as they have come.
    """
    if processes < 1:
        raise InvalidInputError(f"processes must be at least 1, got {processes}")
    pieces = reproduction.pieces(options)
    wanted = [piece for piece in pieces if fnmatchcase(piece.name, only)]
    if not wanted:
        raise InvalidInputError(
            f"no piece of {name} matches {only!r}; there are {len(pieces)}, from "
            f"{pieces[0].name} to {pieces[-1].name}"
        )
    torch.set_num_threads(1)
    asked = {"name": name, **asdict(options), "config": reproduction.config(options)}
    folder = Folder.open(out, asked)
    already = sum(piece.name in folder.finished for piece in pieces)
    advance(already)
    if not only_what_is_there:
        for count in _make_and_sign(folder, wanted, options, processes):
            advance(already + count)
        if not folder.finished.issuperset(piece.name for piece in pieces):
            return []
    return _told(name, reproduction, folder, options, [piece.name for piece in pieces])


def _make_and_sign(
    folder: Folder, wanted: Sequence[Piece], options: Options, processes: int
) -> Iterator[int]:
    """Make what is missing of the pieces and say who did; yield how many there are by then."""
    begin, earlier, made = _cpu_seconds(), folder.made, list[str]()
    finished = folder.finished
    missing = [piece for piece in wanted if piece.name not in finished]
    if not missing:
        return
    maker = _maker(options)

    def sign() -> None:
        seconds = round(_cpu_seconds() - begin, 1)
        folder.sign(earlier, maker | {"pieces": made, "cpu_seconds": seconds})

    for piece in _make_all(folder, missing, processes):
        made.append(piece.name)
        sign()
        yield len(made)
    sign()  # the seconds of other processes are known when these have ended


def _told(
    name: str,
    reproduction: Reproduction,
    folder: Folder,
    options: Options,
    names: Sequence[str],
) -> list[Verdict]:
    """Rows, figure and verdicts of what is there of the pieces with these names."""
    finished = folder.finished
    there = [piece for piece in names if piece in finished]
    if not there:
        raise RunFolderError(f"there is no finished piece in {folder.path}")
    kept = {piece: folder.progress(piece) for piece in names if piece not in finished}
    begun = {piece: Progress.read(path).rows for piece, path in kept.items() if path.exists()}
    gathered = folder.gather(there, begun)
    rows, note = gathered.table(), _note(len(there), len(begun), len(names))
    try:
        figure, verdicts = reproduction.figure(rows), list(reproduction.verdicts(rows))
        save(figure, folder.path / "figure")
    except (KeyError, IndexError, ValueError) as error:
        if not note:
            raise
        raise RunFolderError(f"{folder.path} has too few pieces for a figure: {note}") from error
    folder.keep(gathered)
    folder.write("verdict.json", json_of([asdict(verdict) for verdict in verdicts]))
    folder.write("verdict.md", verdict_page(name, reproduction.claim, verdicts, options, note))
    return verdicts


def _maker(options: Options) -> dict[str, Any]:
    """Code, versions and machine of this call."""
    device = {} if options.device == "cpu" else {"device": device_name(options.device)}
    return provenance_now() | device


def _make_all(folder: Folder, pieces: Sequence[Piece], processes: int) -> Iterator[Piece]:
    """Make pieces, each written as soon as it is there; yield each then."""
    if processes == 1:
        for piece in pieces:
            make(folder, piece)
            yield piece
        return
    # Forked processes would inherit torch's threads in whatever state they are.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, torch.set_num_threads, (1,)) as pool:
        futures = {pool.submit(make, folder, piece): piece for piece in pieces}
        try:
            for future in as_completed(futures):
                future.result()
                yield futures[future]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def make(folder: Folder, piece: Piece) -> None:
    """Make a piece and write it to its folder, all at once."""
    kept = folder.progress(piece.name)
    write(folder.piece(piece.name), csv_of(piece.make(kept) if piece.resumes else piece.make()))
    kept.unlink(missing_ok=True)


def _note(finished: int, begun: int, pieces: int) -> str:
    if finished == pieces:
        return ""
    under_way = f"; {begun} more are under way and count as far as they have come" if begun else ""
    return f"*Made of {finished} of {pieces} pieces{under_way}.*"


def _cpu_seconds() -> float:
    """Of this process and of those it has started and seen end."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def verdict_page(
    name: str, claim: str, verdicts: Iterable[Verdict], options: Options, note: str = ""
) -> str:
    """The verdicts as a page of text."""
    lines = [f"# {name}", "", claim, ""]
    if note:
        lines += [note, ""]
    if options.quick:
        lines += ["*A quick run: it shows that everything works, and claims nothing.*", ""]
    lines += ["| claim | measured | holds | margin |", "|---|---|---|---|"]
    for verdict in verdicts:
        answer = "yes" if verdict.holds else "**no**"
        lines.append(f"| {verdict.claim} | {verdict.measured} | {answer} | {verdict.margin} |")
    flags = " --quick" if options.quick else ""
    lines += ["", f"Made by `gfucb reproduce {name}{flags} --out FOLDER`.", ""]
    return "\n".join(lines)
