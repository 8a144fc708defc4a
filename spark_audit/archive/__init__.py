"""Archives of captured messages: read, examined one by one, and audited as a whole.

files         one message a file, or Parquet, as frames
examination   each message and its conversion, performed again
audit         the controls over all of them, and a result
"""
