"""Tables as people have them: of many dialects, compressed, transposed, with labels in another file."""

import bz2
import gzip
import io
import lzma
import zipfile

import numpy as np
import pandas as pd
import pyarrow
import pytest
from tables_data import make_table

from kmargin.core.validation import InputError
from kmargin.tables.dataset import Roles, join_labels, prepare
from kmargin.tables.read import Reading, Table, read_table

FRAME = pd.DataFrame({"Größe": [1.5, 2.25, -3.0, 0.125], "n": [1, 2, 3, 5], "y": ["ä", "b", "ä", "b"]})


def text_of(sep=",", decimal=".", end="\n", **more):
    return FRAME.to_csv(index=False, sep=sep, decimal=decimal, lineterminator=end, **more)


WRITTEN = {
    "plain": ("a.csv", text_of().encode()), "a byte order mark": ("a.csv", text_of().encode("utf-8-sig")),
    "semicolons and decimal commas, Windows": ("a.csv", text_of(";", ",", "\r\n").encode("cp1252")),
    "semicolons and decimal points": ("a.csv", text_of(";").encode()),
    "tabs in a .csv": ("a.csv", text_of("\t").encode()), "commas in a .tsv": ("a.tsv", text_of().encode()),
    "bars": ("a.txt", text_of("|").encode()), "spaces": ("a.txt", text_of(" ").encode()),
    "tabs and decimal commas": ("a.tsv", text_of("\t", ",").encode()),
    "commas within quotes": ("a.csv", text_of(",", ",").encode()),
    "everything in quotes": ("a.csv", text_of(quoting=1).encode()),
    "UTF-16": ("a.csv", text_of(";", ",").encode("utf-16")),
    "old line ends": ("a.csv", text_of(end="\r").encode()),
    "a line for spreadsheets": ("a.csv", b"sep=;\r\n" + text_of(";", ",", "\r\n").encode()),
    "empty rows and columns": ("a.csv", (text_of(";").replace("\n", ";;\n") + ";;;;\n;;;;\n").encode()),
    "names of rows without a name": ("a.txt", FRAME.to_csv(sep=" ").split(" ", 1)[1].encode()),
}  # fmt: skip


@pytest.mark.parametrize(("name", "content"), WRITTEN.values(), ids=WRITTEN.keys())
def test_however_a_table_is_written_it_is_the_same_table(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    frame = read_table(tmp_path / name).frame
    pd.testing.assert_frame_equal(frame.astype({"y": object}), FRAME.astype({"y": object}))


def zipped(content, names=("inside.csv", "__MACOSX/._inside.csv")):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, content)
    return file.getvalue()


PACKERS = {
    "a.csv.gz": gzip.compress, "a.csv.bz2": bz2.compress, "a.csv.xz": lzma.compress,
    "a.csv.zst": lambda content: pyarrow.compress(content, codec="zstd", asbytes=True), "a.zip": zipped,
}  # fmt: skip


