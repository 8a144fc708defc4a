"""What `python -m spark_audit` does, a module for each command; arguments.py says what each takes.

    run        audit trails, or what ingest made of them
    ingest     trails to Parquet
    bulk       audit archives of captured messages
    stream     audit closed segments as they come
    convert    archives of messages

Exit code 0: clean or done; 1: violations; 2: not evaluable (nothing to read, unreadable, no Java); 3: usage.
"""
