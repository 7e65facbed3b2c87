"""Pure functions of one block of rows, for `Blocks.ask`; the caller combines the results of all blocks."""

from collections.abc import Callable, Iterable, Iterator
from functools import reduce, wraps
from typing import Any, NamedTuple

import numpy as np

from kmargin.core import squared_hinge
from kmargin.core.arrays import Flags, Indices, Matrix, Space, Vector, space_of
from kmargin.core.labels import choose_classes, combine_decisions, find_bad_weight
from kmargin.data.blocks import Block, foreign_blocks

# X is processed in slices of rows with about this many entries, because temporary copies of a slice are made
# (as float64, centred or squared). TILE suits the caches of a processor; GPU_TILE keeps a GPU busy.
TILE, GPU_TILE = 2**20, 2**24


class Part(NamedTuple):
    """The test rows of one fold of a cross-validation, or its training rows."""

    n_folds: int
    fold: int  # the number of the fold, from 0
    inside: bool  # True for the test rows of the fold, False for its training rows
    seed: int = 0  # shuffles the rows of each block before they are divided into folds
    whole_blocks: bool = False  # whether folds consist of whole blocks, or of rows of each block

    def rows(self, number: int, codes: Vector) -> Flags:
        """Return, for each row of block `number`, whether it is in this part; `codes` are their classes."""
        if self.whole_blocks:
            return np.full(len(codes), (number % self.n_folds == self.fold) == self.inside)
        order = np.random.default_rng([self.seed, number]).permutation(len(codes))
        order = order[np.argsort(codes[order], kind="stable")]
        folds = np.empty(len(codes), np.int64)
        # The rows, shuffled and sorted by class, are dealt to the folds in turn. The first goes to fold i mod
        # n_folds in block i. If it went to fold 0 in all blocks, fold 0 could get all rows of a small class.
        folds[order] = (np.arange(len(codes)) + number) % self.n_folds
        return (folds == self.fold) == self.inside


class View(NamedTuple):
    """Which rows and columns of data in blocks a binary problem uses, with which labels and weights."""

    positive: int  # the code of the class with label 1
    negative: int | None  # the code of the class with label -1; None means all other classes
    class_weight: Vector  # for each class, the factor by which sample weights are multiplied
    part: Part | None = None  # the rows that are used; None means all rows
    columns: Indices | None = None  # indices of the columns that are used; None means all columns
    center: Vector | None = None  # the number subtracted from each used column; None means 0
    scale: Vector | None = None  # the number by which each centred column is divided; None means 1


class ViewedRows(NamedTuple):
    """Rows of a block, with their labels and weights in a binary problem; rows not in it have weight 0."""

    space: Space
    X: Any
    y: Any  # the label of each row, -1 or 1
    weights: Any


def weigh(block: Block, view: View) -> ViewedRows:
    """Return a block's X unchanged, and its rows' labels and weights in the binary problem of `view`."""
    space = space_of(block.codes)
    xp, codes = space.xp, block.codes
    weights = xp.take(space.put(view.class_weight), codes, axis=0) * block.repeats
    nothing = xp.zeros_like(weights)
    if view.negative is not None:
        weights = xp.where((codes == view.positive) | (codes == view.negative), weights, nothing)
    if view.part is not None:
        weights = xp.where(space.put(view.part.rows(block.number, space.bring(codes))), weights, nothing)
    y = xp.where(codes == view.positive, nothing + 1.0, nothing - 1.0)
    return ViewedRows(space, block.X, y, weights)


def tiles(whole: ViewedRows, view: View) -> Iterator[ViewedRows]:
    """Yield the rows of a block a few at a time (a tile), with the columns of X that `view` uses.

    The columns are float64, if the device has it, and centred and scaled. TILE or GPU_TILE limits a tile.
    """
    for rows in row_slices(whole.space, *whole.X.shape):
        tile = ViewedRows(whole.space, whole.X[rows, :], whole.y[rows], whole.weights[rows])
        yield tile._replace(X=show_columns(tile, view, None))


