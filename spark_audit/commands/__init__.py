"""The commands of `python -m spark_audit`, a module for each; arguments.py has their options.

    run        audit trails, or the Parquet of ingest
    ingest     trails to Parquet
    bulk       audit archives of captured messages
    stream     audit each closed segment when it comes
    convert    archives of messages

Exit code 0: clean or done; 1: violations; 2: not evaluable (nothing to read, unreadable, no Java); 3: usage.
"""
