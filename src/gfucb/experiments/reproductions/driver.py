"""What every reproduction has: a claim, pieces that can be resumed, a figure and verdicts.

A folder gets rows.csv, figure.png, figure.svg, verdict.md, verdict.json and provenance.json; while
it is being made, each finished piece stands in pieces/ and is not made again. From then on
provenance says which code and machine made it.
"""

from __future__ import annotations

import csv
import io
import json
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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


# Where data and networks lie is no part of the question: pieces add up from wherever there is a
# machine, and provenance says from where.
PLACES = ("data_dir", "device")


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
    any number. Made are those whose names match the pattern `only`; with `only_what_is_there` none
    is. The page then says of how many pieces it speaks, and those under way count as far as they
    have come.
    """
    if processes < 1:
        raise InvalidInputError(f"processes must be at least 1, got {processes}")
    names = [piece.name for piece in reproduction.pieces(options)]
    if not any(fnmatchcase(piece, only) for piece in names):
        raise InvalidInputError(f"no piece of {name} matches {only!r}; there are {names}")
    torch.set_num_threads(1)
    asked = _as_json({"name": name, **asdict(options), "config": reproduction.config(options)})
    for place in PLACES:
        del asked[place]
    _open(out, asked)
    begin = _cpu_seconds()
    pieces = {out / "pieces" / f"{p.name}.csv": p for p in reproduction.pieces(options)}
    wanted = [] if only_what_is_there else [p for p in pieces if fnmatchcase(p.stem, only)]
    missing = [path for path in wanted if not path.exists()]
    already = sum(path.exists() for path in pieces)
    advance(already)
    maker, finished = _maker(options) if missing else {}, list[str]()
    earlier = _read(out / "provenance.json").get("made", [])
    for path in _make_all({path: pieces[path] for path in missing}, processes):
        finished.append(path.stem)
        signature = maker | {"pieces": finished, "cpu_seconds": round(_cpu_seconds() - begin, 1)}
        made = [*_less(earlier, finished), signature]
        _write(out / "provenance.json", _json({"asked": asked, "made": made}))
        advance(already + len(finished))
    paths = list(pieces)
    there = [path for path in paths if path.exists()]
    if not there:
        raise RunFolderError(f"there is no finished piece in {out}")
    begun = [_kept(path) for path in paths if not path.exists() and _kept(path).exists()]
    parts = [pd.read_csv(path) for path in there]
    parts += [pd.DataFrame(Progress.read(path).rows) for path in begun]
    rows = pd.concat(parts, ignore_index=True)
    _write(out / "rows.csv", rows.to_csv(index=False))
    save(reproduction.figure(rows), out / "figure")
    verdicts = list(reproduction.verdicts(rows))
    _write(out / "verdict.json", _json([asdict(verdict) for verdict in verdicts]))
    note = _note(len(there), len(begun), len(paths))
    _write(out / "verdict.md", verdict_page(name, reproduction.claim, verdicts, options, note))
    return verdicts


def _maker(options: Options) -> dict[str, Any]:
    """Code, versions and machine of this call."""
    device = {} if options.device == "cpu" else {"device": device_name(options.device)}
    return provenance_now() | device


def _less(made: Iterable[dict[str, Any]], anew: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Who made what, without the pieces that are made anew and those who made only these."""
    for entry in made:
        left = [name for name in entry["pieces"] if name not in anew]
        if left or not entry["pieces"]:
            yield entry | {"pieces": left}


def _make_all(pieces: Mapping[Path, Piece], processes: int) -> Iterator[Path]:
    """Make pieces, each written as soon as it is there; yield where each stands."""
    if processes == 1:
        for path, piece in pieces.items():
            make(path, piece)
            yield path
        return
    # Forked processes would inherit torch's threads in whatever state they are.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, torch.set_num_threads, (1,)) as pool:
        futures = {pool.submit(make, path, piece): path for path, piece in pieces.items()}
        try:
            for future in as_completed(futures):
                future.result()
                yield futures[future]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def make(path: Path, piece: Piece) -> None:
    """Make a piece and write it to `path`, all at once."""
    _write(path, _csv(piece.make(_kept(path)) if piece.resumes else piece.make()))
    _kept(path).unlink(missing_ok=True)


def _kept(path: Path) -> Path:
    """Where the piece that is to stand at `path` keeps how far it has come."""
    return path.with_name(path.name.removesuffix(".csv") + ".safetensors")


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


def _open(out: Path, asked: dict[str, Any]) -> None:
    """Refuse a folder that holds something else; note what was asked for."""
    provenance = out / "provenance.json"
    if provenance.exists():
        there = _read(provenance).get("asked", {})
        for place in PLACES:
            there.pop(place, None)
        if there != asked:
            raise RunFolderError(
                f"{out} holds a reproduction made with other options: {there}, not {asked}; "
                "choose another folder"
            )
    elif out.exists() and any(out.iterdir()):
        raise RunFolderError(f"{out} is not empty and holds no reproduction; choose another folder")
    (out / "pieces").mkdir(parents=True, exist_ok=True)
    if not provenance.exists():
        _write(provenance, _json({"asked": asked, "made": []}))


def _csv(rows: Sequence[Row]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _as_json(value: dict[str, Any]) -> dict[str, Any]:
    return dict(json.loads(json.dumps(value)))


def _json(value: Any) -> str:
    return json.dumps(value, indent=2) + "\n"


def _read(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text()))
    except (OSError, ValueError) as error:
        raise RunFolderError(f"cannot read {path}: {error}") from error


def _write(path: Path, text: str) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text)
    os.replace(partial, path)