@pytest.mark.parametrize("name", PACKERS)
def test_packed_files_are_unpacked_and_damaged_ones_get_a_sentence(name, tmp_path):
    packed = PACKERS[name](text_of(";", ",").encode("cp1252"))
    (tmp_path / name).write_bytes(packed)
    assert read_table(tmp_path / name).frame["n"].tolist() == [1, 2, 3, 5]
    (tmp_path / name).write_bytes(packed[: len(packed) // 2])
    with pytest.raises(InputError, match=r"cannot be read as a \.\w+ file: it is not, or is damaged"):
        read_table(tmp_path / name)
    (tmp_path / name).write_bytes(b"n,y\n1,2\n")
    with pytest.raises(InputError, match="cannot be read as a"):
        read_table(tmp_path / name)


def test_an_archive_of_several_files_is_refused(tmp_path):
    (tmp_path / "a.zip").write_bytes(zipped(b"a,b\n1,2\n", ["a.csv", "b.csv"]))
    with pytest.raises(InputError, match=r"a\.zip holds 2 files: 'a.csv', 'b.csv'\. Compress only the file"):
        read_table(tmp_path / "a.zip")


def test_what_was_found_out_is_said_and_can_be_overruled(tmp_path):
    (tmp_path / "a.csv").write_bytes(text_of(";", ",").encode("latin-1"))
    notes = " ".join(read_table(tmp_path / "a.csv").notes)
    assert "a.csv is not UTF-8: it is read as Windows-1252" in notes
    assert "seems to have decimal commas. If it does not, add --decimal ." in notes
    told = read_table(tmp_path / "a.csv", Reading(";", ",", "latin-1"))
    assert told.notes == ()
    assert told.frame["Größe"].tolist() == FRAME["Größe"].tolist()
    assert read_table(tmp_path / "a.csv", Reading(decimal=".")).frame["Größe"].tolist()[1] == "2,25"
    assert "Größe" not in read_table(tmp_path / "a.csv", Reading(encoding="cp437")).frame.columns
    with pytest.raises(InputError, match=r"is not text in ascii .*Use another --encoding, such as utf-8"):
        read_table(tmp_path / "a.csv", Reading(encoding="ascii"))
    (tmp_path / "b.csv").write_bytes(b"a.b;c.d\n1.5;2\n")
    assert list(read_table(tmp_path / "b.csv", Reading(sep=".")).frame.columns) == ["a", "b;c", "d"]
    assert list(read_table(tmp_path / "b.csv", Reading(sep=";")).frame.columns) == ["a.b", "c.d"]
    (tmp_path / "b.csv").write_bytes(b"sep=|\na,b|c,d\n1,x|3,4\n")
    assert list(read_table(tmp_path / "b.csv").frame.columns) == ["a,b", "c,d"]
    (tmp_path / "b.csv").write_text("w,1;w,2\n1,5;2,5\n3,5;4,5\n")
    assert list(read_table(tmp_path / "b.csv").frame.columns) == ["w,1", "w,2"], "more of these are numbers"
    (tmp_path / "c.csv").write_text("a;b\n1,5;2.160\n2,5;?\n")
    assert read_table(tmp_path / "c.csv", Reading(decimal=",")).frame["b"].tolist()[0] == 2160
    (tmp_path / "c.csv").write_text("a;b;time\n1,5;2,16;9.30\n2,5;0,5;9.45\n")
    assert read_table(tmp_path / "c.csv").frame.loc[0].tolist() == [1.5, 2.16, "9.30"]


MARKS = [
    (["1.234,5", "2,5"], [1234.5, 2.5], True), (["1,234.5", "2.5"], [1234.5, 2.5], False),
    (["1,5", "1.5"], ["1,5", "1.5"], False), (["1,234", "2,5"], [1.234, 2.5], True),
    (["1.234", "2,5"], [1234.0, 2.5], True), (["1,234", "2.5"], [1234.0, 2.5], False),
    (["0.125", "2,5", "3,5"], ["0.125", "2,5", "3,5"], True),
    (["2,5", *["7"] * 100, "1.234", "-"], ["2,5", *["7"] * 100, "1.234", "-"], True),
]  # fmt: skip


@pytest.mark.parametrize(("cells", "expected", "is_noted"), MARKS)
def test_marks_of_thousands_and_decimals_are_told_apart(cells, expected, is_noted, tmp_path):
    (tmp_path / "a.csv").write_text("a;b\n" + "".join(f"{cell};1\n" for cell in cells))
    table = read_table(tmp_path / "a.csv")
    assert table.frame["a"].tolist() == expected
    assert any("seems to have decimal commas" in note for note in table.notes) == is_noted


def test_marks_for_missing_values_among_numbers_are_gaps_and_said(tmp_path):
    (tmp_path / "a.csv").write_text("a;b;c\n1,5;x;?\n\n;;\nk.A.;-;2\n2;y;\n")
    table = read_table(tmp_path / "a.csv")
    np.testing.assert_array_equal(table.frame["a"], [1.5, np.nan, 2.0])
    np.testing.assert_array_equal(table.frame["c"], [np.nan, 2.0, np.nan])
    assert table.frame["b"].tolist() == ["x", "-", "y"], "texts are left alone"
    assert table.notes[-2:] == ("2 empty rows left out.", "Read as missing values: '?', 'k.A.', in 'a', 'c'.")
    assert table.frame.index.tolist() == [0, 3, 4], "rows keep their place in the file"


def test_what_is_about_text_is_refused_for_other_files(tmp_path):
    FRAME.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"--decimal does not apply to a\.parquet, whose format is parquet"):
        read_table(tmp_path / "a.parquet", Reading(decimal=","))
    (tmp_path / "a.svm").write_text("1 1:2\n")
    with pytest.raises(InputError, match=r"--transpose does not apply to a\.svm, whose format is svmlight"):
        read_table(tmp_path / "a.svm", Reading(transpose=True))


GENES = make_table(12).drop(columns="outcome").set_index(pd.Index([f"s{i}" for i in range(12)]))
OUTCOME = pd.Series(["AML", "ALL"] * 6)


def write_genes(path, **more):
    """Features in rows, one of them with gaps."""
    frame = GENES.T.rename_axis("gene").reset_index()
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, **more)
    return path


