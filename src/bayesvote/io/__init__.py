"""Readers of CSV, LIBSVM and Parquet files, and model files."""
