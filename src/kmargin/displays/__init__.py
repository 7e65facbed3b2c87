"""Plots in the manner of scikit-learn's displays: numbers first, then `plot`, then `ax_` and `figure_`.

matplotlib is imported when something is drawn.
"""

from kmargin.displays.against_k import CVScoreDisplay, SparsityPathDisplay
from kmargin.displays.coefficients import CoefficientDisplay
from kmargin.displays.convergence import ConvergenceDisplay

__all__ = ["CVScoreDisplay", "CoefficientDisplay", "ConvergenceDisplay", "SparsityPathDisplay"]
