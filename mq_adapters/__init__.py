"""Queue managers behind one port: the embedded one with its publish/subscribe broker, and IBM MQ (mq_adapters.ibm_mq).

An MQ application beside the gateway registers as a subscriber with MQRFH, and gets what a sensor publishes:

    from rfhbridge import FORMAT_MQRFH, Dialect, Message, MessageDescriptor, RegisterSubscriber, connect, write_command

    with connect("var") as queue_manager:
        queue_manager.define("BOILER.ALARMS")
        command = RegisterSubscriber(topics=("boiler/*",), queue_name="BOILER.ALARMS")
        request = MessageDescriptor(format=FORMAT_MQRFH)
        header = write_command(command, Dialect.MQRFH)
        queue_manager.put("SYSTEM.BROKER.CONTROL.QUEUE", Message(request, header))
        publication = queue_manager.get("BOILER.ALARMS", wait_s=60)
        print(publication.descriptor.format, publication.body)

Importing this package loads nothing else; `connect` loads what it needs.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mq_adapters.embedded.engine import Engine
    from mq_adapters.embedded.mqsc.publish_subscribe import PublishSubscribe
    from mq_adapters.queue_manager import QueueAdministration

#: How long `connect` tries while a gateway owns the store and has not opened its socket yet, in seconds.
STARTING_GATEWAY_WAIT_S = 10.0
_RETRY_S = 0.05


def connect(
    data_dir: "str | Path",
    *,
    application_name: str = "",
    token: str = "",
    may_own: bool = True,
) -> "QueueAdministration":
    """Connect to the queue manager of a data folder. One thread uses the connection, and closes it (`with` does).

    `data_dir` is the folder that `rfhbridge run --data` names. Where a gateway runs on it, this connection is the
    gateway's client. Where none runs, it owns the store until it is closed: its calls never wait, and a gateway that
    starts meanwhile waits for it, 10 seconds at most. A program that runs beside a gateway for long and connects again
    after a loss says `may_own=False`: without a gateway it gets 2059. `application_name` becomes PutApplName; it is the
    program's name by default. `token` is that of an application with rights of its own. Such a program names the
    gateway's `queue_manager.socket_folder`, and never owns the store.

    Raises QueueManagerError: 2059 where no gateway runs and `may_own` is False, 2042 where another process owns the
    store and opens no socket, 2035 where the gateway belongs to another user and has no [[application]] for this
    one. Raises StoreError where the store cannot be opened.
    """
    owns = may_own and not token
    return connect_prepared(
        data_dir, lambda _engine: None, application_name=application_name, token=token, may_own=owns
    )


def connect_prepared(
    data_dir: "str | Path",
    prepare: "Callable[[Engine], None]",
    *,
    application_name: str = "",
    token: str = "",
    may_own: bool = True,
) -> "QueueAdministration":
    """`connect` for the gateway's own commands, which note what their operator does.

    `prepare` is called with the engine if this connection owns the store.
    """
    import sys
    import time
    from pathlib import Path

    from mq_adapters.embedded.socket.client import SocketClient
    from mq_adapters.reasons import QueueManagerError, ReasonCode

    folder = Path(data_dir)
    name = application_name or Path(sys.argv[0]).name
    deadline = time.monotonic() + STARTING_GATEWAY_WAIT_S
    while True:
        try:
            return SocketClient(folder, application_name=name, token=token)
        except QueueManagerError as error:
            if error.reason_code != ReasonCode.MQRC_Q_MGR_NOT_AVAILABLE or not may_own:
                raise
        from mq_adapters.embedded.direct import Direct

        def prepared(engine: "Engine") -> None:
            engine.objects.publish_subscribe = lambda: _without_broker(engine)
            prepare(engine)

        try:
            return Direct(folder, application_name=name, prepare=prepared)
        except QueueManagerError as error:
            if error.reason_code != ReasonCode.MQRC_OBJECT_IN_USE or time.monotonic() >= deadline:
                raise
        time.sleep(_RETRY_S)


def _without_broker(engine: "Engine") -> "PublishSubscribe":
    """The subscriptions of a store that no broker serves. The broker is loaded for a command about them only."""
    from mq_adapters.broker.broker import unattended_administration

    return unattended_administration(engine)