@pytest.mark.parametrize("name", ["g.tsv", "g.csv", "g.parquet"])
def test_a_table_on_its_side_is_turned(name, tmp_path):
    table = read_table(write_genes(tmp_path / name), Reading(transpose=True))
    np.testing.assert_allclose(table.frame.to_numpy(), GENES.to_numpy(), rtol=1e-12)
    assert list(table.frame.columns) == list(GENES.columns)
    assert table.row_names.tolist() == list(GENES.index)
    with pytest.raises(InputError, match=r"no column 'type' .* in a separate file, name it with --labels"):
        prepare(table, Roles("type"))


def test_a_row_of_classes_in_a_table_on_its_side_is_the_target(tmp_path):
    GENES.assign(outcome=OUTCOME.to_numpy()).T.to_csv(tmp_path / "g.csv", decimal=",", sep=";")
    with pytest.raises(InputError, match=r"With 'outcome' in its first column .* features in rows"):
        prepare(read_table(tmp_path / "g.csv"), Roles("outcome"))
    dataset = prepare(read_table(tmp_path / "g.csv", Reading(transpose=True)), Roles("outcome"))
    assert dataset.y.tolist() == OUTCOME.tolist()
    assert dataset.ids.tolist() == list(GENES.index)
    np.testing.assert_allclose(dataset.X, GENES.to_numpy(), rtol=1e-12)


def labelled(tmp_path, labels, table=None, **more):
    labels.to_csv(tmp_path / "pheno.csv", index=False)
    table = table or read_table(write_genes(tmp_path / "g.tsv"), Reading(transpose=True))
    how = {"id": None, "target": None, "wanted": [], "all_rows": False} | more
    return join_labels(table, tmp_path / "pheno.csv", **how)


LABELS = pd.DataFrame({"sample": GENES.index, "diagnosis": OUTCOME})


def test_labels_are_joined_by_the_names_of_rows_in_any_order(tmp_path):
    table = labelled(tmp_path, LABELS.sample(frac=1, random_state=0))
    assert table.target == "diagnosis", "the other of two columns"
    assert table.frame["diagnosis"].tolist() == OUTCOME.tolist()
    assert prepare(table, Roles()).encoding.feature_names == list(GENES.columns)


def test_labels_are_joined_by_a_column_that_both_have(tmp_path):
    table = Table(GENES.rename_axis("who").reset_index())
    for more in ({}, {"id": "who"}):
        joined = labelled(tmp_path, LABELS.rename(columns={"sample": "who"}).iloc[::-1], table, **more)
        assert joined.frame["diagnosis"].tolist() == OUTCOME.tolist()
        assert joined.row_names.tolist() == list(GENES.index)
        assert ("who" in joined.frame.columns) == bool(more), (
            "an id that is asked for stays, else it is no column"
        )
    numbers = Table(GENES.reset_index(drop=True).assign(nr=range(12)))
    by_number = LABELS.assign(sample=range(12)).iloc[::-1]
    assert labelled(tmp_path, by_number, numbers, id="nr").frame["diagnosis"].tolist() == OUTCOME.tolist()


def test_rows_without_labels_and_labels_without_rows_are_named(tmp_path):
    labels = pd.DataFrame({"sample": [*GENES.index[2:], "t1"], "diagnosis": [None, *OUTCOME[3:], "ALL"]})
    few = labelled(
        tmp_path, pd.concat([labels[3:], *[labels[-1:].assign(sample=f"t{i}") for i in (2, 3, 4)]])
    )
    assert "no label for 5 rows, left out: 's0', 's1', 's2' and 2 more." in few.notes[0]
    assert few.notes[1].endswith("for 4 labels of pheno.csv: 't1', 't2', 't3' and 1 more.")
    table = labelled(tmp_path, labels)
    assert table.notes == (
        "pheno.csv has no label for 2 rows, left out: 's0', 's1'.",
        "The table has no row for 1 label of pheno.csv: 't1'.",
    )
    dataset = prepare(table, Roles())
    assert dataset.notes[2:] == ("1 row without a label in column 'diagnosis' left out.",)
    assert dataset.ids.tolist() == list(GENES.index[3:])
    assert dataset.rows.tolist() == [*range(4, 13)], "rows keep their place in the file"
    assert dataset.y.tolist() == OUTCOME.tolist()[3:]
    np.testing.assert_allclose(dataset.X, GENES.to_numpy()[3:])
    whole = labelled(tmp_path, labels, all_rows=True)
    assert whole.frame["diagnosis"].isna().tolist() == [True] * 3 + [False] * 9
    (tmp_path / "gaps.csv").write_text("who,w,x\n,,\nu1,1,1\ns3,1,3\n,,\ns4,1,5\ns5,-1,2\n")
    joined = labelled(tmp_path, labels, read_table(tmp_path / "gaps.csv"))
    assert joined.frame.index.tolist() == joined.row_names.index.tolist() == [2, 4, 5]
    with pytest.raises(InputError, match="row 6 of column 'w' holds -1"):
        prepare(joined, Roles(weights="w"))


