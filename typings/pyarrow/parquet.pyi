# The little of pyarrow.parquet that this project uses.
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import BinaryIO

from pyarrow import RecordBatch, Schema, Table

class FileMetaData:
    num_rows: int

class ParquetFile:
    schema_arrow: Schema
    metadata: FileMetaData
    num_row_groups: int
    def __init__(self, source: BinaryIO, *, read_dictionary: list[str] | None = ...) -> None: ...
    def iter_batches(
        self,
        batch_size: int = ...,
        row_groups: Sequence[int] | None = ...,
        columns: Sequence[str] | None = ...,
    ) -> Iterator[RecordBatch]: ...

def write_table(table: Table, where: str | PathLike[str], row_group_size: int | None = ...) -> None: ...
