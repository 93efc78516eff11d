"""A figure with a claim."""

from functools import partial

from matplotlib.figure import Figure

from gfucb.paper import Job, Reproduction, Verdict, register_reproduction


def squares(seed):
    return [{"seed": seed, "x": x, "y": x**2} for x in range(3)]


def jobs(options):
    return [Job(f"seed={seed}", partial(squares, seed)) for seed in options.seeds or (0, 1)]


def figure(rows):
    drawn = Figure()
    drawn.add_subplot().plot(rows["x"], rows["y"], "o")
    return drawn


def verdicts(rows):
    return [Verdict("y is x squared", "the largest y is 4", bool(rows["y"].max() == 4))]


register_reproduction("squares", Reproduction("y = x^2", jobs, figure, verdicts))
