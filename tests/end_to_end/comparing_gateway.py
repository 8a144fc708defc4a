"""The gateway's command line in a process that compares each header which travelled with a message with its bytes."""

from gateway.cli import main
from gateway.compiled import use

if __name__ == "__main__":
    use()  # what is imported next loads modules that may be compiled
    from tests.written_headers import compare_every_header

    compare_every_header()
    main()