def test_other_columns_of_the_labels_are_features_only_if_they_are_asked_for(tmp_path):
    labels = LABELS.assign(survival=range(12), batch="x")
    table = labelled(tmp_path, labels, target="diagnosis", wanted=["batch"])
    assert [name for name in table.frame.columns if name not in GENES.columns] == ["diagnosis", "batch"]
    assert table.notes[0].startswith("Not used as features: 'survival' of pheno.csv")


BAD_LABELS = {
    "an id twice": (pd.concat([LABELS, LABELS.iloc[:1]]), {}, "pheno.csv has more than one row called 's0'"),
    "other names": (LABELS.assign(sample=range(12)), {}, "No row of the table has a name in pheno.csv: 's0'"),
    "features": (pd.DataFrame({"sample": GENES.columns, "diagnosis": OUTCOME[:5]}), {},
        "'s0', 's1' in the table, 'age', 'dose' in pheno.csv.*features in rows, add --transpose"),
    "no such column": (LABELS, {"target": "diagnose"}, r"no column 'diagnose'\. Did you mean 'diagnosis'"),
    "no target": (LABELS.assign(age=1), {}, "name the column to predict.*It has 'diagnosis', 'age'"),
    "no id": (LABELS, {"id": "smple"}, "--id: neither pheno.csv nor the table has a column 'smple'"),
    "a column of both": (LABELS.assign(age=1), {"target": "diagnosis", "wanted": ["age"]},
        "more than one column called 'age'"),
}  # fmt: skip


@pytest.mark.parametrize(("labels", "more", "message"), BAD_LABELS.values(), ids=BAD_LABELS.keys())
def test_labels_that_do_not_fit_get_a_sentence(labels, more, message, tmp_path):
    with pytest.raises(InputError, match=message):
        labelled(tmp_path, labels, **more)


N = 40
RNG = np.random.default_rng(5)
NAMING = {
    "a counter": ("visit", range(7, 7 + N), "numbers the rows"),
    "a counter, shuffled": ("visit", RNG.permutation(N), "numbers the rows"),
    "in order": ("visit", np.cumsum(RNG.integers(1, 9, N)), "a different whole number in each row, in order"),
    "an id": ("patient_id", RNG.permutation(9 * N)[:N], "and the name of an id"),
    "an ID": ("PatientID", RNG.permutation(9 * N)[:N], "and the name of an id"),
    "an id as a fraction": ("Fall-Nr.", RNG.permutation(9 * N)[:N] * 1.0, "and the name of an id"),
    "texts": ("who", [f"p{i}" for i in RNG.permutation(N)], "has a different text in each row"),
}  # fmt: skip


def with_column(name, values):
    return Table(make_table(N).assign(**{name: values}))


@pytest.mark.parametrize(("name", "values", "reason"), NAMING.values(), ids=NAMING.keys())
def test_a_column_that_names_the_rows_is_left_out_and_said_and_can_be_kept(name, values, reason):
    table = with_column(name, values)
    dataset = prepare(table, Roles("outcome"))
    assert name not in dataset.encoding.columns
    (note,) = dataset.notes
    assert reason in note
    assert f"Use --feature {name} to include it" in note
    if reason != "has a different text in each row":
        for more in ({"features": [name]}, {"keep": [name]}):
            kept = prepare(table, Roles("outcome", **more))
            assert name in kept.encoding.columns
            assert kept.notes == ()


MEASURED = {
    "counts": ("reads", RNG.permutation(9 * N)[:N]),
    "a number of something": ("number of reads", RNG.permutation(9 * N)[:N]),
    "fractions": ("patient_id", RNG.random(N)), "values that come again": ("patient_id", [*range(N - 1), 0]),
    "texts of numbers": ("dose_mg", [f"{i},5 mg" for i in range(N)]),
}  # fmt: skip


@pytest.mark.parametrize(("name", "values"), MEASURED.values(), ids=MEASURED.keys())
def test_a_column_that_may_be_measured_is_not_left_out(name, values):
    dataset = prepare(with_column(name, values), Roles("outcome", encode="onehot"))
    assert name in dataset.encoding.columns
    if "reads" in name:
        assert dataset.notes[0].startswith(
            f"Each row has a different whole number in '{name}'. If these name the rows"
        )
