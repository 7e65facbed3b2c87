"""Arguments that make no sense: each must end with one clear sentence."""

import numpy as np

from kmargin import MM, SD, Exchange

PARAMETERS = {
    "SparseSVC": [
        *({"k": k} for k in (-1, 1.5, True, "most", None, np.nan, [3])),
        *({"C": C} for C in (0, -1.0, np.nan, "1", None, True, -np.inf)),
        *(
            {"solver": solver}
            for solver in ("exchnge", None, 3, Exchange, MM(rho_growth=0.5), SD(max_outer=0))
        ),
        *({"solver": solver} for solver in (Exchange(effort="none"), MM(gtol=np.nan), MM(start="cold"))),
        {"multi_class": "ovx"},
        {"multi_class": None},
        *({"class_weight": {0: value, 1: 1.0}} for value in (-1, np.nan, np.inf, 0.0, "much")),
        {"class_weight": "even"},
    ],
    "sparse_svm_path": [
        *({"ks": ks} for ks in ([], "all", 0, -3, [-1], [1.5], ["most"], 2.5, True)),
        {"C": -1.0},
    ],
    "SparseSVCCV": [
        *({"Cs": Cs} for Cs in ([], "1", [-1.0], None, [np.nan])),
        *({"cv": cv} for cv in (1, 0, -2, 1000, "five", [])),
        {"selection": "worst"},
        {"scoring": "accurasy"},
        {"ks": []},
    ],
    "KernelSparseSVC": [
        {"kernel": "rbv"},
        *({"gamma": gamma} for gamma in (0, -1.0, np.nan, np.inf, "scales", None)),
        *({"cache_size": size} for size in (0, -1, np.inf, "big")),
        *({"n_candidates": count} for count in (0, -3, 1.5, "some")),
        {"kernel": "precomputed"},
        *({"kernel": "poly", "degree": degree} for degree in (np.nan, "three", None)),
        *({"kernel": "poly", "coef0": coef0} for coef0 in (np.nan, np.inf, "zero")),
    ],
}


def _with(X, at, value):
    X.flat[at] = value
    return X


DATA = [
    lambda X, y, w: (_with(X, 0, np.nan), y, w),
    lambda X, y, w: (_with(X, -1, -np.inf), y, w),
    lambda X, y, w: (X[:, 0], y, w),
    lambda X, y, w: (X[None], y, w),
    lambda X, y, w: (X[:0], y[:0], w),
    lambda X, y, w: (X[:, :0], y, w),
    lambda X, y, w: (X + 1j, y, w),
    lambda X, y, w: (X.astype(str) + "m", y, w),
    lambda X, y, w: (None, y, w),
    lambda X, y, w: (X, y[:-1], w),
    lambda X, y, w: (X, None, w),
    lambda X, y, w: (X, np.zeros(len(y)), w),
    lambda X, y, w: (X, np.where(y, np.nan, 0.0), w),
    lambda X, y, w: (X, y + 0.25 * np.arange(len(y)), w),
    lambda X, y, w: (X, np.column_stack([y, y]), w),
    lambda X, y, w: (X, y, np.ones(len(y) + 1)),
    lambda X, y, w: (X, y, np.zeros(len(y))),
    lambda X, y, w: (X, y, -np.ones(len(y))),
    lambda X, y, w: (X, y, np.full(len(y), np.nan)),
    lambda X, y, w: (X, y, np.where(y, np.inf, 1.0)),
    lambda X, y, w: (X, y, (y == 1).astype(float)),
    lambda X, y, w: (X, y, np.ones((len(y), 2))),
    lambda X, y, w: (X, y, ["heavy"] * len(y)),
]


def bad_arguments(rng):
    n, p = int(rng.integers(6, 20)), int(rng.integers(2, 6))
    X, y = rng.standard_normal((n, p)), np.arange(n) % 2
    call = str(rng.choice(list(PARAMETERS)))
    if rng.random() < 0.4:
        X, y, weight = DATA[rng.integers(0, len(DATA))](X, y, None)
        return {"data": X, "y": y, "call": call, "sample_weight": weight, "must_fail": True}
    params = PARAMETERS[call][rng.integers(0, len(PARAMETERS[call]))]
    return {"data": X, "y": y, "call": call, "params": dict(params), "must_fail": True}
