"""The tree of commands: names, one-line help, and the example that each one shows."""

from typing import Final

import typer
import typer.main

from gateway.cli.application import Application
from gateway.cli.audit.commands import audit
from gateway.cli.balance import balance
from gateway.cli.channel import channel
from gateway.cli.check import check
from gateway.cli.examples import epilog
from gateway.cli.explain import explain
from gateway.cli.message.convert import convert
from gateway.cli.message.inspect import inspect
from gateway.cli.message.lint import lint
from gateway.cli.mqsc import mqsc
from gateway.cli.queue.commands import queue
from gateway.cli.run import run
from gateway.cli.sessions import sessions
from gateway.cli.simulate.command import simulate
from gateway.cli.user import user

_tree = typer.Typer(
    name="rfhbridge",
    cls=Application,
    help="Edge gateway between MQTT telemetry and IBM MQ publish/subscribe, in MQRFH and MQRFH2.",
    epilog=epilog(
        "rfhbridge run", "rfhbridge queue list", "rfhbridge convert --to mqrfh2 message.bin -o converted.bin"
    ),
    add_completion=False,
    rich_markup_mode=None,
)
_tree.command(epilog=epilog("rfhbridge run", "rfhbridge run --listen 127.0.0.1:1884 --data var --header mqrfh"))(run)
_tree.command(
    epilog=epilog(
        "rfhbridge check --example > rfhbridge.toml",
        "rfhbridge check --config rfhbridge.toml",
        "rfhbridge check --config rfhbridge.toml --connect",
    )
)(check)
_tree.add_typer(queue, name="queue")
_tree.command(epilog=epilog("rfhbridge balance", "rfhbridge balance --json --data /var/lib/rfhbridge"))(balance)
_tree.add_typer(channel, name="channel")
_tree.add_typer(sessions, name="sessions")
_tree.command(epilog=epilog("rfhbridge mqsc queues.mqsc", "echo 'DISPLAY QLOCAL(*) CURDEPTH' | rfhbridge mqsc"))(mqsc)
_tree.command(
    epilog=epilog(
        "rfhbridge explain plant/boiler/temperature --client boiler-1",
        "rfhbridge explain plant/boiler/temperature --property content-type=text/plain --property user-property=unit=C",
        "rfhbridge explain --mqsc > set-up.mqsc",
    )
)(explain)
_tree.command(
    epilog=epilog(
        "rfhbridge convert --to mqrfh2 message.bin -o converted.bin --report report.json",
        "rfhbridge queue get ORDERS --raw | rfhbridge convert --to mqrfh --ccsid 819 > message.bin",
    )
)(convert)
_tree.command(epilog=epilog("rfhbridge inspect message.bin", "rfhbridge inspect --json < message.bin"))(inspect)
_tree.command(epilog=epilog("rfhbridge lint message.bin", "rfhbridge lint --json --queue ORDERS.STREAM < message.bin"))(
    lint
)
_tree.command(
    epilog=epilog(
        "rfhbridge simulate --sensors 20 --rate 5 --qos 1 --seconds 10",
        "rfhbridge simulate --sensors 2 --rate 1 --qos 2 --seconds 60 --user plant --password-file plant.password",
    )
)(simulate)
_tree.add_typer(user, name="user")
_tree.add_typer(audit, name="audit")

#: The command `rfhbridge`. It is made once in a process, because that takes 30 ms.
application: Final = typer.main.get_command(_tree)
