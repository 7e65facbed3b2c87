"""The numbers the paper prints, to be laid beside ours (Landeros and Lange, Tables 2, 3 and 4)."""

from typing import NamedTuple


class PathRow(NamedTuple):
    """A row of Table 2: `synthetic` with mm, means over ten folds."""

    s: float  # percent, as all accuracies
    iterations: float
    seconds: float
    objective: float
    distance_sq: float
    train: float
    validation: float
    test: float
    support_vectors: float


class SummaryRow(NamedTuple):
    """A row of Table 3: the sparsity that cross-validation selects."""

    s: float
    iterations: float  # along the whole path
    seconds: float
    objective: float
    validation: float
    test: float


class ComparisonRow(NamedTuple):
    """A row of Table 4."""

    parameter: float  # s in percent, or C
    seconds: float
    train: float
    validation: float
    test: float
    sparsity: float


TABLE_2 = (
    PathRow(0, 15.9, 0.04178, 4.559e-7, 0, 100, 73, 76.5, 26.7),
    PathRow(22.5, 49.4, 0.06582, 1.122e-5, 1.207e-6, 100, 74, 76.9, 106.5),
    PathRow(45, 163.5, 0.2091, 2.873e-5, 1.178e-6, 100, 74.5, 78.4, 125.2),
    PathRow(67.5, 358.6, 0.4365, 8.43e-5, 1.304e-6, 100, 80.12, 82.5, 112.7),
    PathRow(90, 839.4, 1.024, 0.000684, 1.52e-6, 100, 92.5, 93.4, 65.4),
    PathRow(91, 46.9, 0.06743, 9.166e-5, 1.411e-5, 100, 93.12, 93.25, 66.2),
    PathRow(93, 483.4, 0.6224, 0.001303, 1.501e-6, 100, 94.88, 94.55, 62.3),
    PathRow(95, 545.2, 0.6822, 0.002178, 1.448e-6, 100, 96.38, 95.75, 58.7),
    PathRow(97, 670.7, 0.8424, 0.003874, 1.368e-6, 99.96, 98.12, 96.4, 57.3),
    PathRow(99, 788.8, 0.9689, 0.007745, 1.323e-6, 99.73, 99.25, 98.35, 59.5),
    PathRow(99.1, 219, 0.2715, 0.00758, 1.421e-6, 99.73, 99.25, 98.35, 59.2),
    PathRow(99.3, 275.8, 0.3419, 0.008007, 1.423e-6, 99.72, 99.12, 98.35, 58.8),
    PathRow(99.5, 361.6, 0.4409, 0.009339, 1.364e-6, 99.65, 99, 99, 60.4),
    PathRow(99.7, 471.3, 0.5772, 0.01005, 1.293e-6, 99.87, 99.88, 99.5, 61.7),
    PathRow(99.9, 1072, 1.334, 0.2693, 1.048e-6, 79.61, 79.5, 82.75, 566.7),
)

TABLE_3 = {
    ("TCGA-PANCAN-HiSeq", "mm"): SummaryRow(99.9, 9.181e4, 1759, 3.467e-5, 95.64, 95.56),
    ("TCGA-PANCAN-HiSeq", "sd"): SummaryRow(0, 8.114e5, 691.4, 0, 98.29, 96.44),
    ("breast-cancer-wisconsin", "mm"): SummaryRow(30, 4461, 0.01484, 0.05329, 96.53, 99.49),
    ("breast-cancer-wisconsin", "sd"): SummaryRow(30, 8124, 0.02265, 0.05329, 96.53, 99.42),
    ("iris", "mm"): SummaryRow(25, 858.1, 0.0008536, 0.0015, 96.67, 81.66),
    ("iris", "sd"): SummaryRow(25, 1205, 0.0009029, 0.001623, 96.67, 81.33),
    ("letter-recognition", "mm"): SummaryRow(0, 5.152e5, 6.419, 0.02848, 82.07, 81.06),
    ("letter-recognition", "sd"): SummaryRow(12.5, 8.788e5, 9.552, 0.02869, 81.96, 80.97),
    ("optdigits", "mm"): SummaryRow(0, 1.026e6, 37.23, 5.149e-8, 95.71, 93.6),
    ("optdigits", "sd"): SummaryRow(22.5, 3.989e6, 83.54, 3.309e-6, 97.15, 95.47),
    ("spiral", "mm"): SummaryRow(93, 4.68e4, 54.7, 1.955e-5, 99.62, 100),
    ("spiral", "sd"): SummaryRow(45, 4.598e4, 2.553, 1.655e-5, 99.75, 100),
    ("splice", "mm"): SummaryRow(93, 1.979e4, 3.896, 0.03915, 95.21, 94.96),
    ("splice", "sd"): SummaryRow(90, 3.17e4, 1.762, 0.03544, 94.94, 94.77),
    ("synthetic", "mm"): SummaryRow(99.7, 6362, 7.927, 0.01005, 99.88, 99.5),
    ("synthetic", "sd"): SummaryRow(99.7, 5204, 0.5066, 0.0001235, 99.75, 99.35),
}

