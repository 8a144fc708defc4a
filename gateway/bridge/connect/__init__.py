"""CONNECT and DISCONNECT: a client comes and goes; its will, its session's end, and the operator's hand on both."""
