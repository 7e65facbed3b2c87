"""Results into a folder: all of them or none, and never over what others put there."""

import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd

from kmargin import modelfile
from kmargin.displays import CVScoreDisplay
from kmargin.errors import InputError, listing
from kmargin.tables.analyse import Analysis, Step
from kmargin.tables.report import render
from kmargin.tables.results import feature_frame, point_frame, prediction_frame

FILES = (modelfile.NAME, "features.csv", "points.csv", "predictions.csv", "report.html")


def check_folder(folder: Path, force: bool) -> None:
    """Raises InputError where results must not go. Best asked before the work is done."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file. Say with --out which folder to write.")
    parent = folder.resolve().parent
    if not parent.is_dir():
        raise InputError(f"There is no folder {folder.parent} to write {folder.name} into. Make it first.")
    if not os.access(folder if folder.exists() else parent, os.W_OK):
        raise InputError(f"The folder {folder} cannot be written. Choose another with --out.")
    there = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    if there and modelfile.NAME not in there and not force:
        raise InputError(
            f"The folder {folder} holds {listing(there, 3)}, which kmargin did not write. "
            "Choose another with --out, or add --force to write into it."
        )


def check_file(path: Path, endings: tuple[str, ...]) -> None:
    """Raises InputError where a file cannot be written, or has the wrong ending."""
    if path.suffix not in endings:
        raise InputError(f"{path} does not end in {' or '.join(endings)}. Give it that ending.")
    if path.is_dir() or not path.resolve().parent.is_dir():
        problem = "is a folder" if path.is_dir() else "lies in a folder that is not there"
        raise InputError(f"{path} {problem}. Choose another name.")


def write_results(analysis: Analysis, folder: Path, source: str) -> list[Path]:
    """Write model, tables and report; files of earlier results are replaced, others left alone."""
    folder = folder.resolve()
    temporary = folder.with_name(f".{folder.name}-{os.getpid()}")
    temporary.mkdir()
    try:
        modelfile.save(analysis.model, temporary / modelfile.NAME)
        if analysis.model.is_kernel:
            point_frame(analysis).to_csv(temporary / "points.csv", index=False)
        else:
            feature_frame(analysis).to_csv(temporary / "features.csv", index=False)
        prediction_frame(analysis).to_csv(temporary / "predictions.csv", index=False)
        page = render(analysis, source, folder.name)
        (temporary / "report.html").write_text(page, encoding="utf-8")
        return _move(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_frame(frame: pd.DataFrame, path: Path) -> None:
    """Write a CSV as a whole or not at all."""
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        frame.to_csv(temporary, index=False)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def plot_steps(steps: list[Step], path: Path) -> None:
    """Accuracy against k, over the folds if they were asked and on the training rows if not."""
    from matplotlib.figure import Figure

    mean = np.array([step.training_accuracy if step.score is None else step.score for step in steps])
    error = np.array([step.error or 0.0 for step in steps])
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    ks = [step.k for step in steps]
    display = CVScoreDisplay(ks, mean, error, score_name="accuracy").plot(figure.subplots())
    if steps[0].score is None:
        display.ax_.set_ylabel("accuracy (training rows)")
    figure.savefig(path)


def _move(temporary: Path, folder: Path) -> list[Path]:
    names = [name for name in FILES if (temporary / name).exists()]
    if not folder.exists():
        os.replace(temporary, folder)
        return [folder / name for name in names]
    outdated = set(FILES) - set(names) if (folder / modelfile.NAME).exists() else ()
    for name in names:
        os.replace(temporary / name, folder / name)
    for name in outdated:
        (folder / name).unlink(missing_ok=True)
    return [folder / name for name in names]