TABLE_4 = {
    ("TCGA-PANCAN-HiSeq", "mm"): ComparisonRow(99.9, 1750, 99.52, 95.64, 95.56, 99.9),
    ("TCGA-PANCAN-HiSeq", "sd"): ComparisonRow(0, 766.1, 100, 98.29, 96.44, 0),
    ("TCGA-PANCAN-HiSeq", "l2r"): ComparisonRow(1, 14.1, 100, 99.84, 100, 0.066),
    ("TCGA-PANCAN-HiSeq", "l1r"): ComparisonRow(1, 10.35, 100, 99.84, 100, 99.49),
    ("breast-cancer-wisconsin", "mm"): ComparisonRow(30, 0.01532, 96.38, 96.53, 99.49, 33.33),
    ("breast-cancer-wisconsin", "sd"): ComparisonRow(30, 0.02266, 96.38, 96.53, 99.42, 33.33),
    ("breast-cancer-wisconsin", "l2r"): ComparisonRow(1, 0.001334, 85.8, 83.68, 91.82, 0),
    ("breast-cancer-wisconsin", "l1r"): ComparisonRow(0.01, 0.004505, 86.35, 84.04, 90.8, 18.89),
    ("iris", "mm"): ComparisonRow(25, 0.0007963, 100, 96.67, 81.66, 25),
    ("iris", "sd"): ComparisonRow(25, 0.0009201, 100, 96.67, 81.33, 25),
    ("iris", "l2r"): ComparisonRow(1, 0.0001739, 85.74, 81.67, 80.66, 0),
    ("iris", "l1r"): ComparisonRow(1, 0.0002635, 86.02, 80, 80.66, 11.67),
    ("letter-recognition", "mm"): ComparisonRow(0, 6.765, 83.8, 82.07, 81.06, 0),
    ("letter-recognition", "sd"): ComparisonRow(12.5, 10.04, 83.75, 81.96, 80.97, 12.5),
    ("letter-recognition", "l2r"): ComparisonRow(0.775, 3.318, 68.07, 67.49, 66.2, 0),
    ("letter-recognition", "l1r"): ComparisonRow(0.775, 41.44, 68.04, 67.47, 66.18, 1.106),
    ("optdigits", "mm"): ComparisonRow(0, 36.77, 100, 95.71, 93.6, 0),
    ("optdigits", "sd"): ComparisonRow(22.5, 79.26, 100, 97.15, 95.48, 21.88),
    ("optdigits", "l2r"): ComparisonRow(0.005, 0.9293, 97.86, 96.1, 94.93, 3.281),
    ("optdigits", "l1r"): ComparisonRow(0.05, 4.291, 97.74, 96.1, 95.19, 37.66),
    ("spiral", "mm"): ComparisonRow(90, 56.77, 99.99, 99.62, 100, 90.03),
    ("spiral", "sd"): ComparisonRow(45, 2.579, 100, 99.75, 100, 45.01),
    ("spiral", "svc"): ComparisonRow(1, 0.0532, 100, 100, 100, 21.06),
    ("splice", "mm"): ComparisonRow(93, 4.111, 96.12, 95.21, 94.96, 92.78),
    ("splice", "sd"): ComparisonRow(90, 1.792, 96.21, 94.94, 94.77, 90),
    ("splice", "l2r"): ComparisonRow(0.01, 0.5402, 97.02, 95.13, 94.55, 0),
    ("splice", "l1r"): ComparisonRow(0.03, 1.637, 96.77, 96.04, 95.09, 61.22),
    ("synthetic", "mm"): ComparisonRow(99.7, 7.836, 99.87, 99.88, 99.5, 99.6),
    ("synthetic", "sd"): ComparisonRow(99.7, 0.4528, 99.83, 99.75, 99.35, 99.6),
    ("synthetic", "l2r"): ComparisonRow(0.01, 0.3411, 99.94, 74.25, 76.05, 0),
    ("synthetic", "l1r"): ComparisonRow(0.03, 0.3606, 99.62, 98, 97.75, 90.98),
}
