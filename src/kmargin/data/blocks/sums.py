"""Questions asked of one block of rows, as pure functions; the caller adds up the answers of all blocks."""

from collections.abc import Callable, Iterable, Iterator
from functools import reduce, wraps
from typing import Any, NamedTuple

import numpy as np

from kmargin.core import squared_hinge
from kmargin.core.arrays import Flags, Indices, Matrix, Space, Vector, space_of
from kmargin.core.labels import choose_classes, combine_decisions, find_bad_weight
from kmargin.data.blocks import Block, foreign_blocks

# So many numbers of X are made float64, or centred, or squared, at a time: what the caches of a processor
# hold, or what keeps a GPU busy.
TILE, GPU_TILE = 2**20, 2**24


class Part(NamedTuple):
    """The rows of some folds. Rows are dealt to the folds class by class within each block, or blocks as
    a whole.
    """

    n_folds: int
    fold: int
    inside: bool  # the rows of this fold, or all others
    seed: int = 0
    whole_blocks: bool = False

    def rows(self, number: int, codes: Vector) -> Flags:
        """Which rows of a block belong to this part."""
        if self.whole_blocks:
            return np.full(len(codes), (number % self.n_folds == self.fold) == self.inside)
        order = np.random.default_rng([self.seed, number]).permutation(len(codes))
        order = order[np.argsort(codes[order], kind="stable")]
        folds = np.empty(len(codes), np.int64)
        # Block i deals its first row to fold i mod n_folds. If every block began with fold 0, the rows of a
        # small class could all be dealt to that fold.
        folds[order] = (np.arange(len(codes)) + number) % self.n_folds
        return (folds == self.fold) == self.inside


class View(NamedTuple):
    """The rows, labels, weights and columns of every block that one binary problem uses."""

    positive: int  # the class with label 1
    negative: int | None  # the class with label -1; None for all others
    class_weight: Vector
    part: Part | None = None
    columns: Indices | None = None  # None for all
    center: Vector | None = None  # subtracted from each column
    scale: Vector | None = None  # divides each centred column


class Shown(NamedTuple):
    """The rows of a block as a binary problem uses them; rows outside its view have weight 0."""

    space: Space
    X: Any
    y: Any  # -1 or 1
    weights: Any


def label(block: Block, view: View) -> tuple[Space, Any, Any]:
    """Labels and weights, for which X need not be read."""
    space = space_of(block.codes)
    xp, codes = space.xp, block.codes
    weights = xp.take(space.put(view.class_weight), codes, axis=0) * block.repeats
    nothing = xp.zeros_like(weights)
    if view.negative is not None:
        weights = xp.where((codes == view.positive) | (codes == view.negative), weights, nothing)
    if view.part is not None:
        weights = xp.where(space.put(view.part.rows(block.number, space.bring(codes))), weights, nothing)
    y = xp.where(codes == view.positive, nothing + 1.0, nothing - 1.0)
    return space, y, weights


def weigh(block: Block, view: View) -> Shown:
    """Labels and weights, X as it is."""
    space, y, weights = label(block, view)
    return Shown(space, block.X, y, weights)


def tiles(shown: Shown, view: View) -> Iterator[Shown]:
    """The rows, some at a time, with all columns of a view: centred and scaled, as `wide` floats.

    A temporary copy of rows of X is thus never much larger than `TILE`, however many rows X has.
    """
    for rows in row_slices(shown.space, *shown.X.shape):
        tile = Shown(shown.space, shown.X[rows, :], shown.y[rows], shown.weights[rows])
        yield tile._replace(X=show_columns(tile, view, None))


