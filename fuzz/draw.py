"""Labels, weights, sizes and settings, drawn."""

import numpy as np

from kmargin import MM, SD, Exchange

LABELS = (
    np.array([0, 1, 2, 3, 4, 5]),
    np.array([-1, 1, 5, 7, 8, 100]),
    np.array(["no", "yes", "perhaps", "often", "rarely", "x"]),
    np.array([0.0, 1.0, 2.0, 3.0, 10.0, 11.0]),
)


def size(rng, smallest, largest):
    """Small ones more often than large ones."""
    return round(np.exp(rng.uniform(np.log(smallest), np.log(largest))))


def units(X):
    """The columns of X brought to order one, whatever they were."""
    largest = np.abs(X).max(axis=0, initial=0.0)
    return X / np.where(largest > 0, largest, 1.0)


def codes(rng, X, n_classes, separable=False):
    """Class numbers that depend on X more or less; every class occurs where there are rows enough."""
    n, p = X.shape
    Z = units(X)
    truth = rng.standard_normal((p, n_classes)) * (rng.random((p, 1)) < min(1.0, 4 / p))
    noise = 0.0 if separable else rng.choice([0.1, 1.0, 100.0])
    signal = Z @ truth
    spread = signal.std() or 1.0
    found = np.argmax(signal / spread + noise * rng.standard_normal((n, n_classes)), axis=1)
    if not separable:
        found[: min(n, n_classes)] = np.arange(min(n, n_classes))
    return found


def labels(rng, codes):
    """The same in words or numbers."""
    if len(np.unique(codes)) == 2 and codes.max() == 1 and rng.random() < 0.1:
        return codes.astype(bool)
    names = LABELS[rng.integers(0, len(LABELS))]
    return names[codes]


def weights(rng, n):
    """Sample weights, within a factor of 1e12 of each other."""
    kind = rng.choice(["ints", "uniform", "zeros", "tiny", "huge", "wide"])
    if kind == "ints":
        return rng.integers(1, 5, n)
    if kind == "zeros":
        return rng.integers(0, 3, n).astype(float)
    if kind == "wide":
        return 10.0 ** rng.uniform(-6, 6, n)
    return rng.random(n) * {"uniform": 1.0, "tiny": 1e-40, "huge": 1e40}[kind]


def class_weight(rng, names):
    """What a caller may say of classes."""
    if rng.random() < 0.5:
        return "balanced"
    return {name: float(10.0 ** rng.uniform(-3, 3)) for name in names.tolist()}


def C(rng):
    kind = rng.random()
    if kind < 0.2:
        return np.inf
    if kind < 0.4:
        return float(10.0 ** rng.uniform(-12, 12))
    if kind < 0.6:
        return float(10.0 ** rng.integers(-3, 7))
    return float(10.0 ** rng.uniform(-3, 3))


def k(rng, p):
    kind = rng.random()
    if kind < 0.08:
        return "all"
    if kind < 0.2:
        return int(rng.integers(0, p + 6))
    if kind < 0.35:
        return p
    return min(size(rng, 1, 20), p)


def solver(rng, annealing=False):
    """A name or an object; the paper's solvers with few steps more often than with all."""
    if not annealing:
        return Exchange(effort="thorough") if rng.random() < 0.15 else "exchange"
    make = MM if rng.random() < 0.6 else SD
    knobs = {}
    if rng.random() < 0.7:
        knobs = {"max_outer": int(rng.integers(1, 30)), "max_inner": int(rng.integers(1, 200))}
    if rng.random() < 0.15:
        knobs["polish"] = True
    if rng.random() < 0.15:
        knobs["start"] = "normal"
    return make(**knobs)


def request(rng, p):
    """What is said about features: some of it, and so that it makes sense."""
    said = {}
    columns = rng.permutation(p)
    if p > 2 and rng.random() < 0.5:
        labels = rng.integers(0, max(2, p // 2), p)
        if len(np.unique(labels)) > 1:
            said["groups"] = [f"group {label}" for label in labels] if rng.random() < 0.5 else labels.tolist()
    n_keep, n_avoid = int(rng.integers(0, 1 + p // 4)), int(rng.integers(0, 1 + p // 3))
    if n_keep and rng.random() < 0.4:
        said["keep"] = columns[:n_keep].tolist()
    if n_avoid and rng.random() < 0.4:
        said["avoid"] = columns[n_keep : n_keep + n_avoid].tolist()
    if rng.random() < 0.4:
        said["signs"] = rng.choice([-1, 0, 0, 1], p).tolist()
    return said
