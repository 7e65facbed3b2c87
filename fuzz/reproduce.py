"""A failing case as a few lines that show it."""

import numpy as np

from fuzz.families import make_case

SMALL = 80  # numbers that a reader can still look at


def few_lines(number, failures):
    """Python that runs the case: with its numbers written out where they are few."""
    case = make_case(number)
    remarks = "".join(f"# {failure}\n" for failure in failures)
    head = f"# case {case.number}, {case.family}\n{remarks}"
    short = f"from fuzz import make_case\n\nprint(make_case({case.number}).run())\n"
    plain = isinstance(case.data, np.ndarray) and case.form in ("c", "csr", "fortran")
    if not plain or case.data.size > SMALL or case.must_fail:
        return (
            head
            + short
            + f"# {case.call}({_arguments(case.params)}), X {np.shape(case.data)} as {case.form}\n"
        )
    return head + _written_out(case) + f"# or: {short.splitlines()[-1]}\n"


def _written_out(case):
    lines = ["import numpy as np", "import scipy.sparse", "from kmargin import *  # noqa: F403", ""]
    with np.printoptions(threshold=10_000, floatmode="unique", linewidth=110):
        lines.append(f"X = np.{_array(case.data)}")
        if case.form != "c":
            lines.append(
                {"csr": "X = scipy.sparse.csr_matrix(X)", "fortran": "X = np.asfortranarray(X)"}[case.form]
            )
        lines.append(f"y = np.{_array(case.y)}")
        weight = "None" if case.sample_weight is None else "np." + _array(np.asarray(case.sample_weight))
    if case.call == "sparse_svm_path":
        lines.append(f"path = sparse_svm_path(X, y, sample_weight={weight}, {_arguments(case.params)})")
        lines.append("print(path.objectives)")
    else:
        lines.append(f"model = {case.call}({_arguments(case.params)}).fit(X, y, sample_weight={weight})")
        lines.append("print(model.objective_)")
    return "\n".join(lines) + "\n"


def _array(array):
    return f"array({array.tolist()!r}, dtype={array.dtype.str!r})"


def _arguments(params):
    def word(value):
        return "np.inf" if isinstance(value, float) and np.isinf(value) else repr(value)

    return ", ".join(f"{name}={word(value)}" for name, value in params.items())
