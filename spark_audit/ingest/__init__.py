"""Trails as Parquet, by date and gateway: faster to audit again, and for whoever wants to ask questions of their own.

    TO/manifest.json                         what was ingested, and which files hold it: it alone counts
    TO/records/date=.../gateway_id=.../*.parquet   lines, sorted by sequence
    TO/digests/TRAIL/*.digest                copies of the trails' digests
    TO/staging/                              what is being written

    segments     closed segments measured: bytes, lines, SHA-256
    manifest     the manifest as values; replaced as a whole, after the files that it names are safe
    warehouse    the folder: one writer, what a kill left behind, files brought into place
    ingestion    new segments to files, in batches; small files to large ones
    audit_input     what an audit judges, from Parquet

The trail is the evidence; this is made from it and can be made again. A segment is known by its trail and name, and its
SHA-256 must stay the same, whether it is compressed or not. A trail is called by the first gateway that wrote it.
"""
