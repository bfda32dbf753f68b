"""Parquet files: the types of their columns, reading and writing. This needs the extra `[parquet]`.

Nothing else imports these modules before a file of this format is named.
"""

try:
    import pyarrow.parquet  # noqa: F401
except ImportError:
    raise ImportError('Parquet files need pyarrow. Install it: pip install "spacy-pll[parquet]"') from None
