"""A case: data in some form, and what is called with them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sklearn

import kmargin
from fuzz import clock
from fuzz.forms import FOREIGN, dress


@dataclass(frozen=True)
class Case:
    """All of it follows from the number."""

    number: int
    family: str
    data: Any  # the numbers of X, as an array
    y: Any
    call: str  # a class of kmargin, or "sparse_svm_path"
    params: dict = field(default_factory=dict)
    sample_weight: Any = None
    form: str = "c"
    must_fail: bool = False  # with one clear sentence

    @property
    def X(self):
        """The data in their form."""
        return dress(self.data, self.form, np.random.default_rng([self.number, 1]))

    def rng(self, purpose):
        """Random numbers of its own for each purpose, so that one cannot disturb another."""
        return np.random.default_rng([self.number, *purpose.encode()])

    def given(self):
        """X, y and weights as they are handed over."""
        if self.must_fail:
            return self.data, self.y, self.sample_weight
        X, y, weight = self.X, self.y, self.sample_weight
        if self.form == "dask":
            import dask.array

            y, weight = (
                a if a is None else dask.array.from_array(np.asarray(a), chunks=(X.chunks[0],))
                for a in (y, weight)
            )
        elif self.form in FOREIGN and y.dtype.kind in "biuf":
            y = dress(y, self.form, None)
            weight = weight if weight is None else dress(np.asarray(weight, float), self.form, None)
        return X, y, weight

    def fit(self):
        """The fitted model, or the path; each has its own time."""
        clock.restart()
        X, y, weight = self.given()
        with sklearn.config_context(array_api_dispatch=self.form in ("strict", "torch")):
            if self.call == "sparse_svm_path":
                return kmargin.sparse_svm_path(X, y, sample_weight=weight, **self.params)
            return getattr(kmargin, self.call)(**self.params).fit(X, y, sample_weight=weight)

    def run(self):
        """Fit and judge: what is wrong, as a list of sentences."""
        from fuzz.judge import judge

        return judge(self).failures
