"""Which way the algebra of a search goes: the one rule for it, and its words."""

from enum import Enum

# Beyond this k the dual system may pay; up to it the primal one is always cheap.
LARGE = 128

# With so few columns one panel holds them all.
FULL_PANEL = 256


class Regime(Enum):
    """Which linear algebra a search used; its `value` explains it in words.

    Examples
    --------
    >>> from kmargin import Regime
    >>> Regime.PANEL.value
    'all columns in one panel; linear systems the size of the support'
    """

    PANEL = "all columns in one panel; linear systems the size of the support"
    WORKING_SET = (
        "a panel of the support and the most promising other columns, renewed from X; "
        "linear systems the size of the support"
    )
    DUAL = "more features than active rows; linear systems the size of the active rows"
    PRODUCTS = "neither a panel nor linear systems fit in memory; products with X alone"
    INTERCEPT = "no search: with k = 0 the intercept is the mean label"

    @property
    def takes_panel(self) -> bool:
        """Whether the linear systems have the size of the support, from a panel of columns."""
        return self in (Regime.PANEL, Regime.WORKING_SET)


def depends_on_active_rows(k: int) -> bool:
    """Whether it takes the number of active rows to choose; to count them is a product with X."""
    return k > LARGE


def takes_all_columns(n_features: int, panel_fits: bool) -> bool:
    """Whether all sizes of a path share one panel, that of all columns."""
    return n_features <= FULL_PANEL and panel_fits


def choose_regime(
    *,
    k: int,
    n_columns: int,
    n_features: int,
    panel_fits: bool,
    elsewhere: bool,
    n_active: int | None = None,
    dual_fits: bool = False,
) -> Regime:
    """The way to search for, or to fit, k features.

    A panel would have `n_columns` of the `n_features` columns. `n_active` rows are within the margin of a
    model with fewer features; None if they were not counted. What fits is in proportion to the data. Rows
    that are elsewhere are asked for sums as large as the support, whatever fits here.
    """
    primal = Regime.PANEL if n_columns >= n_features else Regime.WORKING_SET
    if elsewhere:
        return primal
    if n_active is not None and depends_on_active_rows(k) and k > n_active:
        return Regime.DUAL if dual_fits else Regime.PRODUCTS
    return primal if panel_fits else Regime.PRODUCTS
