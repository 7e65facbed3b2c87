"""The order of the gallery: what it is about first, then people's data, then trust, then the machinery."""

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
    """Sorts the files of the gallery; sphinx-gallery makes one for a folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, file: str) -> int:
        return ORDER.index(file.removesuffix(".py"))
