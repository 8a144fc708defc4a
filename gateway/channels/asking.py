"""A channel process that only asks: it reports the contents of a target's state queues before anything runs.

It browses them without a fence, and changes nothing. Another process that still has a state queue open can only commit
the batch that the store has in doubt.
"""

import logging
import signal
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from math import ceil
from typing import Final

from gateway.channels.connections import ConnectRemote
from gateway.channels.names import outbound_channel
from gateway.channels.protocol import ProcessSettings, Report, line_of
from gateway.config.queue_names import state_queue_name
from mq_adapters.channel.state_message import MAXIMUM_STATE_BYTES
from mq_adapters.reasons import QueueManagerError

#: Messages to browse: a state queue has one, and any number above one is the same error.
_MESSAGES: Final = 2

_log = logging.getLogger(__name__)


def tell_states(settings: ProcessSettings, connect: ConnectRemote, write: Callable[[bytes], None]) -> int:
    """Writes a report for each shard.

    Exit 0: all reports are written; 1: the target did not answer, and the log says why.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(ceil(settings.ask_s))  # ends a call that hangs in IBM's library
    try:
        queue_manager = connect(settings.target)
    except QueueManagerError as error:
        _log.info("target not asked target=%s reason=%s", settings.target.name, str(error))
        return 1
    exit_code = 0
    for shard in range(settings.shards):
        queue_name = state_queue_name(settings.target.state_queue, shard)
        try:
            found = [message.body for message in islice(queue_manager.browse(queue_name), _MESSAGES)]
        except QueueManagerError as error:
            _log.info("state queue not asked target=%s reason=%s", settings.target.name, str(error))
            exit_code = 1
            continue
        channel, identifier = outbound_channel(settings.target.name, shard), queue_manager.identifier
        bodies = [body.decode("latin-1") for body in found if len(body) <= MAXIMUM_STATE_BYTES]
        write(line_of(report=Report.STATE, channel=channel, identifier=identifier, messages=bodies))
    with suppress(QueueManagerError):
        queue_manager.close()
    return exit_code
