"""Results into a folder: all of them or none, and never over what others put there."""

import io
import os
from pathlib import Path

import numpy as np
import pandas as pd

from kmargin import CVScoreDisplay, modelfile
from kmargin.errors import InputError, listing
from kmargin.files import is_ours, replace_file, replace_folder
from kmargin.tables.analyse import Analysis, Step
from kmargin.tables.report import render
from kmargin.tables.results import feature_frame, point_frame, prediction_frame
from kmargin.tables.score_words import PERCENT, score_name
from kmargin.tables.spreadsheet import csv_text

FILES = (modelfile.NAME, "features.csv", "points.csv", "predictions.csv", "report.html")


def check_folder(folder: Path, force: bool) -> None:
    """Raises InputError where results must not go. Best asked before the work is done."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file. Name a folder with --out.")
    parent = folder.resolve().parent
    if not parent.is_dir():
        raise InputError(f"There is no folder {folder.parent} to write {folder.name} into. Create it first.")
    if not os.access(folder if folder.exists() else parent, os.W_OK):
        raise InputError(f"The folder {folder} cannot be written. Choose another with --out.")
    there = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    there = [name for name in there if not is_ours(name)]
    if there and modelfile.NAME not in there and not force:
        raise InputError(
            f"The folder {folder} holds {listing(there, 3)}, which kmargin did not write. "
            "Choose another with --out, or add --force to write into it."
        )


def check_file(path: Path, endings: tuple[str, ...]) -> None:
    """Raises InputError where a file cannot be written, or has the wrong ending."""
    if path.suffix not in endings:
        raise InputError(f"{path} does not end in {' or '.join(endings)}. Use that file extension.")
    if path.is_dir() or not path.resolve().parent.is_dir():
        problem = "is a folder" if path.is_dir() else "lies in a folder that is not there"
        raise InputError(f"{path} {problem}. Choose another name.")


def write_results(analysis: Analysis, folder: Path, source: str) -> list[Path]:
    """Write model, tables and report; files of earlier results are replaced, others left alone.

    All of them or none: see `kmargin.files`.
    """
    kind, frame = "features.csv", feature_frame
    if analysis.model.is_kernel:
        kind, frame = "points.csv", point_frame
    page = render(analysis, source, folder.resolve().name)
    contents = {
        modelfile.NAME: modelfile.to_bytes(analysis.model),
        kind: csv_text(frame(analysis)).encode(),
        "predictions.csv": csv_text(prediction_frame(analysis)).encode(),
        "report.html": page.encode(errors="backslashreplace"),  # a file's name need not be text
    }
    replace_folder(folder, contents, FILES)
    return [folder / name for name in contents]


def write_frame(frame: pd.DataFrame, path: Path) -> None:
    """Write a CSV as a whole or not at all."""
    replace_file(path, csv_text(frame).encode())


def plot_steps(steps: list[Step], path: Path, counted: str = "features", scoring: str = "accuracy") -> None:
    """The score against k over the folds; if they were not asked, the accuracy on the training rows."""
    from matplotlib.figure import Figure

    mean = np.array([step.training_accuracy if step.score is None else step.score for step in steps])
    error = np.array([step.error or 0.0 for step in steps])
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    ks = [step.k for step in steps]
    scoring = "accuracy" if steps[0].score is None else scoring
    name = scoring if scoring in PERCENT else score_name(scoring)
    display = CVScoreDisplay(ks, mean, error, score_name=name, counted=counted).plot(figure.subplots())
    if steps[0].score is None:
        display.ax_.set_ylabel("accuracy (training rows)")
    image = io.BytesIO()
    figure.savefig(image, format=path.suffix[1:])
    replace_file(path, image.getvalue())
