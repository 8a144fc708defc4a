"""The gateway's command line in a process that compares each header which travelled with a message with its bytes."""

from gateway.cli import main
from tests.written_headers import compare_every_header

if __name__ == "__main__":
    compare_every_header()
    main()
