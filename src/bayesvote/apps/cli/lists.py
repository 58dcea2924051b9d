"""Options with several values, as a,b,c."""

import csv


def split(given: str) -> list[str]:
    """Split the value of an option; a text with a comma is in quotes.

    >>> split('a, "b,c",d')
    ['a', 'b,c', 'd']
    """
    return [text.strip() for text in next(csv.reader([given], skipinitialspace=True), [])]
