"""An interruption waits while Spark starts, whichever thread the system gives it to."""

import subprocess
import sys

PROGRAM = """
import os, signal, threading, time
from spark_audit.interruption import Interruption

thread = threading.Thread(target=time.sleep, args=(600,), daemon=True)
thread.start()
received, told = os.pipe()
os.set_blocking(told, False)
signal.set_wakeup_fd(told)
with Interruption() as interruption:
    try:
        with interruption.held():
            signal.signal(signal.SIGINT, lambda *_: print("PySpark's handler"))
            signal.pthread_kill(thread.ident, signal.SIGINT)
            os.read(received, 1)
            print("started")
    except KeyboardInterrupt:
        print("interrupted", interruption.has_come)
"""


def test_an_interruption_that_another_thread_takes_waits_until_spark_has_started() -> None:
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "started\ninterrupted True\n", "")
