# The little of pyarrow.parquet that this project uses.
from collections.abc import Iterator
from os import PathLike
from typing import BinaryIO

from pyarrow import RecordBatch, Schema, Table

class ParquetFile:
    schema_arrow: Schema
    def __init__(self, source: BinaryIO) -> None: ...
    def iter_batches(self, batch_size: int = ...) -> Iterator[RecordBatch]: ...

def write_table(table: Table, where: str | PathLike[str], row_group_size: int | None = ...) -> None: ...
