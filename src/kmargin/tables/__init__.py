"""Read, prepare and analyse tables from files, and save and load models for them.

An input that cannot be used raises InputError, with advice in its message.
This module imports pandas only when `load_model` or `save_model` is called.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kmargin.core.validation import InputError

if TYPE_CHECKING:
    from kmargin.tables.model import TableModel


def load_model(path: str | Path) -> "TableModel":
    """Load a model that `kmargin fit` or :func:`~kmargin.save_model` has written.

    The file is plain arrays and JSON: opening it never runs code from it, and a damaged file, or one that
    kmargin did not write, is refused. Needs pandas (``pip install 'kmargin[cli]'``).

    Parameters
    ----------
    path : str or Path
        A model file, or the folder that `kmargin fit` wrote.

    Returns
    -------
    TableModel
        It has `predict`, `decision_function`, `predict_proba` (if the model has probabilities), `score`,
        `share_seen` (the share of the rows of X that are training rows), `classes_`, `feature_names_in_` and
        `needed` (the columns that predictions use). The model finds columns by name, in any order, in pandas,
        polars or arrow data frames, or in a mapping of columns; numbers may be strings, as read from CSV
        files. Arrays must have all columns of `feature_names_in_`, in that order.

    Raises
    ------
    InputError
        If the file is not a model. InputError is a ValueError.

    See Also
    --------
    save_model : Saves a model; the example there loads it again.
    """
    return _model_file().load(path)


def save_model(model: Any, path: str | Path, *, target: str = "target") -> Path:
    """Save a fitted model to a file that `kmargin predict` and :func:`~kmargin.load_model` can open.

    Parameters
    ----------
    model : estimator
        A fitted SparseSVC, SparseSVCCV, KernelSparseSVC or KernelSparseSVCCV; a pipeline of a SimpleImputer,
        a StandardScaler or both, and then one of these; or the result of `load_model`.
    path : str or Path
        The file to write. An existing file is replaced completely, or left unchanged if writing fails.
    target : str, default="target"
        Name of the target column: `kmargin predict` compares its predictions with that column if a table has
        it. The result of `load_model` keeps the target that it was saved with.

    Returns
    -------
    Path
        The path of the file.

    See Also
    --------
    load_model : Loads a saved model.

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
    return _model_file().save(model, path, target)


def _model_file() -> Any:
    """Import the module that reads and writes models, which needs pandas."""
    try:
        from kmargin.tables import model_file
    except ModuleNotFoundError as error:
        raise InputError(f"Saved models need {error.name}. Run: pip install 'kmargin[cli]'") from error
    return model_file
