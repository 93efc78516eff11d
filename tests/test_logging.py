"""Lines of the library's loggers: readable, and with their numbers as attributes."""

import logging
import re
import threading
from pathlib import Path

import gfucb
from gfucb.core.logs import log
from gfucb.runs.jobs import Job, run_jobs
from gfucb.serving.refits import RefitWorker

ROOT = Path(__file__).parents[1]
CANDIDATES = [[[0.0], [1.0]]]


def lines(caplog, name: str) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == name]


def test_numbers_are_attributes_and_the_caller_is_named(caplog):
    logger = logging.getLogger("gfucb.some_module")
    with caplog.at_level(logging.INFO, logger="gfucb"):
        log(logger, logging.INFO, "fit of %(num_samples)d samples", num_samples=3)
        log(logger, logging.DEBUG, "%(cannot_be_formatted)d", other=1)  # not enabled
    (record,) = caplog.records
    assert (record.message, record.num_samples) == ("fit of 3 samples", 3)
    assert record.funcName == "test_numbers_are_attributes_and_the_caller_is_named"


def test_fits_checkpoints_and_replays_of_an_agent_are_logged(tmp_path, caplog):
    path = tmp_path / "agent.log"
    with caplog.at_level(logging.DEBUG, logger="gfucb"):
        with gfucb.Agent(log=path, seed=0, refit="manual") as agent:
            agent.observe(agent.decide(CANDIDATES, tasks=["Oslo"]), [0.5])
            agent.fit()
        used, checkpoint = lines(caplog, "gfucb.serving.refits")
        Path(checkpoint.path).unlink()
        gfucb.Agent(log=path, seed=0, refit="manual").close()
    fits = lines(caplog, "gfucb.bandits.learner_base")
    assert (fits[0].num_fits, fits[0].num_samples) == (1, 1) and fits[0].levelno == logging.DEBUG
    assert used.num_samples == 1 and used.seconds > 0 and checkpoint.event > 0
    (replayed,) = lines(caplog, "gfucb.serving.log_replay")
    assert (replayed.after, replayed.log_name) == (0, str(path))
    assert replayed.message == f"replayed {checkpoint.event} events of {path} after event 0"


def test_a_fit_that_fails_in_the_background_is_logged_with_its_traceback(caplog):
    called = threading.Event()

    def fail() -> None:
        called.set()
        raise RuntimeError("no memory")

    with caplog.at_level(logging.INFO, logger="gfucb"):
        worker = RefitWorker(fail, lambda: True)
        worker.wake()
        assert called.wait(60)
        worker.stop()
    (failed,) = lines(caplog, "gfucb.serving.refits")
    assert failed.levelno == logging.WARNING and "no memory" in str(failed.exc_info)


def compute() -> list[dict[str, object]]:
    return [{"round": 1}]


def test_jobs_are_logged(tmp_path, caplog):
    with caplog.at_level(logging.INFO, logger="gfucb"):
        run_jobs([Job("one", compute)], tmp_path)
    (record,) = lines(caplog, "gfucb.runs.jobs")
    assert (record.job_name, record.status) == ("one", "finished")


def test_the_documented_loggers_and_attributes_are_those_of_the_code():
    page = (ROOT / "docs" / "how-to" / "serve_an_agent.md").read_text()
    rows = re.findall(r"^\| `(gfucb\.[\w.]+)` \| \w+ \| .* \| (.*) \|$", page, flags=re.MULTILINE)
    documented = {logger: set(re.findall(r"`(\w+)`", names)) for logger, names in rows}
    found: dict[str, set[str]] = {}
    for source in (ROOT / "src" / "gfucb").rglob("*.py"):
        text = source.read_text()
        if "logging.getLogger(__name__)" in text and source.name != "__init__.py":
            name = ".".join(source.relative_to(ROOT / "src").with_suffix("").parts)
            found[name] = set(re.findall(r"%\((\w+)\)", text))
    assert documented == found
