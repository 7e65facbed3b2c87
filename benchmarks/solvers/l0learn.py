"""L0Learn: L0 and L2 penalties on the squared hinge, coordinate descent with local search.

Its last release has wheels up to Python 3.10 and no source; elsewhere it counts as not installed.
"""

from collections.abc import Sequence

import numpy as np

from benchmarks.solvers.fit import Competitor, Fit, two_class_fit

GAMMAS = {"num_gamma": 4, "gamma_max": 10.0, "gamma_min": 1e-3}
SETTINGS = {"loss": "SquaredHinge", "penalty": "L0L2", "algorithm": "CDPSI"}


class L0Learn(Competitor):
    """A path of penalties; for k features, the model with the most features up to k."""

    name = "l0learn"
    module = "l0learn"
    distribution = "l0learn"
    levels = "k"

    def fixed(self, X: np.ndarray, y: np.ndarray, k: int, lam: float) -> Fit:
        import l0learn

        # its loss is a sum without the factor 1/2: gamma ||w||^2 is our lam/2 ||w||^2 at gamma = n lam
        gamma = len(y) * lam
        path = l0learn.fit(
            np.asfortranarray(X),
            y.astype(float),
            max_support_size=k,
            num_gamma=1,
            gamma_max=gamma,
            gamma_min=gamma,
            **SETTINGS,
        )
        sizes = np.array(path.support_size[0])
        chosen = int(np.argmax(np.where(sizes <= k, sizes, -1)))
        coef = path.coeffs[0][:, chosen].toarray().ravel()
        return two_class_fit(y, coef, path.intercepts[0][chosen], k)

    def crossval(
        self, X: np.ndarray, y: np.ndarray, ks: Sequence[int], lams: Sequence[float], folds: np.ndarray
    ) -> Fit:
        """Its own cross-validation: as many folds, drawn by itself."""
        import l0learn

        search = l0learn.cvfit(
            np.asfortranarray(X),
            y.astype(float),
            num_folds=len(np.unique(folds)),
            max_support_size=max(ks),
            **GAMMAS,
            **SETTINGS,
        )
        gamma = int(np.argmin([np.min(means) for means in search.cv_means]))
        chosen = int(np.argmin(search.cv_means[gamma]))
        coef = search.coeffs[gamma][:, chosen].toarray().ravel()
        return two_class_fit(y, coef, search.intercepts[gamma][chosen], np.count_nonzero(coef))
