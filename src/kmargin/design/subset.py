"""Some columns of a design, left where they are."""

from typing import Any

import numpy as np

from kmargin.design.affine import InUnits
from kmargin.design.protocol import Design, Moments, ThinSVD
from kmargin.types import Indices, Matrix, Vector


class ColumnSubset(InUnits):
    """Answers for some columns by asking the whole: nothing is copied."""

    def __init__(self, whole: Design, columns: Indices) -> None:
        self.whole = whole
        self.columns = columns
        self.fit_intercept = whole.fit_intercept
        self.n_samples, self.n_features = whole.n_samples, len(columns)
        self.n_parameters = self.n_features + int(whole.fit_intercept)

    @property
    def stored(self) -> Any:
        return self.whole.take(self.columns).stored

    def decision(self, beta: Vector) -> Vector:
        product = self.product(np.arange(self.n_features), beta[: self.n_features])
        return product + beta[-1] if self.fit_intercept else product

    def adjoint(self, v: Vector) -> Vector:
        product = self.slopes(v)
        return np.append(product, v.sum()) if self.fit_intercept else product

    def slopes(self, v: Vector) -> Vector:
        return self.whole.slopes(v)[self.columns]

    def product(self, columns: Indices, d: Vector) -> Vector:
        return self.whole.product(self.columns[columns], d)

    def fill_panel(self, columns: Indices, t: Vector, places: Indices, panel: Matrix) -> None:
        self.whole.fill_panel(self.columns[columns], t, places, panel)

    def block(self, rows: Indices, columns: Indices) -> Matrix:
        return self.whole.block(rows, self.columns[columns])

    def spread(self, c: Vector) -> Vector:
        return self.whole.spread(c)[self.columns]

    def mean(self, c: Vector) -> Vector:
        return self.whole.mean(c)[self.columns]

    def moments(self, weights: Vector, v: Vector) -> Moments:
        return Moments(*(moment[self.columns] for moment in self.whole.moments(weights, v)))

    def fits(self, n_numbers: int) -> bool:
        return self.whole.fits(n_numbers)

    def distinct_columns(self) -> Indices:
        return self.whole.take(self.columns).distinct_columns()

    def subset(self, columns: Indices) -> Design:
        return ColumnSubset(self.whole, self.columns[columns])

    def take(self, columns: Indices) -> Design:
        return self.whole.take(self.columns[columns])

    def take_rows(self, rows: Indices) -> Design:
        return self.whole.take_rows(rows).take(self.columns)

    def standardized(self, mean: Vector, spread: Vector) -> Design:
        return self.whole.take(self.columns).standardized(mean, spread)

    def largest(self) -> Vector:
        return self.whole.take(self.columns).largest()

    def unit(self) -> float:
        return self.whole.take(self.columns).unit()

    def thin_svd(self, weights: Vector) -> ThinSVD:
        return self.whole.take(self.columns).thin_svd(weights)
