"""Damaged, forged and foreign model files: each is refused in one sentence, or is the model that was saved.

Nothing in a file is ever run, and no file makes the reader take much more memory than it has bytes.
"""

import os
import tempfile
import tracemalloc
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fuzz import clock, forgeries
from fuzz.command import Flaw, call, inside
from fuzz.outputs import check_refusal
from fuzz.pick import Draw

NAME = "modelfiles"
MOST_MEMORY = 30e6  # bytes beyond the file's own, whatever it claims
KINDS = ("linear", "kernel", "classes")


@dataclass
class Case:
    """A file that is, or was, or says that it is a model."""

    number: int
    kind: str  # of the model that it was
    damage: str
    content: bytes

    def __str__(self) -> str:
        """Lines that reproduce it."""
        write = f"open('m.kmargin', 'wb').write({self.content!r})  # a {self.kind} model, {self.damage}"
        return f"{write}\nfrom kmargin.tables import model_file\nmodel_file.load('m.kmargin')"


@cache
def originals() -> dict[str, tuple[bytes, Any]]:
    """A model of each kind, as a file and as what it decides about some rows."""
    import pandas as pd

    from kmargin.tables import model_file
    from kmargin.tables.analysis import analyse
    from kmargin.tables.dataset import Roles, prepare
    from kmargin.tables.read import Table
    from kmargin.tables.request import Settings

    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.standard_normal((24, 3)), columns=["a", "<b>", "=c"])
    frame["hue"] = ["red", "blue", "green"] * 8
    found = {}
    for kind in KINDS:
        names = np.array(
            ["no", "yes"] if kind == "linear" else ["u", "v", "w"] if kind == "classes" else [3, 5]
        )
        frame["y"] = names[np.argsort(np.argsort(frame["a"])) * len(names) // 24]
        settings = Settings(k=2, ks=[2], Cs=[1.0], cv=2, kernel="rbf" if kind == "kernel" else None)
        dataset = prepare(Table(frame), Roles("y", encode="onehot", impute="median"))
        model = analyse(dataset, settings).model
        found[kind] = model_file.to_bytes(model), fingerprint(model)
    return found


def fingerprint(model: Any) -> list[Any]:
    """Everything that a model decides by."""
    from kmargin.tables.model import machine_numbers

    parameters, arrays = machine_numbers(model.machine)
    scaling = model.scaling
    shared = {"mean": scaling.mean, "spread": scaling.spread, "medians": scaling.medians}
    encoding = (model.target, model.encoding.columns, sorted(model.encoding.categories.items()))
    numbers = [(name, None if a is None else np.asarray(a).tolist()) for name, a in (arrays | shared).items()]
    return [sorted(parameters.items(), key=str), numbers, encoding]


def make_case(number: int) -> Case:
    """The case with this number: always the same."""
    draw = Draw(number, 11)
    kind = draw.one(KINDS)
    damaged, damage = draw.weighted(forgeries.WAYS)(originals()[kind][0], draw.rng)
    return Case(number, kind, damage, damaged)


def check(case: Case) -> str | None:
    """A sentence that says what is wrong with the answer, or None."""
    with tempfile.TemporaryDirectory() as folder, inside(folder):
        Path("m.kmargin").write_bytes(case.content)
        flaw = _check_load(case)
        if flaw is None and os.path.exists("sprung"):
            flaw = "code from the file was run"
        if flaw is None and case.number % 20 == 0:
            flaw = _check_command()
        return flaw


def run(first: int, count: int) -> list[tuple[Case, str]]:
    """The cases that fail, each with what is wrong."""
    found = ((case, check(case)) for case in map(make_case, range(first, first + count)))
    return [(case, flaw) for case, flaw in found if flaw is not None]


def _check_load(case: Case) -> str | None:
    from kmargin.core.validation import InputError
    from kmargin.tables import model_file

    tracemalloc.start()
    try:
        with clock.running():
            model = model_file.load("m.kmargin")
    except InputError as error:
        message = str(error)
        if not message.startswith("m.kmargin ") or len(message) > 500:
            return f"a refusal that says little: {message[:200]!r}"
        model = None
    except clock.TooSlow:
        return "it runs for more than 10 s"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    if peak > MOST_MEMORY + 5 * len(case.content):
        return f"it takes {peak / 1e6:.0f} MB for {len(case.content)} bytes"
    if model is None or fingerprint(model) == originals()[case.kind][1]:
        return None
    if not _has_digest(case.content):
        return "it is read as another model"
    return _check_forgery(model)


def _has_digest(content: bytes) -> bool:
    """Whether a file was made anew, by somebody who knows how: a digest is no signature."""
    from kmargin.tables import model_file

    arrays, _ = forgeries.unpack(content)
    return bool(arrays.pop("sha256").tolist() == model_file._digest(arrays).tolist())


def _check_forgery(model: Any) -> str | None:
    """Another model, but a model: it decides, or says what it lacks."""
    import pandas as pd

    from kmargin.core.validation import InputError
    from kmargin.tables.read import Table

    frame = pd.DataFrame({column: [0.5, -1.0] for column in model.encoding.columns})
    try:
        decisions = model.answer(Table(frame)).decisions
    except InputError:
        return None
    except Exception as error:
        return f"a forged model fails with {type(error).__name__}: {error}"
    return None if np.isfinite(decisions).all() else "a forged model decides by no number"


def _check_command() -> str | None:
    """The same file given to `kmargin predict`."""
    Path("new.csv").write_text("a,<b>,=c,hue\n1,2,3,red\n")
    try:
        code, stdout, stderr = call(["predict", "m.kmargin", "new.csv", "-q"])
    except Flaw as flaw:
        return str(flaw)
    return check_refusal(code, stdout, stderr, ["m.kmargin", "new.csv"]) if code else None
