"""The command `kmargin fit`: k and C chosen, results written."""

from pathlib import Path
from typing import Annotated

import typer

from kmargin.errors import InputError
from kmargin.option_groups import parse_ks, parse_number, parse_numbers, with_shared_options
from kmargin.options import (
    ColumnOptions,
    Data,
    Jobs,
    MachineOptions,
    Proba,
    Quiet,
    ReadingOptions,
    Scoring,
    Seed,
)
from kmargin.tables.analyse import analyse
from kmargin.tables.packed import packing_of
from kmargin.tables.write import check_folder, write_results
from kmargin.terminal import plainly, show_analysis, tell


@plainly
@with_shared_options
def fit_command(
    data: Data,
    columns: ColumnOptions,
    reading: ReadingOptions,
    machines: MachineOptions,
    k: Annotated[
        int | None,
        typer.Option(
            help="Fix the number of features (or points); one more and one fewer are scored for comparison."
        ),
    ] = None,
    ks: Annotated[str | None, typer.Option(help="Values of k to try, such as 1,2,5.")] = None,
    C: Annotated[
        str | None,
        typer.Option(
            "--C",
            "-C",
            help="Values of C to try; default 0.01 to 10, extended if the best is at the edge. Default of "
            "the estimators: 1.",
        ),
    ] = None,
    select: Annotated[
        str,
        typer.Option(
            help="best: the highest score; 1se: the smallest k within a standard error of it; tolerance: "
            "within --tolerance of it. Default of the estimators: best, as in scikit-learn."
        ),
    ] = "1se",
    tolerance: Annotated[
        float, typer.Option(help="The loss of score that --select tolerance accepts.")
    ] = 0.01,
    kernel: Annotated[
        str | None, typer.Option(help="rbf, poly, linear or sigmoid; k then counts training points.")
    ] = None,
    gamma: Annotated[str, typer.Option(help="Width of the kernel: a number, scale or auto.")] = "scale",
    out: Annotated[Path | None, typer.Option(help="Folder for the results.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write into a folder that holds other files.")
    ] = False,
    cv: Annotated[int, typer.Option(help="Number of folds.")] = 5,
    repeats: Annotated[
        int | None,
        typer.Option(
            help="Maximum number of rounds of folds, which end when the choice is stable; default 5, or 1 "
            "with five classes or more, or 20,000 rows or more. Default of the estimators: 1, with rows in "
            "their order."
        ),
    ] = None,
    nested: Annotated[
        bool,
        typer.Option(
            help="Repeat the choice of k and C in outer folds (nested cross-validation), for an unbiased "
            "accuracy. In Python: honest_score."
        ),
    ] = True,
    permutations: Annotated[
        int, typer.Option(help="Number of searches with permuted labels, for a p-value.")
    ] = 0,
    pairs: Annotated[
        int, typer.Option(help="Number of pairs of random halves for selection frequencies; 0 for none.")
    ] = 25,
    proba: Proba = False,
    scoring: Scoring = "accuracy",
    seed: Seed = 0,
    jobs: Jobs = None,
    quiet: Quiet = False,
) -> None:
    """Choose k and C by cross-validation; write the model, tables and a report.

    Example: kmargin fit data.csv --target diagnosis
    """
    folder = Path(f"{stem(data)}-kmargin") if out is None else out
    check_folder(folder, force)
    if k is not None and ks is not None:
        raise InputError(f"--k {k} and --ks {ks} cannot be combined. Use one of them.")
    values = None if ks is None else parse_ks(ks)
    if isinstance(values, int):
        raise InputError(
            f"--ks {values} is a single value of k, which leaves nothing to choose. Use --k {values} to fix "
            f"it, or list several, such as --ks 1,2,{max(values, 3)}."
        )
    settings = machines.settings(
        columns,
        quiet,
        k=k,
        ks=values,
        Cs=None if C is None else parse_numbers("--C", C),
        kernel=kernel,
        gamma=gamma if gamma in ("scale", "auto") else parse_number("--gamma", gamma),
        cv=cv,
        seed=seed,
        jobs=jobs,
        repeats=repeats,
        nested=nested,
        permutations=permutations,
        pairs=pairs,
        proba=proba,
        scoring=scoring,
        select=select,
        tolerance=tolerance,
    )
    dataset = columns.prepare(data, reading)
    analysis = analyse(dataset, settings)
    written = write_results(analysis, folder, data.name)
    if not quiet:
        show_analysis(analysis)
        files = ", ".join(path.name for path in written)
        tell(f"\nWritten to {folder}: {files}")


def stem(data: Path) -> str:
    """The name of a file without its endings."""
    name = data.name if packing_of(data) is None else data.stem
    return name[: -len(Path(name).suffix)] if Path(name).suffix else name
