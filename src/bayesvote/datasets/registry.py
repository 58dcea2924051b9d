"""The paper's thirteen data sets: where they come from and what is known of them."""

from typing import NamedTuple

SITE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"


class Facts(NamedTuple):
    """What a version of a set must have; None where it is not known.

    The SHA-256 is that of the values, by `bayesvote.datasets.loading.fingerprint`.
    """

    rows: int
    positives: int | None
    sha256: str | None


class Entry(NamedTuple):
    """A set: its number of features, its facts, its files on the LIBSVM site, in order, and how it is held."""

    features: int
    whole: Facts
    pieces: tuple[str, ...]
    sparse: bool = False
    part: Facts | None = None


DATASETS: dict[str, Entry] = {
    "heart": Entry(13, Facts(270, 120, "dd2ae03bd5d52fb1b4d94ec8b496af7170603dbd4e7320418d221b68731557d6"), ("heart",)),
    "breast-cancer": Entry(
        10, Facts(683, 239, "f62f292d882f6f152a271964e9480d1d9158f36c99e9578dd271c61d9c618fbc"), ("breast-cancer",)
    ),
    "australian": Entry(
        14, Facts(690, 307, "aeb8f9c8a4a0f8eafb166466866d0e74da6cb1320cfc9d8d4512dba36cec698f"), ("australian",)
    ),
    "diabetes": Entry(
        8, Facts(768, 500, "6df012949bd5e934ca5e18a6ebf0fbc42bd1e71f4e72edce9e731e366bdbd79b"), ("diabetes",)
    ),
    "german": Entry(
        24, Facts(1000, 300, "d7fdd87427ea4fb7769b6aaee47fb9480b86f4245c17d8b00d006645387c1d16"), ("german.numer",)
    ),
    "splice": Entry(
        60,
        Facts(3175, 1648, "cf4d18cf2e041dad2866ff232a96e2dbbdb7441eeac4bf9c18c0dfa810801ca4"),
        ("splice", "splice.t"),
    ),
    "mushrooms": Entry(
        112,
        Facts(8124, 4208, "a4aa953bdba3f82af7a97bdc29efc5efbad903a88c45a25efee584546be70749"),
        ("mushrooms",),
        sparse=True,
    ),
    "ionosphere": Entry(
        34,
        Facts(351, 225, "7eadadadb8ffaa36e84dbe9ca2b99de7ccb9d3294fb85daff19891dfcd43b8ac"),
        ("ionosphere_scale",),
    ),
    "sonar": Entry(
        60, Facts(208, 97, "54d65468509e1441980869df0352c0f5e0aa60da8de6a0891bf256b3396fb822"), ("sonar_scale",)
    ),
    "svmguide3": Entry(
        22,
        Facts(1284, 337, "c100987b27991b35b5bb666fadfe1c811f018919c6e7af128c9eb10c813977dc"),
        ("svmguide3", "svmguide3.t"),
    ),
    "adult": Entry(
        123,
        Facts(48842, 11687, "400376777b7d03b056f99823eddd6b59b503efc6f81a37a8ce138a3088781eec"),
        ("a9a", "a9a.t"),
        sparse=True,
    ),
    "cod-rna": Entry(
        8,
        Facts(488565, None, None),
        ("cod-rna", "cod-rna.r", "cod-rna.t"),
        part=Facts(216948, 72316, "755c0c594e12256243d0f8412ff32a05aa1254669a034cd60d40f7ff8c7e361e"),
    ),
    "covtype": Entry(
        54,
        Facts(581012, 283301, "152598cacfa4698d6993fd0905d59dbe0fb036a877d2fcfc57354dd0bb9a2ce6"),
        ("covtype.libsvm.binary.bz2",),
    ),
}
