"""The files of a trail, by their definition. The gateway writes them, the audit reads them; nothing here needs Spark.

segment_forms  segments: their names, and their forms from open to compressed
digest         the signed digest of a segment, and the chain of digests
merkle         the Merkle tree over the lines of a segment
signature      keys and signatures
witness_note   what the gateway notes of each witness of its digests
"""