def row_slices(space: Space, n_rows: int, n_columns: int) -> Iterator[slice]:
    """Yield consecutive slices of rows with about TILE or GPU_TILE entries, or one empty slice of no rows."""
    height = max(1, (TILE if space.on_cpu else GPU_TILE) // max(n_columns, 1))
    for start in range(0, max(n_rows, 1), height):
        yield slice(start, min(start + height, n_rows))


def show_columns(rows: ViewedRows, view: View, columns: Indices | None) -> Any:
    """Return the columns of X that a view uses, centred and scaled as the view says.

    If `columns` is not None, return a selection: `columns` are indices into the columns that the view uses.
    """
    space, X = rows.space, rows.X
    wanted = view.columns
    if columns is not None:
        wanted = columns if wanted is None else wanted[columns]
    if wanted is not None:
        X = space.xp.take(X, space.put(wanted), axis=1)
    X = space.floats(X)
    if view.center is not None:
        X = X - space.put(view.center if columns is None else view.center[columns])
    if view.scale is not None:
        X = X / space.put(view.scale if columns is None else view.scale[columns])
    return X


def add_up(terms: Iterable[Any]) -> Any:
    """Add up, in the given order, numbers, arrays, or tuples of these, which are added entry by entry."""
    # Terms are not stored in a list: small arrays between large work arrays would fragment the memory.
    return reduce(_add, terms)


def _add(one: Any, other: Any) -> Any:
    if isinstance(one, tuple):
        return tuple(_add(*pair) for pair in zip(one, other, strict=True))
    return one + other


def by_tiles(function: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a function of a tile (a few rows) into one of a block, which adds the results of all its tiles."""

    @wraps(function)
    def sum_over_block(block: Block, view: View, *args: Any) -> Any:
        return add_up(function(tile, *args) for tile in tiles(weigh(block, view), view))

    return sum_over_block


def count(block: Block, view: View) -> tuple[int, float]:
    """Return the number of a block's rows with positive weight in a view, and the sum of their weights."""
    space, _, _, weights = weigh(block, view)
    return count_true(space, weights > 0), float(space.xp.sum(weights))


@by_tiles
def first_moments(tile: ViewedRows, total: float) -> tuple[Vector, float]:
    """What the rows `tile` add to the weighted means of columns and labels; `total` is all rows' weight."""
    space, X, y, weights = tile
    weights = weights / total
    return space.bring(weights @ X), float(weights @ y)


@by_tiles
def second_moments(tile: ViewedRows, total: float, mean: Vector, mean_label: float) -> tuple[Vector, Vector]:
    """What the rows `tile` add to the weighted variances of columns, and covariances with the labels.

    `total` is the weight of the rows of all blocks; `mean` and `mean_label` are the means over these rows.
    """
    space, X, y, weights = tile
    weights = weights / total
    with np.errstate(over="ignore", invalid="ignore"):  # columns whose squares overflow are rescaled later
        X = X - space.put(mean)
        return space.bring(weights @ (X * X)), space.bring((weights * (y - mean_label)) @ X)


@by_tiles
def loss_and_gradient(tile: ViewedRows, total: float, beta: Vector) -> tuple[float, Vector, float]:
    """What the rows `tile` add to the mean loss, and to its derivatives with respect to beta.

    beta ends with the intercept, whose derivative is returned last. `total` is the weight of all rows.
    """
    space, X, y, weights = tile
    weights = weights / total
    decision = X @ space.put(beta[:-1]) + float(beta[-1])
    loss = squared_hinge.total_value(squared_hinge.residual_of(decision, y), weights, space.xp)
    derivatives = squared_hinge.derivatives(decision, y, weights, space.xp)
    return loss, space.bring(derivatives @ X), float(space.xp.sum(derivatives))


@by_tiles
def curvature_along(tile: ViewedRows, total: float, direction: Vector) -> float:
    """What the rows `tile` add to the weighted mean of (x'w + b)^2 over all rows x; direction is (w, b)."""
    space, X, _, weights = tile
    decision = X @ space.put(direction[:-1]) + float(direction[-1])
    return float(((weights / total) * decision) @ decision)


@by_tiles
def slopes(tile: ViewedRows, total: float, columns: Indices, u: Vector) -> tuple[Vector, int]:
    """What the rows `tile` add to the negative gradient of the mean loss, which has an entry for each column.

    It is taken where `columns` have the coefficients u[:-1], all others 0, and the intercept is u[-1]. Also
    returns how many of the rows have a positive loss there. `total` is the weight of all rows of all blocks.
    """
    space, X, y, weights = tile
    coef = np.zeros(X.shape[1])  # of all columns: to multiply by all is faster than to copy a few
    coef[columns] = u[:-1]
    decision = X @ space.put(coef) + float(u[-1])
    residual = squared_hinge.residual_of(decision, y)
    by_row = squared_hinge.slopes(residual, space.xp)
    n_active = count_true(space, squared_hinge.is_active(residual) & (weights > 0))
    return space.bring(((weights / total) * y * by_row) @ X), n_active


def largest(block: Block, view: View) -> Vector:
    """The largest absolute value in each column of a block, among rows of positive weight."""
    largest = np.zeros(block.X.shape[1] if view.columns is None else len(view.columns))
    for space, X, _, weights in tiles(weigh(block, view), view):
        if X.shape[0]:
            magnitudes = space.xp.where((weights > 0)[:, None], space.xp.abs(X), space.xp.zeros_like(X))
            largest = np.maximum(largest, space.bring(space.xp.max(magnitudes, axis=0)))
    return largest


def fingerprints(block: Block, view: View, seed: int) -> Vector:
    """The product of each column with a random vector made from `seed`; equal columns have equal products."""
    space, _, _, weights = rows = weigh(block, view)
    vector = space.put(np.random.default_rng([seed, block.number]).standard_normal(weights.shape[0]))
    rows = rows._replace(weights=space.xp.where(weights > 0, vector, space.xp.zeros_like(vector)))
    return add_up(space.bring(tile.weights @ tile.X) for tile in tiles(rows, view))


def equal_to(block: Block, view: View, columns: Indices, firsts: Indices) -> Vector:
    """For every a, whether columns[a] and firsts[a] are equal columns of X, in rows of positive weight."""
    rows = weigh(block, view)
    space, _, _, weights = rows
    one, other = (show_columns(rows, view, which) for which in (columns, firsts))
    same = (one == other) | ~(weights > 0)[:, None]
    return space.bring(space.xp.all(same, axis=0))


def count_true(space: Space, flags: Any) -> int:
    return int(space.xp.sum(space.xp.astype(flags, space.xp.int64)))


class PanelBlock(NamedTuple):
    """A dense copy of q columns of X, made for the support search, with a block's rows of positive weight.

    Columns of X are stored as the first q rows of `values`; the next row is the intercept's column of ones.
    Entry i of both is multiplied by c_i and the label of row i, where c_i is the square root of row i's share
    in the total weight. The last row of `values` is c. The residuals at coefficients u are c - values[:-1]'u.
    """

    values: Any  # array of shape (q + 2, n_rows): columns of X as rows, then intercept, then c
    tags: Any  # a random number per row; their sum over the rows of positive loss identifies this set of rows


class NewtonTerms(NamedTuple):
    """The loss and the normal equations H u = z of a Newton step, as sums over the rows of a block."""

    loss: float
    H: Matrix  # the Gram matrix of the columns over the rows of positive loss
    z: Vector  # the products of the columns with the panel's vector c, over the rows of positive loss
    tag: float  # the sum of `PanelBlock.tags` over the rows of positive loss


def make_panel(
    block: Block, view: View, total: float, fit_intercept: bool, columns: Indices, size: int
) -> PanelBlock:
    """Copy the columns with the indices `columns` into a panel of `size` columns; the others are zeros.

    An index -1 gives a column of zeros, too. `total` is the weight of the rows of all blocks.
    """
    space, X, y, weights = weigh(block, view)
    xp = space.xp
    kept = xp.nonzero(weights > 0)[0]
    everything = kept.shape[0] == y.shape[0]
    y, weights = (array if everything else xp.take(array, kept, axis=0) for array in (y, weights))
    c = xp.sqrt(weights / total)
    t = y * c
    values = space.zeros((size + 2, c.shape[0]))
    end = 1 + int(np.flatnonzero(columns >= 0).max(initial=-1))  # all entries of columns[end:] are -1
    if end:  # otherwise no column is wanted, and X need not be read
        for rows in row_slices(space, c.shape[0], X.shape[1]):
            X_rows = X[rows, :] if everything else xp.take(X, kept[rows], axis=0)
            tile = ViewedRows(space, X_rows, y, weights)
            filled = show_columns(tile, view, np.maximum(columns[:end], 0))
            values[:end, rows] = filled.T * t[rows]
    for place in np.flatnonzero(columns[:end] < 0):
        values[int(place), :] = 0.0
    if fit_intercept:
        values[size, :] = t
    values[size + 1, :] = c
    tags = np.random.default_rng([1, block.number]).random(c.shape[0])
    return PanelBlock(values, space.put(tags))


def evaluate(panel: PanelBlock, idx: Indices, u: Vector) -> NewtonTerms:
    """Return the loss and the terms of a Newton step at the coefficients u of the panel's columns `idx`."""
    space, columns, residual = _at(panel, idx, u)
    active = space.xp.nonzero(squared_hinge.is_active(residual))[0]
    columns, target = (space.xp.take(a, active, axis=-1) for a in (columns, panel.values[-1, :]))
    H, z = space.bring(columns @ columns.T), space.bring(columns @ target)
    return NewtonTerms(squared_hinge.total_value(residual, xp=space.xp), H, z, _tag(space, panel, residual))


def full_gram(panel: PanelBlock, idx: Indices | None, u: Vector | None) -> tuple[Matrix, float]:
    """The panel's Gram matrix over rows of positive loss at u (None: all rows), and the sum of their tags."""
    if idx is None or u is None:
        idx, u = np.empty(0, np.int64), np.empty(0)  # without coefficients, every row has a positive loss
    space, _, residual = _at(panel, idx, u)
    values = space.xp.take(panel.values, space.xp.nonzero(squared_hinge.is_active(residual))[0], axis=1)
    return space.bring(values @ values.T), _tag(space, panel, residual)


def slope_along(panel: PanelBlock, idx: Indices, u: Vector, d: Vector, t: float) -> tuple[float, float]:
    """First and second derivative with respect to t of the loss at coefficients u + t d of columns `idx`."""
    space, columns, residual = _at(panel, idx, u)
    delta = space.put(d) @ columns
    residual = residual - float(t) * delta
    moving = space.xp.where(squared_hinge.is_active(residual), delta, space.xp.zeros_like(delta))
    return -float(delta @ squared_hinge.slopes(residual, space.xp)), float(moving @ moving)


def descents_and_curvatures(panel: PanelBlock, idx: Indices, u: Vector) -> tuple[Vector, Vector]:
    """Minus the gradient of the loss at the coefficients u of columns `idx`, and its second derivatives."""
    space, columns, residual = _at(panel, idx, u)
    active = space.xp.where(squared_hinge.is_active(residual), columns, space.xp.zeros_like(columns))
    by_row = squared_hinge.slopes(residual, space.xp)
    return space.bring(columns @ by_row), space.bring(space.xp.sum(active * active, axis=1))


def triangle(panel: PanelBlock, idx: Indices, u: Vector) -> Matrix:
    """The factor R of a QR factorisation of [A, r], for the rows of positive loss at coefficients u.

    A has the panel's columns `idx`, and r is the residual at u. Least squares with R has the same solution as
    with these rows, and is better conditioned than the normal equations.
    """
    space, columns, residual = _at(panel, idx, u)
    active = space.xp.nonzero(squared_hinge.is_active(residual))[0]
    if active.shape[0] == 0:
        return np.zeros((0, len(idx) + 1))
    beside = space.xp.concat([columns, residual[None, :]], axis=0)
    return space.bring(space.xp.linalg.qr(space.xp.take(beside, active, axis=1).T)[1])


def _at(panel: PanelBlock, idx: Indices, u: Vector) -> tuple[Space, Any, Any]:
    """Return the device, the panel's columns `idx` (as rows), and the residuals at their coefficients u."""
    space = space_of(panel.values)
    columns = space.xp.take(panel.values, space.put(idx), axis=0)
    return space, columns, panel.values[-1, :] - space.put(u) @ columns


def _tag(space: Space, panel: PanelBlock, residual: Any) -> float:
    """The sum of the random tags of the rows of positive loss; if it changes, the set of rows has changed."""
    tags = space.xp.where(squared_hinge.is_active(residual), panel.tags, space.xp.zeros_like(panel.tags))
    return float(space.xp.sum(tags))


def rows_of_part(block: Block, part: Part) -> tuple[Indices, Indices, Vector]:
    """Return the indices of rows in `part` with positive weight; class codes and weights of all rows."""
    space = space_of(block.codes)
    codes, repeats = space.bring(block.codes), space.bring(block.repeats)
    return np.flatnonzero(part.rows(block.number, codes) & (repeats > 0)), codes, repeats


def class_totals(block: Block, part: Part, n_classes: int) -> Matrix:
    """Count the rows of each class: training rows in result[0], test rows `part` in result[1]."""
    parts = part._replace(inside=not part.inside), part
    known = [rows_of_part(block, each) for each in parts]
    return np.array([np.bincount(codes[rows], minlength=n_classes) for rows, codes, _ in known])


def weight_sums(block: Block, part: Part, weighted: bool) -> Matrix:
    """Return m = max(w), sum(w / m), sum((w / m)^2) for the weights w in `part`, all 1 unless `weighted`."""
    rows, _, repeats = rows_of_part(block, part)
    weights = repeats[rows] if weighted else np.ones(len(rows))
    largest = weights.max(initial=0.0)
    relative = weights / largest if largest > 0 else weights
    return np.array([largest, relative.sum(), relative @ relative])


def confusions(
    block: Block,
    part: Part,
    columns: Indices,
    coefs: Matrix,
    intercepts: Matrix,
    n_classes: int,
    multi_class: str,
    weighted: bool,
) -> Matrix:
    """Each model's confusion matrix for the rows in `part`: true classes as rows, predicted as columns.

    `coefs` has the coefficients of `columns`, by model (first axis) and binary classifier (second axis).
    Entries are sums of sample weights if `weighted` is True, otherwise numbers of rows.
    """
    space = space_of(block.X)
    rows, codes, repeats = rows_of_part(block, part)
    weights = repeats[rows] if weighted else np.ones(len(rows))
    X = space.xp.take(block.X, space.put(columns), axis=1)
    X = space.bring(space.xp.take(X, space.put(rows), axis=0))
    counts = np.zeros((len(coefs), n_classes, n_classes))
    for at, (coef, intercept) in enumerate(zip(coefs, intercepts, strict=True)):
        scores = combine_decisions(X @ coef.T + intercept, n_classes, multi_class)
        predicted = choose_classes(scores, np.arange(n_classes))
        np.add.at(counts[at], (codes[rows], predicted), weights)
    return counts


class Findings(NamedTuple):
    """The result of checking one block: its shape, its classes, and errors in X, y or the weights."""

    shape: tuple[int, ...]  # the shape of X
    n_labels: int  # the number of entries of y
    n_weights: int  # the number of sample weights
    unusable: tuple[str, int] | None  # "NaN" or "infinity", and the first column of X with it
    complaint: str  # an error message about the labels, or ""
    bad_weight: tuple[int, float] | None  # index and value of a negative or not finite sample weight
    classes: np.ndarray  # the distinct labels in the block, sorted
    counts: Indices  # number of rows of each class
    totals: Vector  # sum of the sample weights of each class


def examine(block: Block) -> Findings:
    """Check a block, whose field `codes` still has the user's labels; return its size, classes and errors."""
    _, X, y, weights = block
    if not isinstance(X, np.ndarray) or isinstance(X, np.ma.MaskedArray):
        raise TypeError(foreign_blocks(X))
    classes, complaint = _classes_of(y)
    counts, totals = np.zeros(len(classes), dtype=np.int64), np.zeros(len(classes))
    if len(y) == len(weights) == len(X) and not complaint:
        codes = np.searchsorted(classes, y)
        counts += np.bincount(codes, minlength=len(classes))
        totals += np.bincount(codes, weights=weights, minlength=len(classes))
    errors = _unusable(X), complaint, find_bad_weight(weights)
    return Findings(X.shape, len(y), len(weights), *errors, classes, counts, totals)


def to_codes(y: np.ndarray, classes: np.ndarray) -> Indices:
    """Return the position of each label in `classes`, with the smallest dtype that can hold all positions."""
    return np.searchsorted(classes, y).astype(np.min_scalar_type(-len(classes)))


def _unusable(X: np.ndarray) -> tuple[str, int] | None:
    """Return "NaN" or "infinity" and the first column of X that has it; None if all entries are finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum(dtype=np.float64)):  # if so, all entries are finite; the sum needs no copy of X
            return None
    columns = np.flatnonzero(~np.isfinite(X).all(axis=0))
    if len(columns) == 0:
        return None
    column = int(columns[0])
    return "NaN" if np.isnan(X[:, column]).any() else "infinity", column


def _classes_of(y: np.ndarray) -> tuple[np.ndarray, str]:
    """Return the distinct labels, sorted, and an error message, which is "" if all labels are valid."""
    nothing = y[:0]
    if y.ndim != 1:
        return nothing, f"y should be a 1d array, got an array of {y.ndim} dimensions instead."
    if y.dtype.kind == "f" and np.isnan(y).any():
        return nothing, "y contains NaN. Leave such rows out, or give them a class."
    if y.dtype.kind == "O" and any(map(_is_missing, y)):
        return nothing, "y contains missing values. Leave such rows out, or give them a class."
    if y.dtype.kind == "f":
        between = y[y != np.round(y)]
        if len(between):
            return nothing, (
                f"Unknown label type: continuous. y holds {between[0]:g}, which is not a class. "
                "Give labels, or numbers rounded to whole ones."
            )
    try:
        return np.unique(y), ""
    except TypeError:
        return nothing, "y holds labels that cannot be put in order. Give labels of one kind."


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:
        return True  # pandas.NA: a comparison with it has no truth value
