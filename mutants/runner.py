"""Tries mutants side by side, each worker in its own copy of the tree."""

import ast
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mutants.catalogue import ROOT, Mutant
from mutants.worker import NO_ANSWER

LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "*.egg-info", "results", "*.nbi", "*.nbc"
)
LIMIT = 60.0  # seconds for the tests of one mutant
BASELINE = 1800.0  # and for all of them on the tree as it is


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant."""

    mutant: Mutant
    status: str  # killed, timeout, survived, stale, error
    detail: str = ""
    seconds: float = 0.0


class Worker:
    """A process with a copy of the tree."""

    def __init__(self, folder: Path) -> None:
        self.tree = folder
        shutil.copytree(ROOT, folder, ignore=LEFT_OUT)
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        # The cache of compiled code does not notice a change in what is called from another file, and to
        # compile anew takes most of a minute. Uncompiled, problems as small as those of tests take less.
        # scipy has to be told before it is imported; see conftest.
        env = os.environ | threads | {"NUMBA_DISABLE_JIT": "1", "SCIPY_ARRAY_API": "1", "MPLBACKEND": "agg"}
        env["PYTHONPATH"] = os.pathsep.join([str(folder / "src"), str(folder / "tests")])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mutants.worker"],
            cwd=folder, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self._receive()

    def ask(self, tests: list[str], file: str | None = None, source: str = "", seconds: float = LIMIT) -> Any:
        question = {
            "file": file,
            "source": source,
            "tests": [f"tests/{t}" for t in tests],
            "seconds": seconds,
        }
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return self._receive()

    def _receive(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a worker died, exit code {self.process.wait()}")
        return json.loads(line)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def try_mutant(worker: Worker, mutant: Mutant) -> Outcome:
    source = mutant.applied_to((worker.tree / mutant.path).read_text(encoding="utf-8"))
    if source is None:
        return Outcome(mutant, "stale", f"{mutant.file} does not hold the original once")
    try:
        ast.parse(source)
    except SyntaxError as error:
        return Outcome(mutant, "error", f"it is no program: {error}")
    answer = worker.ask(list(mutant.tests), str(mutant.path), source)
    code, said, seconds = answer["code"], answer["said"], answer["seconds"]
    if code is None:
        return Outcome(mutant, "timeout", f"after {LIMIT:.0f} s", seconds)
    if code == 0:
        return Outcome(mutant, "survived", "", seconds)
    if code in (4, 5, NO_ANSWER):
        return Outcome(mutant, "error", f"exit code {code}: {said.strip()[-200:]}", seconds)
    return Outcome(mutant, "killed", _killer(said, code), seconds)


def _killer(said: str, code: int) -> str:
    """The test that noticed."""
    named = re.search(r"^(?:FAILED|ERROR) tests/(.+?)(?: - .*)?$", said, re.MULTILINE)
    return named.group(1) if named else f"exit code {code}"


def try_unmutated(worker: Worker, tests: list[str]) -> str:
    """Empty if the tests pass on the tree as it is; else what they said."""
    answer = worker.ask(tests, seconds=BASELINE)
    return "" if answer["code"] == 0 else f"{answer['said']}\nexit code {answer['code']}"


def in_parallel(workers: list[Worker], work: list[Any], do: Callable[[Worker, Any], None]) -> None:
    """Do all of it, each worker taking the next piece when it is free."""
    waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
    for piece in work:
        waiting.put(piece)
    failures: list[BaseException] = []

    def run(worker: Worker) -> None:
        try:
            while not failures:
                do(worker, waiting.get_nowait())
        except queue.Empty:
            return
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
