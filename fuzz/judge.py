"""A case, run and judged."""

import re
import time
import traceback
import warnings
from dataclasses import dataclass, field

import numpy as np

from fuzz import clock
from fuzz.forms import FOREIGN
from fuzz.models import Undecided, machines_of
from fuzz.oracles import ORACLES
from fuzz.twins import TWINS

# Errors that are the data's fault: what a generator may well produce.
EXPECTED_ERRORS = re.compile(
    "only one class|zero for every sample|weights of all samples of class|Fold \\d+ has no|n_splits="
    "|has 1 row|members in each class|not finite, for X with entries up to"
    '|solver="mm" works with the singular vectors|1 class|minimum of 2 is required|single class'
)


@dataclass
class Verdict:
    """What came of a case."""

    number: int
    family: str
    failures: list = field(default_factory=list)  # "oracle: sentence"
    skips: list = field(default_factory=list)
    seconds: float = 0.0
    refused: bool = False  # with a sentence


def judge(case):
    """Fit a case and ask the oracles. The verdict lists everything that is wrong, time limits included."""
    verdict = Verdict(case.number, case.family)
    started = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = case.fit()
        except Exception as error:
            if clock.rang_in(error):
                raise clock.TooSlow from error
            fitted, verdict.refused = False, _is_deliberate(error)
            if not verdict.refused:
                verdict.failures.append(f"exception: {_described(error)}")
            elif not case.must_fail and not EXPECTED_ERRORS.search(str(error)):
                verdict.failures.append(f"complaint: {_described(error)}")
        else:
            fitted = True
            if case.must_fail:
                verdict.failures.append("nonsense: was accepted")
    noise = [w for w in caught if issubclass(w.category, RuntimeWarning) or "numba" in str(w.category)]
    if noise:
        verdict.failures.append(f"warning: {noise[0].message} ({_place(noise[0])})")
    verdict.seconds = time.process_time() - started
    if verdict.seconds > clock.LIMIT:
        verdict.failures.append(f"slow: {verdict.seconds:.0f} s")
    if fitted and not case.must_fail:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _ask_oracles(case, model, verdict)
    return verdict


def _is_deliberate(error):
    """Whether an error was raised by a check of the arguments, by kmargin or scikit-learn.

    scikit-learn's checks may leave it to NumPy to complain of words among numbers.
    """
    if not isinstance(error, ValueError | TypeError) or isinstance(error, np.linalg.LinAlgError):
        return False
    last = traceback.extract_tb(error.__traceback__)[-1]
    if "/sklearn/utils/" in last.filename:
        return True
    is_raise = (last.line or "").strip().startswith("raise")
    return is_raise and ("/kmargin/" in last.filename or "/sklearn/" in last.filename)


def _ask_oracles(case, model, verdict):
    rng, oracles = case.rng("oracles"), ORACLES | TWINS
    asked = {name: rng.random() < often for name, (_, often) in oracles.items()}
    asked["orders, blocks"] |= case.form in FOREIGN
    asked["dense = sparse"] |= case.call == "SparseSVCCV"
    machines = []
    try:
        machines = machines_of(case, model)
    except Undecided as reason:
        verdict.skips.append(str(reason))
    for name, (oracle, _) in oracles.items():
        if asked[name]:
            _ask(verdict, name, oracle, case, model, machines)
            if verdict.failures and name == "finite":
                return


def _ask(verdict, name, oracle, case, model, machines):
    clock.restart()
    try:
        sentence = oracle(case, model, machines)
    except Undecided as reason:
        verdict.skips.append(f"{name}: {reason}")
    except Exception as error:
        if clock.rang_in(error):
            raise clock.TooSlow from error
        if _is_deliberate(error) and EXPECTED_ERRORS.search(str(error)):
            return
        verdict.failures.append(f"{name}: {_described(error)}")
    else:
        if sentence is not None:
            verdict.failures.append(f"{name}: {sentence}")


def _described(error):
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {_place(last)}: {error}"


def _place(at):
    """File and line of a warning or of a frame of a traceback, without the folders above the package."""
    filename = re.sub("^.*/(site-packages/|src/|(?=fuzz/))", "", at.filename)
    return f"{filename}:{at.lineno}"
