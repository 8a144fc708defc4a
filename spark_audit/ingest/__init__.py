"""Trails as Parquet, by date and gateway, for faster audits and for questions of one's own.

    TO/manifest.json                         the ingested segments and their files; it alone counts
    TO/records/date=.../gateway_id=.../*.parquet   lines, sorted by sequence
    TO/digests/TRAIL/*.digest                copies of the trails' digests
    TO/records/_delta_log/*.json             a Delta table of these lines, where it was asked for
    TO/records/_delta_log/*.parquet          checkpoints of its log
    TO/staging/                              files that Spark is writing, in a folder of this machine

    segments     closed segments measured: bytes, lines, SHA-256
    manifest     the manifest as values; replaced as a whole, after the files that it names are safe
    warehouse    the place: one writer, remains of a kill, files brought into place
    parquet_files  lines written and read: by Spark itself here, by its workers where a URI names the place
    delta_log    the log of the Delta table; it follows the manifest
    delta_checkpoint  the log's checkpoints, and how long its commits stay
    ingestion    new segments to files, in batches; small files to large ones
    audit_input  the input of an audit, from Parquet

The trail is the evidence. The Parquet is made from it, and can be made again. Trail and name identify a segment, and
its SHA-256 must stay the same, compressed or not. A trail has the name of the first gateway that wrote it.
"""
