"""Read, prepare and analyse tables from files, and save and load models for them.

A file, column or option that cannot be used raises InputError; its message says what to do instead.
This module imports pandas only when `load_model` or `save_model` is called.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kmargin.core.validation import InputError

if TYPE_CHECKING:
    from kmargin.tables.model import TableModel


def load_model(path: str | Path) -> "TableModel":
    """Load a model that `kmargin fit` or :func:`~kmargin.save_model` has written.

    The file holds arrays of numbers and JSON, so opening it never runs code. A damaged file, or one that
    kmargin did not write, is refused. Loading needs pandas (``pip install 'kmargin[cli]'``).

    Parameters
    ----------
    path : str or Path
        A model file, or the folder that `kmargin fit` wrote.

    Returns
    -------
    TableModel
        It has `predict`, `decision_function`, `predict_proba` (if the model has probabilities), `score`, and
        `share_seen`, which estimates the share of the rows of X that are training rows. `classes_` are its
        classes, `feature_names_in_` all feature columns of the training data, and `needed` the columns that
        predictions use. X may be a data frame (pandas, polars, arrow) or a mapping from names to columns.
        It needs only the columns in `needed`, in any order; numbers may be strings, as read from CSV files.
        An array has no names, so it must have all columns of `feature_names_in_`, in that order.

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
        Name of the column with the classes. If a new table has this column too, `kmargin predict` compares
        its predictions with it. For the result of `load_model`, the name that it already has is kept.

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
    """Import the module for model files; if a package such as pandas is missing, say how to install it."""
    try:
        from kmargin.tables import model_file
    except ModuleNotFoundError as error:
        raise InputError(f"Saved models need {error.name}. Run: pip install 'kmargin[cli]'") from error
    return model_file
