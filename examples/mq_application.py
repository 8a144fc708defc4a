"""An MQ application: registers as a subscriber in MQRFH or MQRFH2, and prints what sensors publish.

    .venv/bin/python examples/mq_application.py --data var --queue PUMP.READINGS --topic 'plant/*' --header mqrfh

It runs beside the gateway and uses its queues through the Unix socket in the data folder. In MQRFH a topic has the
wildcards * and ?, in MQRFH2 it has # and +. Stop it with Ctrl-C; the registration stays, as registrations do.
"""

import argparse
import sys
from pathlib import Path

from rfhbridge import (
    FORMAT_MQRFH,
    FORMAT_MQRFH2,
    MQMT_REQUEST,
    Dialect,
    HeaderChain,
    MappingError,
    Message,
    MessageDescriptor,
    Mqrfh,
    Mqrfh2,
    QueueAdministration,
    QueueManager,
    QueueManagerError,
    ReasonCode,
    RegisterSubscriber,
    connect,
    read_headers,
    read_response,
    requeued,
    write_command,
)

CONTROL_QUEUE = "SYSTEM.BROKER.CONTROL.QUEUE"
FORMATS = {Dialect.MQRFH: FORMAT_MQRFH, Dialect.MQRFH2: FORMAT_MQRFH2}


def main() -> int:
    arguments = read_arguments()
    dialect = Dialect(arguments.header)
    with connect(arguments.data, application_name="mq_application", may_own=False) as queue_manager:
        define(queue_manager, arguments.queue)
        completion = register(queue_manager, arguments.queue, arguments.topic, dialect)
        print(f"registered {arguments.topic} for {arguments.queue}: completion code {completion}", flush=True)
        for _ in range(arguments.count):
            work_on_next(queue_manager, arguments.queue, arguments.wait)
    return 0


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="An MQ application that gets what sensors publish.")
    parser.add_argument("--data", type=Path, default=Path("var"), help="the gateway's data folder")
    parser.add_argument("--queue", default="PUMP.READINGS", help="the application's own queue")
    parser.add_argument("--topic", default="plant/*", help="what to subscribe to")
    parser.add_argument("--header", choices=["mqrfh", "mqrfh2"], default="mqrfh", help="the application's format")
    parser.add_argument("--count", type=int, default=1, help="how many publications to get")
    parser.add_argument("--wait", type=float, default=60.0, help="seconds to wait for each")
    return parser.parse_args()


def define(queue_manager: QueueAdministration, queue_name: str) -> None:
    try:
        queue_manager.define(queue_name, description="readings for mq_application")
    except QueueManagerError as error:
        if error.reason_code != ReasonCode.MQRC_OBJECT_ALREADY_EXISTS:
            raise


def register(queue_manager: QueueAdministration, queue_name: str, topic: str, dialect: Dialect) -> int:
    """RegSub; the broker answers on the application's own queue. Returns the completion code, 0 for success."""
    command = RegisterSubscriber(topics=(topic,), queue_name=queue_name)
    descriptor = MessageDescriptor(format=FORMATS[dialect], msg_type=MQMT_REQUEST, reply_to_q=queue_name)
    msg_id = queue_manager.put(CONTROL_QUEUE, Message(descriptor, write_command(command, dialect)))
    answer = queue_manager.get(queue_name, wait_s=10.0, correl_id=msg_id)
    return int(read_response(headers_of(answer)).completion)


def work_on_next(queue_manager: QueueManager, queue_name: str, wait_s: float) -> None:
    """Gets a publication and shows it in one unit of work, and puts aside what was backed out too often (BOTHRESH)."""
    queue_manager.begin()
    try:
        message = queue_manager.get(queue_name, wait_s=wait_s)
        if not requeued(queue_manager, queue_name, message):
            show(message)
    except BaseException:
        queue_manager.back_out()
        raise
    queue_manager.commit()


def headers_of(message: Message) -> HeaderChain:
    descriptor = message.descriptor
    return read_headers(
        message.body,
        format=descriptor.format,
        coded_char_set_id=descriptor.coded_char_set_id,
        encoding=descriptor.encoding,
    )


def show(message: Message) -> None:
    chain = headers_of(message)
    print(f"format  {message.descriptor.format.decode().strip()}")
    for header in chain.headers:
        if isinstance(header, Mqrfh):
            print(f"header  {header.name_value_string}")
        elif isinstance(header, Mqrfh2):
            print(f"header  {' '.join(folder.raw.decode() for folder in header.folders)}")
    print(f"payload {message.body[chain.body_offset :].decode(errors='replace')}", flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (QueueManagerError, MappingError) as error:
        sys.exit(f"mq_application: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
