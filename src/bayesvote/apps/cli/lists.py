"""Options that take several texts, as a,b,c."""

import csv


def split(given: str) -> list[str]:
    """Texts of an option; one with a comma is put in quotes.

    >>> split('a, "b,c",d')
    ['a', 'b,c', 'd']
    """
    return [text.strip() for text in next(csv.reader([given], skipinitialspace=True), [])]
