"""Tables: every way in which a file or a column can be wrong, and folds that use only their own rows."""

import csv
import gzip
import io
import pickle
import re
from contextlib import nullcontext
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file
from sklearn.model_selection import StratifiedKFold
from tables_data import make_table

from kmargin import SparseSVC, SparseSVCCV
from kmargin.core.validation import InputError
from kmargin.report.frames import confusion, intercepts_per_unit, prediction_frame
from kmargin.report.page import csv_text, protect
from kmargin.report.text import neighbour_text
from kmargin.tables import columns, read
from kmargin.tables.analysis import analyse, trace
from kmargin.tables.columns import Encoding, column_medians, learn_encoding, learn_scaling, to_texts
from kmargin.tables.dataset import Roles, prepare, read_classes
from kmargin.tables.read import Reading, Table, read_table, readable_as, to_whole
from kmargin.tables.search import Settings

FRAME = make_table()
FEATURES = list(FRAME.columns[:-1])
FAST = {"Cs": [1.0], "repeats": 1, "nested": False, "pairs": 0}  # settings that most tests leave at this


def save(frame, path):
    """Write a frame in the format of the ending."""
    kind = path.name.split(".", 1)[1]
    if kind in ("parquet", "pq"):
        frame.to_parquet(path)
    elif kind == "npz":
        np.savez(path, X=frame[FEATURES], y=frame["outcome"].to_numpy(str), feature_names=FEATURES)
    else:
        frame.to_csv(path, index=False, sep="," if kind.startswith("csv") else "\t")
    return path


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "tsv.gz", "txt", "parquet", "pq", "npz"])
def test_every_format_gives_the_same_data(ending, tmp_path):
    table = read_table(save(FRAME, tmp_path / f"data.{ending}"))
    dataset = prepare(table, Roles(table.target or "outcome"))
    np.testing.assert_array_equal(dataset.X, FRAME[FEATURES])
    assert dataset.y.tolist() == FRAME["outcome"].tolist()
    assert dataset.encoding.feature_names == FEATURES


@pytest.mark.parametrize("first", [0, 1])
def test_svmlight_features_are_called_as_the_file_calls_them(first, tmp_path):
    X = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    dump_svmlight_file(X, [1, -1], str(tmp_path / "d.svm"), zero_based=first == 0)
    table = read_table(tmp_path / "d.svm")
    assert list(table.frame.columns) == [f"f{first + j}" for j in range(3)] + ["target"]
    np.testing.assert_array_equal(table.frame.iloc[:, :3], X)
    assert table.frame["target"].tolist() == [1, -1]


def test_what_svmlight_does_not_mention_is_zero_at_predict(tmp_path):
    (tmp_path / "new.svm").write_text("0 1:2.5\n")
    table = read_table(tmp_path / "new.svm")
    assert list(table.frame.columns) == ["f1", "target"]
    X, notes = Encoding(("f1", "f2", "f3")).match(table, {"f1", "f3"}, False)
    assert X.tolist() == [[2.5, 0.0, 0.0]]
    assert notes == []


@pytest.mark.parametrize(("n", "error"), [(125_000_000, TypeError), (125_000_001, InputError)])
def test_a_matrix_too_large_to_write_out_is_refused(n, error, tmp_path, monkeypatch):
    matrix = SimpleNamespace(shape=(2, n))  # to read its values is a TypeError
    monkeypatch.setattr(read, "load_svmlight_file", lambda *args, **more: (matrix, None))
    (tmp_path / "d.svm").touch()
    words = (
        "2 rows and 125,000,001 features: 2.0 GB as a dense table, but kmargin accepts at most 2 GB. Leave"
    )
    with pytest.raises(error, match=words if error is InputError else "not subscriptable"):
        read_table(tmp_path / "d.svm")


def as_workbook(sheets):
    file = io.BytesIO()
    with pd.ExcelWriter(file, engine="openpyxl") as writer:
        for title, frame in sheets.items():
            frame.to_excel(writer, sheet_name=title, index=False)
    return file.getvalue()


def as_npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


