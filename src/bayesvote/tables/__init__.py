"""Tables of numbers, categories, booleans and dates, and their encoding as numeric features."""

from bayesvote.tables.block import bucket_of
from bayesvote.tables.cells import MISSING_TEXTS, Cells, Sort, Table, shortened
from bayesvote.tables.columns import Columns, Piece
from bayesvote.tables.matching import as_numbers, holds_text, ignore, matched, named_columns, usual_names
from bayesvote.tables.merging import conflict, difference, merged, usual_kinds
from bayesvote.tables.reading import columns_of, has_text, is_table, not_numbers, read_table

__all__ = [
    "MISSING_TEXTS",
    "Cells",
    "Columns",
    "Piece",
    "Sort",
    "Table",
    "as_numbers",
    "bucket_of",
    "columns_of",
    "conflict",
    "difference",
    "has_text",
    "holds_text",
    "ignore",
    "is_table",
    "matched",
    "merged",
    "named_columns",
    "not_numbers",
    "read_table",
    "shortened",
    "usual_kinds",
    "usual_names",
]
