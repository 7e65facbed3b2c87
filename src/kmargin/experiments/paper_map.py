"""Where everything in the paper is: each algorithm, equation, table and figure by function and by section.

The report and `docs/idea/paper_map.md` show it as a table. `tests/test_paper_map.py` checks that every
function exists, that every section is on the page of a run, and that the Markdown page is this table.
"""

from typing import NamedTuple


class Item(NamedTuple):
    """Something in the paper."""

    name: str  # as the paper numbers it; the section, where it has no number
    what: str
    functions: tuple[str, ...]  # below `kmargin`
    section: str  # of the report, where it is used or shown
    note: str = ""  # where the code departs from what the paper prints


PAPER_MAP = (
    Item("Equation 1", "the squared hinge loss", ("losses.squared_hinge.mean_loss",), "table3"),
    Item(
        "Equation 2",
        "its quadratic majorisation, and the shifted responses z",
        ("losses.squared_hinge.mean_majorizer", "losses.squared_hinge.shifted_response"),
        "table2",
    ),
    Item(
        "Equation 3",
        "the penalised objective f",
        ("solvers.proximal.penalised.PenalisedProblem.objective",),
        "figure1",
    ),
    Item(
        "Equation 4",
        "the surrogate g with its weights a and b",
        (
            "solvers.proximal.penalised.PenalisedProblem.surrogate",
            "solvers.proximal.penalised.PenalisedProblem.penalty_weight",
        ),
        "figure1",
        "In the inequality before it, dist(u, S) is meant squared.",
    ),
    Item(
        "Equation 5",
        "the gradient, of surrogate and objective alike",
        ("solvers.proximal.penalised.PenalisedProblem.gradient",),
        "figure1",
    ),
    Item(
        "Equation 6", "the start, by univariate regressions", ("solvers.start.univariate_start",), "figure1"
    ),
    Item(
        "Equation 7",
        "the minimum of the surrogate, by one SVD",
        ("solvers.proximal.reference.MMStep",),
        "table3",
    ),
    Item("Section 3", "the projection onto at most k features", ("sparsity.project",), "table2"),
    Item(
        "Section 3",
        "kernel machines that keep at most k training points",
        ("KernelSparseSVC", "fitting.kernel_blueprint.KernelBlueprint"),
        "figureS2",
    ),
    Item(
        "Algorithm 1",
        "MM",
        ("MM", "solvers.proximal.reference.MMStep", "solvers.proximal.compiled.descend_mm"),
        "table3",
    ),
    Item(
        "Algorithm 2",
        "SD",
        ("SD", "solvers.proximal.reference.sd_step", "solvers.proximal.compiled.descend_sd"),
        "table3",
        "The appendix prints the second-order term with the wrong sign; the resulting step size is right.",
    ),
    Item(
        "Algorithm 3",
        "the annealing around them, and when it stops",
        ("solvers.proximal.reference.anneal", "solvers.proximal.reference.descend", "sparsity.normalizer"),
        "figure3",
        "Algorithm 3 prints n-k+1 as the normaliser of the squared distance; the code uses p-k+1, as "
        "equations 3 and 4 do, where p is the number of penalised parameters (features, or training points "
        "with a kernel). Likewise the sparsity printed as 1-k/n is 1-k/p.",
    ),
    Item(
        "Section 4",
        "Nesterov's acceleration, and its restarts",
        ("solvers.proximal.reference.Momentum",),
        "table3",
    ),
    Item(
        "Section 5.3",
        "false discovery and omission rates",
        ("experiments.recovery.discovery_rates",),
        "figure2",
    ),
    Item("Section 5.4", "paths from dense to sparse with warm starts", ("sparse_svm_path",), "figure3"),
    Item("Table 1", "the data sets", ("datasets.load", "experiments.protocol.read"), "table1"),
    Item("Table 2", "cross-validation on synthetic", ("experiments.tables.table2",), "table2"),
    Item("Table 3", "what cross-validation selects", ("experiments.tables.table3",), "table3"),
    Item("Table 4", "against LIBLINEAR and LIBSVM", ("experiments.tables.table4",), "table4"),
    Item(
        "Figure 1",
        "random starts",
        ("experiments.figures.figure1", "experiments.sensitivity.walk"),
        "figure1",
    ),
    Item(
        "Figure 2",
        "recovery of 50 causal features",
        ("experiments.figures.figure2", "experiments.recovery.walk", "datasets.make_sparse_hyperplane"),
        "figure2",
    ),
    Item(
        "Figure 3", "along the path", ("experiments.figures.figure3", "experiments.crossval.walk"), "figure3"
    ),
    Item("Figure S1", "synthetic", ("datasets.make_synthetic", "experiments.figures.figure_s1"), "figureS1"),
    Item("Figure S2", "spiral", ("datasets.make_spiral", "experiments.figures.figure_s2"), "figureS2"),
)