PARQUET, WORKBOOK = FRAME.to_parquet(), as_workbook({"s": FRAME})
ARRAYS = as_npz(X=FRAME[FEATURES], y=FRAME["outcome"].to_numpy(str))
GZIP = gzip.compress(b"a,b\n" + b"1,2\n" * 3000, mtime=0)
NO_NPZ = r"an npz archive: .* truncated\. Save X with numbers, a row per sample"
CONTENTS = {
    "empty": ("a.csv", b"", "a.csv is empty"), "blank lines": ("a.csv", b"\n \n", "a.csv is empty"),
    "only a separator": ("a.csv", b",\n", "a.csv has no rows of data"),
    "one column": ("a.csv", b"a\n1\n", "only one column, 'a'"), "no rows": ("a.csv", b"a,b,y\n", "no rows"),
    "HTML": ("a.csv", b"<!DOCTYPE html>\n<html>", "only one column, '<!DOCTYPE html>'"),
    "a name twice": ("a.csv", b"a,b,a\n1,2,3\n", "more than one column called 'a'"),
    "a default name twice": ("a.csv", b",column 1\n1,2\n", "more than one column called 'column 1'"),
    "a long row": ("a.csv", b"a,b\n1,2\n1,2,3\n", "Expected 2 fields in line 3, saw 3"),
    "a quotation mark": ("a.csv", b'a,b\n1,2\n"1,2\n', "no quotation mark closes the one in row 2. Close"),
    "long rows": ("a.csv", b"a,b\n1,2,3\n1,2,3\n", "more fields than there are names"),
    "one long row": ("a.csv", b"a,b\n1,2,3\n", "more fields than there are names"),
    "UTF-16 without its mark": ("a.csv", "a,b\n1,2\n".encode("utf-16-le"), "its content is not text"),
    "Parquet as CSV": ("a.csv", PARQUET, "ends in .csv, but its content is not text. If it is an"),
    "Excel as CSV": ("a.csv", WORKBOOK, r"rename it to end in \.xlsx, \.parquet or \.gz"),
    "a pickle as CSV": ("a.csv", pickle.dumps([1]), "not text.*otherwise save the table as"),
    "CSV as Parquet": ("a.parquet", b"a,b\n1,2\n", "cannot be read as Parquet: it is not, or is damaged"),
    "Parquet cut short": ("a.parquet", PARQUET[:200], "cannot be read as Parquet"),
    "Parquet with damaged metadata": ("a.parquet", PARQUET.replace(b'"pandas_version"', b"{[[[[["),
        "cannot be read as Parquet"),
    "CSV as Excel": ("a.xlsx", b"a,b\n1,2\n", "an Excel workbook: it is not, or is damaged"),
    "a workbook cut short": ("a.xlsx", WORKBOOK[:500], "cannot be read as an Excel workbook"),
    "an empty workbook": ("a.xlsx", as_workbook({"s": pd.DataFrame()}), "a.xlsx is empty"),
    "CSV as gzip": ("a.csv.gz", b"a,b\n1,2\n", "cannot be read as a .gz file"),
    "gzip with another checksum": ("a.csv.gz", GZIP[:-8] + bytes(8), "is damaged or truncated"),
    "not svmlight": ("a.svm", b"hello there\n", "cannot be read as svmlight: .*Each line is a class"),
    "an old workbook": ("a.xls", b"\xd0\xcf", "ends in .xls, which kmargin does not read. It reads .csv"),
    "a file of Stata": ("a.dta", b"stata", r"ends in .dta, .*write\.csv\(table"),
    "no extension": ("a", b"a,b\n1,2\n", "ends in nothing"), "CSV as npz": ("a.npz", b"a,b\n1,2\n", NO_NPZ),
    "npz cut short": ("a.npz", ARRAYS[: len(ARRAYS) // 3], NO_NPZ),
    "npz cut at its end": ("a.npz", ARRAYS[:-100], NO_NPZ),
    "npz with a damaged array": ("a.npz", ARRAYS.replace(b"descr", b"decsr"), NO_NPZ),
    "objects": ("a.npz", as_npz(X=np.array([[{}]])), "Python objects are never opened"),
    "no X": ("a.npz", as_npz(A=np.eye(2)), "a.npz has no array X, only 'A'. Save X with numbers"),
    "a flat X": ("a.npz", as_npz(X=np.zeros(2)), NO_NPZ),
    "X of texts": ("a.npz", as_npz(X=np.full((2, 2), "1")), "Save X with numbers"),
    "a short y": ("a.npz", as_npz(X=np.eye(2), y=[1]), "y with a class for each row"),
    "few names": ("a.npz", as_npz(X=np.eye(2), feature_names=["a"]), "a name for each column of X"),
    "one name for two": ("a.npz", as_npz(X=np.eye(2), feature_names=["a", "a"]), "more than one column"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "content", "message"), CONTENTS.values(), ids=CONTENTS.keys())
def test_a_file_that_is_not_what_it_says_gets_a_sentence(name, content, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_table(tmp_path / name)
    if content.startswith(b"a\0"):
        assert read_table(tmp_path / name, Reading(encoding="utf-16-le")).frame.loc[0].tolist() == [1, 2]


def test_a_package_that_is_missing_is_named():
    words = "^The file cannot be read without another package: no c"
    with pytest.raises(InputError, match=words), readable_as("The file", "B", "Write it again."):
        raise ImportError("no c")


def test_arrays_may_have_no_names_and_no_classes_and_names_of_rows_in_parquet_are_a_column(tmp_path):
    (tmp_path / "a.npz").write_bytes(as_npz(X=[[1, 2], [3, 4]]))
    table = read_table(tmp_path / "a.npz")
    assert (table.frame.to_dict("list"), table.target) == ({"x0": [1, 3], "x1": [2, 4]}, None)
    frame = pd.DataFrame({"a": [1, 2]})
    for names, given in ((["who"], ["who", "a"]), ([None], ["a"]), (["b", None], ["b", "level_1", "a"])):
        index = pd.MultiIndex.from_arrays([["x", "y"]] * len(names), names=names)
        frame.set_index(index if len(names) > 1 else index.get_level_values(0)).to_parquet(tmp_path / "a.pq")
        assert list(read_table(tmp_path / "a.pq").frame.columns) == given


def test_a_workbook_is_read_as_its_sheet_saved_as_csv_would_be(tmp_path):
    untidy = FRAME.assign(flag=[True, False] * 30, lab=["?", *range(59)], whole=range(60))
    untidy["text"] = untidy["age"].map(str)  # numbers that were typed as text
    untidy[""] = None
    untidy.to_csv(tmp_path / "a.csv", index=False)
    (tmp_path / "a.xlsx").write_bytes(as_workbook({"data": untidy}))
    given, expected = read_table(tmp_path / "a.xlsx"), read_table(tmp_path / "a.csv")
    pd.testing.assert_frame_equal(given.frame, expected.frame)
    assert given.notes == expected.notes
    (tmp_path / "t.xlsx").write_bytes(as_workbook({"data": FRAME.drop(columns="outcome").T.reset_index()}))
    frame = read_table(tmp_path / "t.xlsx", Reading(transpose=True)).frame
    pd.testing.assert_frame_equal(frame, FRAME.drop(columns="outcome"))
    with pytest.raises(InputError, match="--sep does not apply to"):
        read_table(tmp_path / "a.xlsx", Reading(sep=";"))


def test_of_several_sheets_the_first_is_read_and_a_note_says_so(tmp_path):
    sheets = {"empty": pd.DataFrame(), "data": FRAME, "codes": FRAME.iloc[:2]}
    (tmp_path / "a.xlsx").write_bytes(as_workbook(sheets))
    table = read_table(tmp_path / "a.xlsx")
    assert len(table.frame) == 60
    assert table.notes == (
        "a.xlsx has 2 sheets ('data', 'codes'): 'data' is read. To use another sheet, save it as a "
        "separate file.",
    )


SIMILAR = [
    ("cancr.csv", ["cancer.csv", "cancer.csv.gz", "cancer-1.png", "typo.csv"],
        "Did you mean 'cancer.csv' or 'cancer.csv.gz'?"),
    ("heart.csv", ["heart_failure_of_2024_cleaned.tsv"], "It has 'heart_failure_of_2024_cleaned.tsv'."),
    ("heart.csv", ["heart.docx"], "It has none."), ("", ["cancer.csv"], "is a folder. It has 'cancer.csv'."),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "beside", "hint"), SIMILAR)
def test_a_misspelt_file_is_found_among_those_that_are_tables(asked, beside, hint, tmp_path):
    for name in beside:
        (tmp_path / name).touch()
    told = f"{asked} is not among the tables in its folder. {hint}" if asked else hint
    with pytest.raises(InputError, match=f"{re.escape(told)}$"):
        read_table(tmp_path / asked)


def test_a_column_called_NA_keeps_its_name_and_one_without_a_name_has_that_of_its_place(tmp_path):
    (tmp_path / "a.csv").write_text("NA,None,nan,, b ,y\n1,2,3,4,5,a\n4,5,6,4,5,b\n")
    assert list(read_table(tmp_path / "a.csv").frame.columns) == ["NA", "None", "nan", "column 4", "b", "y"]


@pytest.mark.parametrize("scale", [1e-90, 1e-40, 1e90])
def test_columns_of_any_size_are_scaled_alike_and_copies_stay_equal(scale):
    X = 20 + np.random.default_rng(0).standard_normal((61, 5))[:, [*range(5), 1]].round(2)
    weights = np.linspace(1, 2, 61)
    plain = learn_scaling(X, weights, impute=False, standardize=True)
    large = learn_scaling(X * scale, weights * 1e200, False, True)
    np.testing.assert_allclose(large(X * scale), plain(X), rtol=1e-10)
    np.testing.assert_allclose(plain.mean, np.average(X, axis=0, weights=weights), rtol=1e-13)
    np.testing.assert_allclose(np.average(plain(X) ** 2, axis=0, weights=weights), 1)
    np.testing.assert_array_equal(plain(X)[:, 1], plain(X)[:, 5])
    constant = np.tile([0.0, 0.1, 1e9 / 3], (61, 1))
    np.testing.assert_array_equal(learn_scaling(constant, weights, False, True).spread, 1)
    assert column_medians(np.array([[np.nan, 3], [np.nan, np.nan]])).tolist() == [0, 3]


FORMULAS = ["=1+1", "@SUM(A1)", "+1+cmd|' /C calc'!A0", "-2+3*(1)", "\t=1", "\r=1", "＝1"]
HARMLESS = ["-", "-1 vs 1", "-dose", "a=b", -2, -2.5]


def test_texts_that_a_spreadsheet_would_run_get_an_apostrophe_and_line_breaks_quotes():
    assert [protect(value) for value in FORMULAS] == [f"'{value}" for value in FORMULAS]
    assert [protect(value) for value in HARMLESS] == HARMLESS
    text = csv_text(pd.DataFrame({"=n": ["=1", "b"], "x": [-1.5, 2.0]}))
    assert text == "'=n,x\n'=1,-1.5\nb,2.0\n"
    text = csv_text(pd.DataFrame({"a": ["x\ry", "b"], "n": [1, 2]}))
    assert list(csv.reader(io.StringIO(text, newline=""))) == [["a", "n"], ["x\ry", "1"], ["b", "2"]]


@pytest.mark.parametrize("first", [0, 1])
def test_a_nameless_column_that_numbers_the_rows_is_left_out(first, tmp_path):
    (tmp_path / "a.csv").write_text(f",a,b\n1,2,3\n3,5,1\n{3 + first},1,1\n")
    assert list(read_table(tmp_path / "a.csv").frame.columns) == ["column 1", "a", "b"]
    FRAME.set_index(pd.RangeIndex(first, len(FRAME) + first)).to_csv(tmp_path / "a.csv")
    table = read_table(tmp_path / "a.csv")
    assert list(table.frame.columns) == list(FRAME.columns)
    assert "numbers the rows" in table.notes[0]


def with_column(name, values):
    return FRAME.assign(**{name: values})


mixed = ["1", "2", "?"] * 20
COLUMNS = {
    "no such target": (FRAME, Roles("outcom"), "no column 'outcom' to predict. Did you mean 'outcome'"),
    "no target": (FRAME, Roles(), "Name the column to predict with --target"),
    "a letter's case": (FRAME, Roles("OUTCOME"), "Did you mean 'outcome'"),
    "text": (with_column("hue", "red"), Roles("outcome"), "text instead of numbers in 'hue', such as 'red'"),
    "a stray mark": (with_column("hue", mixed), Roles("outcome"), r"such as '\?'\..*--encode onehot"),
    "a stray text": (with_column("z", ["5 mg", *range(59)]), Roles("outcome"), "'5 mg' in 1 row among num"),
    "a stray point": (with_column("z", ["-", "1.234", *map(str, range(58))]), Roles("outcome"),
        "'1.234' in 1 row among num"),
    "gaps": (with_column("z", [None, 1] * 30), Roles("outcome"), r"30 missing values, in 'z'\. Fill them"),
    "all gaps": (with_column("z", None), Roles("outcome", impute="median"), "'z' has no values at all"),
    "a mark for missing values": (with_column("z", -1.7e308), Roles("outcome"),
        r"'z' .* numbers beyond 1e\+100, perhaps a code"),
    "infinity": (with_column("z", np.inf), Roles("outcome"), "'z' holds infinite values"),
    "dates": (with_column("day", pd.Timestamp(0)), Roles("outcome"), "'day' holds dates.*--drop day"),
    "lists": (with_column("l", [[1]] * 60), Roles("outcome"), "'l' holds values of type list"),
    "one class": (with_column("outcome", "no"), Roles("outcome"), "only one class, 'no'"),
    "a class None": (with_column("outcome", ["no", None] * 30), Roles("outcome"), "'no', beside 30 rows"),
    "a continuous target": (FRAME, Roles("age"), "60 different values in 60 rows.*classes"),
    "fractions": (with_column("t", [0.5, 1] * 30), Roles("t"), "holds numbers such as 0.5, but kmargin"),
    "huge classes": (with_column("t", [1e300, 1] * 30), Roles("t"), r"holds numbers such as 1e\+300"),
    "names as features": (with_column("who", ["p1", *(f"p{i}" for i in range(59))]),
        Roles("outcome", encode="onehot"), "59 different texts in 60 rows, so it is a name.*--id who"),
    "nothing left": (FRAME, Roles("outcome", drop=FEATURES), "there is no column to use as a feature"),
    "drop of nothing": (FRAME, Roles("outcome", drop=["agee"]), "--drop: .*'agee'. Did you mean 'age'"),
    "id of nothing": (FRAME, Roles("outcome", id="x"), "--id: the table has no column 'x'"),
    "drop of the target": (FRAME, Roles("outcome", drop=["outcome"]), "--drop outcome is the target"),
    "two roles": (FRAME, Roles("outcome", drop=["age"], features=["age"]), "--drop age is also named"),
    "weights below 0": (with_column("w", -1), Roles("outcome", weights="w"), "row 1 of column 'w' holds -1"),
    "weights in words": (with_column("w", "a"), Roles("outcome", weights="w"), "row 1 of column 'w' holds a"),
    "no weight": (with_column("w", 0), Roles("outcome", weights="w"), "holds 0.*some of them above 0"),
    "unknown encoding": (FRAME, Roles("outcome", encode="hash"), "Use --encode onehot"),
    "a feature made twice": (with_column("a", "b").assign(**{"a=b": 1.0}), Roles("outcome", encode="onehot"),
        "called 'a=b'"),
}  # fmt: skip


@pytest.mark.parametrize(("frame", "roles", "message"), COLUMNS.values(), ids=COLUMNS.keys())
def test_a_column_that_cannot_be_used_gets_a_sentence(frame, roles, message):
    with pytest.raises(InputError, match=message):
        prepare(Table(frame), roles)


def texts(n):
    return [f"v{i}" for i in range(n)]


LIMITS = [  # values of a column, and what is said of them
    ([*texts(50), *texts(10)], ""), ([*texts(51), *texts(51)], ""),
    ([*texts(51), *texts(50)], "51 different texts in 101 rows, so it is a name"),
    ([*texts(6), *range(54)], "holds 'v0', 'v1', 'v2' and 3 more in 6 rows among numbers"),
    ([*texts(7), *range(53)], "60 different texts"),
    ([*range(24), "X"] * 3, ""), ([*range(25), "X"] * 3, "holds 'X' in 3 rows among numbers"),
    ([*range(9), "X"] * 2, ""), ([*range(10), "X", *range(10)], "holds 'X' in 1 row among numbers"),
    ([1e100, 0], ""), ([-1.1e100, 0], r"numbers beyond 1e\+100"),
    ("abab", ""), ("abcdeabcd", "5 different values in 9 rows"), ([2**53 - 1, 0.0] * 2, ""),  # classes
    ([2.0**53, 2.0**55] * 2, "such as 9.00"), ([True, False] * 2, ""),
]  # fmt: skip


@pytest.mark.parametrize(("values", "message"), LIMITS)
def test_a_column_is_of_numbers_of_codes_of_names_or_of_classes_by_its_different_values(values, message):
    is_class, column = isinstance(values, str) or len(values) == 4, pd.Series([*values])
    with pytest.raises(InputError, match=message) if message else nullcontext():
        if is_class:
            assert read_classes(column, "y", []).tolist() == [*values]
        else:
            parts = learn_encoding(pd.DataFrame({"x": column}), Roles(encode="onehot")).parts
            assert len(parts) == (1 if 1e100 in values else len({*values}))


def test_a_table_of_names_and_more_numbers_than_columns_seems_to_have_its_features_in_rows():
    for names, rest, expected in (("abcd", [1, 2], True), ("abc", [1, 2], False), ("abcd", [1], False),
                                  ("abca", [1, 2], False), ("abcd", ["x", 2], False)):  # fmt: skip
        frame = pd.DataFrame([(name, *rest) for name in names])
        assert bool(columns.explain_transposed(frame, ["z"])) == expected, names
    assert columns.explain_transposed(frame, ["d", "e"]).startswith("With 'd' in its first column")
    told = columns.explain_transposed(pd.DataFrame([(name, 1, 2) for name in "abcd"]), ["z"])
    assert re.match("With 4 names in its first column .*: add --transpose, and --labels FILE", told)


@pytest.mark.parametrize(("labels", "expected"), [("+-?", "+-?"), ("ab?", "ab"), ("a+-", "a+"), ("?-", "-?")])
def test_marks_for_missing_labels_are_no_classes_if_there_are_two_others(labels, expected):
    dataset = prepare(Table(FRAME.assign(outcome=[*labels] * (60 // len(labels)))), Roles("outcome"))
    assert set(dataset.y) == set(expected)
    assert len(dataset.notes) == (0 if set(labels) == set(expected) else 2)


def test_true_and_false_decimals_and_nullable_numbers_are_numbers():
    frame = FRAME.assign(
        flag=[True, False] * 30,
        gap=pd.Series([True, None] * 30, dtype=object),
        money=[Decimal("1.5")] * 60,
        count=pd.array([1, None] * 30, dtype="Int64"),
        level=pd.Categorical([1, 2] * 30),
    )
    dataset = prepare(Table(frame), Roles("outcome", impute="median"))
    np.testing.assert_array_equal(dataset.X[0, 5:], [1, 1, 1.5, 1, 1])
    np.testing.assert_array_equal(dataset.X[1, 5:], [0, np.nan, 1.5, np.nan, 2])


def test_text_becomes_a_feature_per_value_and_new_values_are_none_of_them():
    frame = FRAME.assign(hue=["red", "blue", None] * 20)
    dataset = prepare(Table(frame), Roles("outcome", encode="onehot", impute="median"))
    assert dataset.encoding.feature_names[-2:] == ["hue=blue", "hue=red"]
    np.testing.assert_array_equal(dataset.X[:3, -2:], [[0, 1], [1, 0], [0, 0]])
    X, notes = dataset.encoding.match(Table(frame.assign(hue=["green", None] * 30)), {"hue"}, True)
    assert not X[:, -2:].any()
    assert notes[0] == "Column 'hue' holds 'green', unknown to the model: taken as none."
    assert notes[1:] == ["'hue' is missing in 30 of 60 rows: taken as none."]


def test_scores_are_those_of_the_estimator_that_scales_in_each_fold():
    dataset = prepare(Table(FRAME), Roles("outcome"))
    grid = {"ks": [5, 3, 2, 1], "Cs": [0.1, 1.0]}
    found = analyse(dataset, Settings(**FAST | grid, select="best", seed=3))
    folds = StratifiedKFold(5, shuffle=True, random_state=3)
    model = SparseSVCCV(**grid, cv=folds, standardize=True).fit(dataset.X, dataset.y)
    assert (found.choice.k, found.choice.C) == (model.k_, model.C_)
    assert found.choice.score == pytest.approx(model.best_score_)
    assert found.assessment.score == pytest.approx(model.best_score_)
    machine, scaling = found.model.machine, found.model.scaling
    np.testing.assert_allclose(machine.coef_ / scaling.spread, model.coef_, rtol=1e-9)
    np.testing.assert_allclose(intercepts_per_unit(found.model), model.intercept_, rtol=1e-9)


def fold_by_hand(X, y, train, test):
    """Medians, scale and machine from the training rows alone."""
    medians = np.nanmedian(X[train], axis=0)
    X = np.where(np.isnan(X), medians, X)
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - mean) / spread
    model = SparseSVC(k=2, C=0.5).fit(X[train], y[train])
    return model.decision_function(X[test]), model.predict(X[test]), model.support_


def test_predictions_and_selection_frequencies_are_those_of_folds_made_by_hand():
    frame = FRAME.copy()
    frame.loc[::7, "age"] = np.nan
    dataset = prepare(Table(frame), Roles("outcome", impute="median"))
    found = analyse(dataset, Settings(**FAST | {"Cs": [0.5]}, k=2, ks=[2], cv=4, seed=7))
    used = np.zeros(5)
    for train, test in StratifiedKFold(4, shuffle=True, random_state=7).split(dataset.X, dataset.y):
        decisions, predicted, support = fold_by_hand(dataset.X, dataset.y, train, test)
        np.testing.assert_allclose(found.assessment.decisions[test], decisions, rtol=1e-8)
        np.testing.assert_array_equal(found.assessment.predicted[test], predicted)
        used[support] += 1
    np.testing.assert_allclose(found.frequency, used / 4)
    frame = prediction_frame(found)
    assert (frame["actual"] == frame["predicted"]).mean() == pytest.approx(np.trace(confusion(found)) / 60)


def test_a_kernel_machine_scales_in_each_fold_too():
    dataset = prepare(Table(FRAME), Roles("outcome"))
    settings = Settings(kernel="rbf", k=4, ks=[4], cv=3, **FAST)
    found = analyse(dataset, settings)
    again = analyse(dataset._replace(X=dataset.X * 1000 + 7), settings)
    np.testing.assert_allclose(again.assessment.decisions, found.assessment.decisions, rtol=1e-6)


def test_neighbours_are_the_next_sizes_that_were_tried():
    dataset = prepare(Table(FRAME), Roles("outcome"))
    found = analyse(dataset, Settings(k=3, ks=[5, 3, 2], **FAST))
    assert [near.k for near in found.neighbours] == [2, 5]
    assert found.choice.table.ks == [5, 3, 2]
    for near in found.neighbours:
        assert near.change.value == pytest.approx(near.score - found.choice.score)
    fewer, more = (neighbour_text(found, near) for near in found.neighbours)
    assert re.match(r"One feature fewer \(2\).* (costs|gains|changes) ", fewer)
    assert re.match(r"2 features more \(5\).* (cost|gain|change) ", more)
    assert analyse(dataset, Settings(k=5, ks=[5], **FAST)).neighbours == ()
    assert [near.k for near in analyse(dataset, Settings(k=0, ks=[1], **FAST)).neighbours] == [1]


def test_rows_without_weight_are_left_out_and_others_keep_their_numbers_and_ids():
    weights = np.array([2.0, 0.0, 1.0] * 20)
    dataset = prepare(Table(FRAME.assign(w=weights)[3:]), Roles("outcome", weights="w", id="age"))
    assert dataset.rows.tolist() == [i + 1 for i in range(3, 60) if weights[i]]
    assert dataset.ids.tolist() == FRAME["age"][3:][weights[3:] > 0].tolist()
    assert dataset.weights.tolist() == [2.0, 1.0] * 19
    assert dataset.notes == ("19 rows without weight left out.",)


def test_a_small_class_makes_fewer_folds_and_a_single_row_none():
    frame = FRAME.assign(outcome=["rare"] * 3 + ["common"] * 57)
    found = analyse(prepare(Table(frame), Roles("outcome")), Settings(k=1, ks=[1], **FAST))
    assert len(found.choice.first.fits) == 3
    assert "Class 'rare' has 3 rows: 3 folds instead of 5." in found.notes
    frame = FRAME.assign(outcome=["rare"] + ["common"] * 59)
    with pytest.raises(InputError, match="Class 'rare' has 1 row, but"):
        analyse(prepare(Table(frame), Roles("outcome")), Settings())


def test_a_score_for_other_classes_gets_a_sentence():
    with pytest.raises(InputError, match=r"--scoring f1 is not applicable to this model .*Try accuracy"):
        analyse(prepare(Table(FRAME), Roles("outcome")), Settings(scoring="f1"))


def test_the_score_that_chooses_is_the_one_told():
    settings = Settings(ks=[2, 1], scoring="roc_auc", **FAST)
    found = analyse(prepare(Table(FRAME), Roles("outcome")), settings)
    assert found.assessment.score == pytest.approx(found.choice.score)
    assert found.assessment.guessing == 0.5


def test_only_columns_with_a_weight_are_needed_to_predict():
    model = analyse(prepare(Table(FRAME), Roles("outcome")), Settings(k=2, ks=[2], **FAST)).model
    assert model.needed == {"age", "dose"}
    few, all_of_them = (
        model.predict_table(Table(FRAME[names])) for names in (["dose", "age"], FEATURES[::-1])
    )
    np.testing.assert_array_equal(few.decisions, all_of_them.decisions)
    as_text = FRAME.assign(age=FRAME["age"].map(lambda value: f" {value!r}"))
    np.testing.assert_allclose(model.predict_table(Table(as_text)).decisions, few.decisions, rtol=1e-12)
    for age, message in (
        ([None, *FRAME["age"][1:]], r"The table has 1 missing value, in 'age'\. Fill"),
        ("old", "'age' holds text, such as 'old', but the model was fitted to numbers"),
        ("<5", "'age' holds laboratory values such as '<5'"),
        (pd.Timestamp(0), "'age' holds dates, but the model was fitted to numbers"),
    ):
        with pytest.raises(InputError, match=message):
            model.predict_table(Table(FRAME.assign(age=age)))


def test_a_path_says_what_enters_and_what_leaves():
    steps, _ = trace(prepare(Table(FRAME), Roles("outcome")), Settings(ks=[5, 2, 1], Cs=[1.0], cv=3))
    assert [step.k for step in steps] == [1, 2, 5]
    used = set()
    for step in steps:
        used = (used | set(step.enters)) - set(step.leaves)
        assert used == set(step.features)
        assert len(used) <= step.k
    assert steps[-1].objective <= steps[0].objective


def test_whole_numbers_read_the_same_however_stored():
    expected = ["1", "20", None, "x"]
    assert list(to_texts(pd.Series([1, 20.0, None, "x"], dtype=object))) == expected
    assert list(to_texts(pd.Series([1.0, 20.0, np.nan]))) == expected[:3]
    assert list(to_texts(pd.Series([0.5, -3.0]))) == ["0.5", "-3"]
    assert [to_whole(pd.Series([v, 1.0])).dtype.kind for v in (2.0**53 - 1, 2.0**53, 0.5)] == [*"iff"]


def test_dates_stay_texts_where_other_numbers_have_thousands_separators(tmp_path):
    path = tmp_path / "dates.csv"
    path.write_text("visit;version;x1;x2\n01.03.2015;1.2.3;1.200,5;2.000\n02.03.2015;4.5.6;0,13;?\n")
    frame = read_table(path).frame
    assert frame["visit"].tolist() == ["01.03.2015", "02.03.2015"]
    assert frame["version"].tolist() == ["1.2.3", "4.5.6"]
    assert frame["x1"].tolist() == [1200.5, 0.13]
    np.testing.assert_array_equal(frame["x2"], [2000.0, np.nan])
