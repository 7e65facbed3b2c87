"""The order of the gallery: first the idea, then real data, then validation, then how fits work."""

ORDER = (
    "plot_two_of_500",
    "plot_three_or_eight",
    "plot_ten_digits",
    "plot_spiral",
    "plot_table",
    "plot_words",
    "plot_genes",
    "plot_choosing_k",
    "plot_probabilities",
    "plot_peers",
    "plot_dask",
    "plot_convergence",
)


class GalleryOrder:
    """The sort key of the examples in a folder of the gallery, as sphinx-gallery expects it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, file: str) -> int:
        return ORDER.index(file.removesuffix(".py"))
