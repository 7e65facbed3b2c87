"""Every inner iteration of MM, for four values of rho."""

import matplotlib.pyplot as plt

from kmargin import MM, ConvergenceDisplay, SparseSVC
from kmargin.datasets import make_sparse_hyperplane

X, y = make_sparse_hyperplane(200, 40, 5, random_state=0)
solver = MM(trace="steps", rhos=[1, 10, 100, 1000])
ConvergenceDisplay.from_estimator(SparseSVC(k=5, solver=solver).fit(X, y))
plt.show()
