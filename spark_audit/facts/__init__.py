"""Facts: what a trail says, read once, as narrow tables that the rules of the controls ask in SQL.

    pieces        what is read: parts of segments, or files of Parquet that `ingest` made; each gives lines
    lines         a line of a segment: parsed once, its types and its hash checked
    values        what is wrong with a single record
    conversions   a conversion performed again, with a memory for those that are alike
    reader        lines to rows of the tables
    tables        the tables and their columns

Everything here is plain Python and Arrow: Spark runs it in its workers (engines/spark.py), DuckDB in processes beside
it (engines/duck.py). A reader holds a batch of rows; nothing that stands in a line makes it fail.
"""
