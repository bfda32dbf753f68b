"""Parquet files: the types of their columns, reading and writing. This needs the extra `[parquet]`.

Nothing else imports these modules before a file of this format is named.
"""

try:
    import pyarrow.parquet  # noqa: F401
except ImportError:
    from ...requirements import install_command

    raise ImportError(f"Parquet files need pyarrow. Install it with: {install_command('parquet')}") from None
