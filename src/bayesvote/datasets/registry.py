"""The paper's thirteen data sets: their sources and expected contents."""

from typing import NamedTuple

SITE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"


class DatasetFacts(NamedTuple):
    """Expected contents of a version of a data set; None if not known.

    The SHA-256 is computed from the values by `bayesvote.datasets.loading.fingerprint`.
    """

    rows: int
    positives: int | None
    sha256: str | None


class DatasetEntry(NamedTuple):
    """A data set: number of features, expected contents, files on the LIBSVM site in order, and storage."""

    features: int
    whole: DatasetFacts
    pieces: tuple[str, ...]
    sparse: bool = False
    part: DatasetFacts | None = None


DATASETS: dict[str, DatasetEntry] = {
    "heart": DatasetEntry(
        13, DatasetFacts(270, 120, "dd2ae03bd5d52fb1b4d94ec8b496af7170603dbd4e7320418d221b68731557d6"), ("heart",)
    ),
    "breast-cancer": DatasetEntry(
        10,
        DatasetFacts(683, 239, "f62f292d882f6f152a271964e9480d1d9158f36c99e9578dd271c61d9c618fbc"),
        ("breast-cancer",),
    ),
    "australian": DatasetEntry(
        14, DatasetFacts(690, 307, "aeb8f9c8a4a0f8eafb166466866d0e74da6cb1320cfc9d8d4512dba36cec698f"), ("australian",)
    ),
    "diabetes": DatasetEntry(
        8, DatasetFacts(768, 500, "6df012949bd5e934ca5e18a6ebf0fbc42bd1e71f4e72edce9e731e366bdbd79b"), ("diabetes",)
    ),
    "german": DatasetEntry(
        24,
        DatasetFacts(1000, 300, "d7fdd87427ea4fb7769b6aaee47fb9480b86f4245c17d8b00d006645387c1d16"),
        ("german.numer",),
    ),
    "splice": DatasetEntry(
        60,
        DatasetFacts(3175, 1648, "cf4d18cf2e041dad2866ff232a96e2dbbdb7441eeac4bf9c18c0dfa810801ca4"),
        ("splice", "splice.t"),
    ),
    "mushrooms": DatasetEntry(
        112,
        DatasetFacts(8124, 4208, "a4aa953bdba3f82af7a97bdc29efc5efbad903a88c45a25efee584546be70749"),
        ("mushrooms",),
        sparse=True,
    ),
    "ionosphere": DatasetEntry(
        34,
        DatasetFacts(351, 225, "7eadadadb8ffaa36e84dbe9ca2b99de7ccb9d3294fb85daff19891dfcd43b8ac"),
        ("ionosphere_scale",),
    ),
    "sonar": DatasetEntry(
        60, DatasetFacts(208, 97, "54d65468509e1441980869df0352c0f5e0aa60da8de6a0891bf256b3396fb822"), ("sonar_scale",)
    ),
    "svmguide3": DatasetEntry(
        22,
        DatasetFacts(1284, 337, "c100987b27991b35b5bb666fadfe1c811f018919c6e7af128c9eb10c813977dc"),
        ("svmguide3", "svmguide3.t"),
    ),
    "adult": DatasetEntry(
        123,
        DatasetFacts(48842, 11687, "400376777b7d03b056f99823eddd6b59b503efc6f81a37a8ce138a3088781eec"),
        ("a9a", "a9a.t"),
        sparse=True,
    ),
    "cod-rna": DatasetEntry(
        8,
        DatasetFacts(488565, None, None),
        ("cod-rna", "cod-rna.r", "cod-rna.t"),
        part=DatasetFacts(216948, 72316, "755c0c594e12256243d0f8412ff32a05aa1254669a034cd60d40f7ff8c7e361e"),
    ),
    "covtype": DatasetEntry(
        54,
        DatasetFacts(581012, 283301, "152598cacfa4698d6993fd0905d59dbe0fb036a877d2fcfc57354dd0bb9a2ce6"),
        ("covtype.libsvm.binary.bz2",),
    ),
}