def row_slices(space: Space, n_rows: int, n_columns: int) -> Iterator[slice]:
    """Some rows after the other; one slice even of no rows."""
    height = max(1, (TILE if space.on_cpu else GPU_TILE) // max(n_columns, 1))
    for start in range(0, max(n_rows, 1), height):
        yield slice(start, min(start + height, n_rows))


def show_columns(shown: Shown, view: View, columns: Indices | None) -> Any:
    """Some of the columns that a view shows; None for all of them. Not a copy if they are as in X."""
    space, X = shown.space, shown.X
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


def add_up(answers: Iterable[Any]) -> Any:
    """The sum of several answers, in their order; of tuples entry by entry.

    Added as they come: small results that wait between large work arrays would break up the memory.
    """
    return reduce(_add, answers)


def _add(one: Any, other: Any) -> Any:
    if isinstance(one, tuple):
        return tuple(_add(*pair) for pair in zip(one, other, strict=True))
    return one + other


def by_tiles(question: Callable[..., Any]) -> Callable[..., Any]:
    """A sum over the rows of a block from one over those of a tile."""

    @wraps(question)
    def ask(block: Block, view: View, *args: Any) -> Any:
        return add_up(question(tile, *args) for tile in tiles(weigh(block, view), view))

    return ask


def count(block: Block, view: View) -> tuple[int, float]:
    """Rows that a view shows, and their total weight."""
    space, _, weights = label(block, view)
    return count_true(space, weights > 0), float(space.xp.sum(weights))


@by_tiles
def first_moments(tile: Shown, total: float) -> tuple[Vector, float]:
    """The weighted mean of each column, and that of the labels."""
    space, X, y, weights = tile
    weights = weights / total
    return space.bring(weights @ X), float(weights @ y)


@by_tiles
def second_moments(tile: Shown, total: float, mean: Vector, mean_label: float) -> tuple[Vector, Vector]:
    """The weighted variance of each column, and its covariance with the labels."""
    space, X, y, weights = tile
    weights = weights / total
    with np.errstate(over="ignore", invalid="ignore"):  # columns that overflow are rescaled later
        X = X - space.put(mean)
        return space.bring(weights @ (X * X)), space.bring((weights * (y - mean_label)) @ X)


@by_tiles
def loss_and_gradient(tile: Shown, total: float, beta: Vector) -> tuple[float, Vector, float]:
    """The mean squared hinge, halved; its gradient; and the derivative for the intercept.

    The last of beta is the intercept.
    """
    space, X, y, weights = tile
    weights = weights / total
    decision = X @ space.put(beta[:-1]) + float(beta[-1])
    loss = squared_hinge.total_value(squared_hinge.residual_of(decision, y), weights, space.xp)
    pull = squared_hinge.derivatives(decision, y, weights, space.xp)
    return loss, space.bring(pull @ X), float(space.xp.sum(pull))


@by_tiles
def curvature_along(tile: Shown, total: float, direction: Vector) -> float:
    """The weighted mean of the squared decision values of a direction."""
    space, X, _, weights = tile
    decision = X @ space.put(direction[:-1]) + float(direction[-1])
    return float(((weights / total) * decision) @ decision)


@by_tiles
def slopes(tile: Shown, total: float, columns: Indices, u: Vector) -> tuple[Vector, int]:
    """X'(t slope) for a support and its coefficients; and how many rows are active.

    As `panel` has it: t = y sqrt(weight), resid = sqrt(weight) (1 - y decision).
    """
    space, X, y, weights = tile
    coef = np.zeros(X.shape[1])  # of all columns: to gather some takes longer than to multiply all
    coef[columns] = u[:-1]
    decision = X @ space.put(coef) + float(u[-1])
    resid = squared_hinge.residual_of(decision, y)
    short = squared_hinge.slopes(resid, space.xp)
    n_active = count_true(space, squared_hinge.is_active(resid) & (weights > 0))
    return space.bring(((weights / total) * y * short) @ X), n_active


def largest(block: Block, view: View) -> Vector:
    """The largest magnitude in each column."""
    return reduce(np.maximum, (_largest(tile) for tile in tiles(weigh(block, view), view)))


def _largest(tile: Shown) -> Vector:
    space, X, _, weights = tile
    if X.shape[0] == 0:
        return np.zeros(X.shape[1])
    magnitudes = space.xp.where((weights > 0)[:, None], space.xp.abs(X), space.xp.zeros_like(X))
    return space.bring(space.xp.max(magnitudes, axis=0))


def fingerprints(block: Block, view: View, seed: int) -> Vector:
    """Products of each column with random numbers: equal columns have equal ones."""
    space, _, _, weights = shown = weigh(block, view)
    vector = space.put(np.random.default_rng([seed, block.number]).standard_normal(weights.shape[0]))
    shown = shown._replace(weights=space.xp.where(weights > 0, vector, space.xp.zeros_like(vector)))
    return add_up(space.bring(tile.weights @ tile.X) for tile in tiles(shown, view))


def equal_to(block: Block, view: View, columns: Indices, firsts: Indices) -> Vector:
    """Whether each of some columns equals the one beside it in `firsts`, in this block."""
    shown = weigh(block, view)
    space, _, _, weights = shown
    one, other = (show_columns(shown, view, which) for which in (columns, firsts))
    same = (one == other) | ~(weights > 0)[:, None]
    return space.bring(space.xp.all(same, axis=0))


def count_true(space: Space, flags: Any) -> int:
    return int(space.xp.sum(space.xp.astype(flags, space.xp.int64)))


class PanelBlock(NamedTuple):
    """A block's part of a panel (see `solvers.panel`), without the rows of weight 0."""

    values: Any  # (q + 2, n_rows)
    tags: Any  # a random number per row: their sum over the active rows tells whether these changed


class Answer(NamedTuple):
    """The loss and the terms of a Newton step at given coefficients, as sums over rows."""

    loss: float  # halved
    H: Matrix  # the Gram matrix of the columns asked for, over the active rows
    z: Vector  # their products with the target
    tag: float  # equal for equal sets of active rows


def make_panel(
    block: Block, view: View, total: float, fit_intercept: bool, columns: Indices, size: int
) -> PanelBlock:
    """Room for `size` columns; those at places without a column (-1) are 0."""
    space, y, weights = label(block, view)
    xp = space.xp
    kept = xp.nonzero(weights > 0)[0]
    everything = kept.shape[0] == y.shape[0]
    y, weights = (array if everything else xp.take(array, kept, axis=0) for array in (y, weights))
    c = xp.sqrt(weights / total)
    t = y * c
    values = space.zeros((size + 2, c.shape[0]))
    end = 1 + int(np.flatnonzero(columns >= 0).max(initial=-1))  # beyond it all places are empty
    if end:  # else X need not be read
        X = block.X
        for rows in row_slices(space, c.shape[0], X.shape[1]):
            tile = Shown(space, X[rows, :] if everything else xp.take(X, kept[rows], axis=0), y, weights)
            filled = show_columns(tile, view, np.maximum(columns[:end], 0))
            values[:end, rows] = filled.T * t[rows]
    for place in np.flatnonzero(columns[:end] < 0):
        values[int(place), :] = 0.0
    if fit_intercept:
        values[size, :] = t
    values[size + 1, :] = c
    tags = np.random.default_rng([1, block.number]).random(c.shape[0])
    return PanelBlock(values, space.put(tags))


def evaluate(panel: PanelBlock, idx: Indices, u: Vector) -> Answer:
    """The loss at u and the quadratic that holds there."""
    space, columns, resid = _at(panel, idx, u)
    H, z = _gram(space, columns, panel.values[-1, :], resid)
    return Answer(squared_hinge.total_value(resid, xp=space.xp), H, z, _tag(space, panel, resid))


def full_gram(panel: PanelBlock, idx: Indices | None, u: Vector | None) -> tuple[Matrix, float]:
    """The Gram matrix of the whole panel over the rows active at u, or over all of them."""
    if idx is None or u is None:
        idx, u = np.empty(0, np.int64), np.empty(0)  # residuals are c, positive everywhere
    space, _, resid = _at(panel, idx, u)
    values = space.xp.take(panel.values, space.xp.nonzero(squared_hinge.is_active(resid))[0], axis=1)
    return space.bring(values @ values.T), _tag(space, panel, resid)


def slope_along(panel: PanelBlock, idx: Indices, u: Vector, d: Vector, t: float) -> tuple[float, float]:
    """Slope and curvature of the loss at u + t d."""
    space, columns, resid = _at(panel, idx, u)
    delta = space.put(d) @ columns
    resid = resid - float(t) * delta
    moving = space.xp.where(squared_hinge.is_active(resid), delta, space.xp.zeros_like(delta))
    return -float(delta @ squared_hinge.slopes(resid, space.xp)), float(moving @ moving)


def pulls_and_bends(panel: PanelBlock, idx: Indices, u: Vector) -> tuple[Vector, Vector]:
    """Products of each column with the slopes at u, and its sum of squares over the active rows."""
    space, columns, resid = _at(panel, idx, u)
    active = space.xp.where(squared_hinge.is_active(resid), columns, space.xp.zeros_like(columns))
    short = squared_hinge.slopes(resid, space.xp)
    return space.bring(columns @ short), space.bring(space.xp.sum(active * active, axis=1))


def triangle(panel: PanelBlock, idx: Indices, u: Vector) -> Matrix:
    """The triangle R of a QR factorisation of the active rows, their residuals beside them.

    Least squares with R have the solution of those with all rows, and nothing was squared.
    """
    space, columns, resid = _at(panel, idx, u)
    active = space.xp.nonzero(squared_hinge.is_active(resid))[0]
    if active.shape[0] == 0:
        return np.zeros((0, len(idx) + 1))
    beside = space.xp.concat([columns, resid[None, :]], axis=0)
    return space.bring(space.xp.linalg.qr(space.xp.take(beside, active, axis=1).T)[1])


def _at(panel: PanelBlock, idx: Indices, u: Vector) -> tuple[Space, Any, Any]:
    """Some columns of a panel, one per row, and the residuals for their coefficients u."""
    space = space_of(panel.values)
    columns = space.xp.take(panel.values, space.put(idx), axis=0)
    return space, columns, panel.values[-1, :] - space.put(u) @ columns


def _gram(space: Space, columns: Any, target: Any, resid: Any) -> tuple[Matrix, Vector]:
    active = space.xp.nonzero(squared_hinge.is_active(resid))[0]
    columns = space.xp.take(columns, active, axis=1)
    return space.bring(columns @ columns.T), space.bring(columns @ space.xp.take(target, active, axis=0))


def _tag(space: Space, panel: PanelBlock, resid: Any) -> float:
    """The sum of the random tags of the active rows, which shows whether the set of active rows changed."""
    tags = space.xp.where(squared_hinge.is_active(resid), panel.tags, space.xp.zeros_like(panel.tags))
    return float(space.xp.sum(tags))


def rows_of_part(block: Block, part: Part) -> tuple[Indices, Indices, Vector]:
    """The numbers of the rows of a part that have a weight; codes and weights of all rows of the block."""
    space = space_of(block.codes)
    codes, repeats = space.bring(block.codes), space.bring(block.repeats)
    return np.flatnonzero(part.rows(block.number, codes) & (repeats > 0)), codes, repeats


def class_totals(block: Block, part: Part, n_classes: int) -> Matrix:
    """Rows of each class outside a part, and inside it."""
    parts = part._replace(inside=not part.inside), part
    known = [rows_of_part(block, each) for each in parts]
    return np.array([np.bincount(codes[rows], minlength=n_classes) for rows, codes, _ in known])


def weight_sums(block: Block, part: Part, weighted: bool) -> Matrix:
    """Of the rows of a part: the largest weight; relative to it, the sums of weights and of their squares."""
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
    """For each model: how often each class (rows) was taken for each other (columns), in a part.

    `coefs` are those of some columns, for each model and machine.
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
    """What there is to know of one block."""

    shape: tuple[int, ...]  # of X
    n_labels: int
    n_weights: int
    unusable: tuple[str, int] | None  # what X has in which column that it must not have
    complaint: str  # about labels
    bad_weight: tuple[int, float] | None
    classes: np.ndarray
    counts: Indices  # rows of each class
    totals: Vector  # their sample weights


def examine(block: Block) -> Findings:
    """Look at one block, its labels still as they were given."""
    _, X, y, weights = block
    if not isinstance(X, np.ndarray) or isinstance(X, np.ma.MaskedArray):
        raise TypeError(foreign_blocks(X))
    classes, complaint = _classes_of(y)
    counts, totals = np.zeros(len(classes), dtype=np.int64), np.zeros(len(classes))
    if len(y) == len(weights) == len(X) and not complaint:
        codes = np.searchsorted(classes, y)
        counts += np.bincount(codes, minlength=len(classes))
        totals += np.bincount(codes, weights=weights, minlength=len(classes))
    return Findings(
        X.shape,
        len(y),
        len(weights),
        _unusable(X),
        complaint,
        find_bad_weight(weights),
        classes,
        counts,
        totals,
    )


def to_codes(y: np.ndarray, classes: np.ndarray) -> Indices:
    """The position of each label among the classes, in as few bytes as possible."""
    return np.searchsorted(classes, y).astype(np.min_scalar_type(-len(classes)))


def _unusable(X: np.ndarray) -> tuple[str, int] | None:
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum(dtype=np.float64)):  # as a rule, and then one pass without a copy is all
            return None
    columns = np.flatnonzero(~np.isfinite(X).all(axis=0))
    if len(columns) == 0:
        return None
    column = int(columns[0])
    return "NaN" if np.isnan(X[:, column]).any() else "infinity", column


def _classes_of(y: np.ndarray) -> tuple[np.ndarray, str]:
    """The distinct labels, and what is wrong with them."""
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
        return True  # pandas.NA, neither equal to itself nor unequal
