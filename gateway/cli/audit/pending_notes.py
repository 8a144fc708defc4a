"""Audit notes that still wait when a command wants the trail.

A running gateway, or else the command, writes them first.
"""

import logging
import time
from pathlib import Path
from typing import Final

from gateway.cli.settings_options import has_store
from mq_adapters.reasons import QueueManagerError, ReasonCode, StoreError

_APPLICATION_NAME: Final = "rfhbridge"
#: A running gateway may take so many seconds to write the notes that wait on its audit queue.
EXPORT_WAIT_S: Final = 10.0
_POLL_S: Final = 0.05
#: Reasons of a gateway that does not listen yet, does not listen any more, or ended meanwhile.
_GATEWAY_GONE: Final = (
    ReasonCode.MQRC_Q_MGR_NOT_AVAILABLE,
    ReasonCode.MQRC_CONNECTION_BROKEN,
    ReasonCode.MQRC_Q_MGR_STOPPING,
)
_log = logging.getLogger(__name__)


def export_pending(data_folder: Path) -> None:
    """Writes the notes that wait on the audit queue to the trail, or waits until a running gateway has done so.

    A folder without a store is a copied trail, and a store that cannot be written is evidence. This touches neither,
    and the audit reads the trail as it is. If a gateway is starting or ending, or another command has the store, this
    waits.
    """
    if not has_store(data_folder):
        return
    deadline_s = time.monotonic() + EXPORT_WAIT_S
    try:
        while not (_is_exported_here(data_folder) or _is_exported_by_gateway(data_folder, deadline_s)):
            time.sleep(_POLL_S)
    except StoreError as error:
        _log.warning("notes that wait are not included reason=%s", error)


def _is_exported_here(data_folder: Path) -> bool:
    """Writes the notes here. False if somebody else has the store."""
    from gateway.audit_trail.exporter import TRAIL_FOLDER
    from gateway.audit_trail.exporter import export_pending as export
    from gateway.audit_trail.notes.acts import keep_acts
    from mq_adapters.embedded.direct import Direct
    from mq_adapters.embedded.rights import EXPORTER

    try:
        queue_manager = Direct(data_folder, rights=EXPORTER, prepare=keep_acts)
    except QueueManagerError as error:
        if error.reason_code != ReasonCode.MQRC_OBJECT_IN_USE:
            raise
        return False
    with queue_manager:
        export(queue_manager, data_folder / TRAIL_FOLDER, close_segment=True)
    return True


def _is_exported_by_gateway(data_folder: Path, deadline_s: float) -> bool:
    """Waits until a gateway has written the notes, or for the deadline.

    False if none listens and there is time left.
    """
    from mq_adapters.embedded.socket.client import SocketClient
    from mq_adapters.system_queues import AUDIT_QUEUE

    is_told = False
    try:
        with SocketClient(data_folder, application_name=_APPLICATION_NAME) as gateway:
            while batches := gateway.depth(AUDIT_QUEUE):
                if time.monotonic() >= deadline_s:
                    _log.warning("notes that wait are not included batches=%s wait_s=%s", batches, EXPORT_WAIT_S)
                    break
                if not is_told:
                    _log.info("waiting until the gateway has written its notes batches=%s", batches)
                is_told = True
                time.sleep(_POLL_S)
    except QueueManagerError as error:
        if error.reason_code in _GATEWAY_GONE and time.monotonic() < deadline_s:
            return False
        _log.warning("notes that wait are not included reason=%s", error)
    return True
