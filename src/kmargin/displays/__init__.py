"""Plots with the interface of scikit-learn's displays: `from_estimator`, `plot`, `ax_` and `figure_`.

matplotlib is imported only when something is drawn.
"""

from kmargin.displays.against_k import CVScoreDisplay, SparsityPathDisplay
from kmargin.displays.coefficients import CoefficientDisplay
from kmargin.displays.convergence import ConvergenceDisplay

__all__ = ["CVScoreDisplay", "CoefficientDisplay", "ConvergenceDisplay", "SparsityPathDisplay"]
