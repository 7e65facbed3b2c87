"""Models in files: saved from Python, loaded in Python, and used by `kmargin predict`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kmargin.errors import InputError

if TYPE_CHECKING:
    from kmargin.tables.model import TableModel


def load_model(path: str | Path) -> "TableModel":
    """Load a model that `kmargin fit` or :func:`~kmargin.save_model` has written.

    The file is plain arrays and JSON: opening it never runs code from it, and one that was damaged or comes
    from elsewhere is refused. Needs pandas (``pip install 'kmargin[cli]'``).

    Parameters
    ----------
    path : str or Path
        The folder that `kmargin fit` wrote, or the file.

    Returns
    -------
    TableModel
        With `predict`, `decision_function`, `predict_proba` (where the model knows probabilities), `score`,
        `share_seen` (which share of some rows it was fitted to), `classes_`, `feature_names_in_` and
        `needed`, the columns that it looks at. It finds columns by name, in any order, in frames of pandas,
        polars or arrow, or in a mapping of columns; numbers may be texts, as readers of CSV files may give
        them. Arrays have all columns of `feature_names_in_`, in that order.

    Raises
    ------
    InputError
        A ValueError, in one sentence, for a file that is no model.

    See Also
    --------
    save_model : Writes one; its example reads it again.
    """
    model: TableModel = _modelfile().load(path)
    return model


def save_model(model: Any, path: str | Path, *, target: str = "target") -> Path:
    """Write a fitted model to a file that `kmargin predict` and :func:`~kmargin.load_model` take.

    Parameters
    ----------
    model : estimator
        A fitted SparseSVC, SparseSVCCV, KernelSparseSVC or KernelSparseSVCCV, a pipeline that ends in one
        after a SimpleImputer or a StandardScaler or both, or what `load_model` returned.
    path : str or Path
        Replaced as a whole, or left as it was.
    target : str, default="target"
        What the column of the classes is called: `kmargin predict` compares with it where a table has it. A
        model that was loaded keeps its own.

    Returns
    -------
    Path
        Where it was written.

    See Also
    --------
    load_model : Reads it.

    Examples
    --------
    >>> import tempfile, os
    >>> from kmargin import SparseSVC, load_model, save_model
    >>> from kmargin.datasets import make_synthetic
    >>> X, y = make_synthetic(n_samples=100, n_features=10, random_state=0)
    >>> model = SparseSVC(k=2).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = save_model(model, os.path.join(folder, "two.kmargin"))
    ...     again = load_model(file)
    >>> again
    <TableModel: 'target' from 'x0', 'x1'>
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    modelfile = _modelfile()
    from kmargin.tables.export import to_table_model

    written: Path = modelfile.save(to_table_model(model, target), path)
    return written


def _modelfile() -> Any:
    """The module that reads and writes; a sentence where it lacks what it needs."""
    try:
        from kmargin import modelfile
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "pandas":
            raise
        raise InputError(
            "Models in files need pandas, which is not here. Run: pip install 'kmargin[cli]'"
        ) from error
    return modelfile
