"""The commands of MQ applications: publications, registrations, requests and deletions that the broker took."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from spark_audit.custody.commands import Command, Lane, command_of, lane_of
from spark_audit.custody.commit import other_than_its_header
from spark_audit.custody.copies import Copies
from spark_audit.custody.expectations import of_application
from spark_audit.custody.findings import Custody, Finding, message
from spark_audit.custody.queues import Queues
from spark_audit.custody.registry import Registry, Subscription
from spark_audit.custody.retained import Kept, RetainedTopics

Record = Mapping[str, Any]


class Applications:
    """Takes the commands of applications into the state of the replay."""

    def __init__(
        self,
        *,
        registry: Registry,
        retained: RetainedTopics,
        copies: Copies,
        queues: Queues,
        register: Callable[[Record, Lane, Command], None],
        request: Callable[[list[Subscription]], None],
    ) -> None:
        """`register` registers a subscriber, as for clients. `request` takes what a ReqUpdate names."""
        self._registry = registry
        self._retained = retained
        self._copies = copies
        self._queues = queues
        self._register = register
        self._request = request

    def command(self, record: Record) -> Iterator[Finding]:
        """The broker took a command."""
        self._queues.end(record["message_id"], record["queue"])
        command = command_of(record)
        is_refused = record["completion"] == "error"
        if command is not None and (wrong := other_than_its_header(record, command)):
            yield Finding(Custody.COMMANDS, record["sequence"], message(record["message_id"]), wrong)
        if record["command"] == "Publish":
            self._published_by_application(record, command, is_refused=is_refused)
        elif command is not None and record["command"] == "ReqUpdate" and command.queue_name:
            # one that is refused for a limit may have brought some copies
            self._request(self._registry.named(_lane_of(record, command), command))
        elif command is None or is_refused:
            self._registry.is_whole = self._registry.is_whole and is_refused
        elif record["command"] == "DeletePub":
            self._retained.delete_by(command, record["queue"], self._registry.rules)
            if record["completion"] != "ok":
                self._retained.doubt()
        elif command.queue_name or record["command"] == "DeregSub":
            self._registration_of_application(record, command)
        else:
            self._registry.is_whole = False  # its queue may stand in the MQMD alone

    def _published_by_application(self, record: Record, command: Command | None, *, is_refused: bool) -> None:
        message_id = record["message_id"]
        if command is None:
            self._copies.publish_unread(message_id, record["sequence"])
            self._retained.is_whole = False
            return
        publication = of_application(record, command)
        self._copies.publish(publication, record["sequence"], is_refused=is_refused)
        if "RetainPub" in command.publication_options and not is_refused:
            kept = Kept(
                message_id,
                is_certain=False,
                is_persistent=record["persistent"],
                is_local="Local" in command.registration_options,
            )
            self._retained.keep_of(publication, kept, self._registry.rules)

    def _registration_of_application(self, record: Record, command: Command) -> None:
        lane = _lane_of(record, command)
        if record["command"] == "RegSub":
            self._register(record, lane, command)
        elif record["command"] == "DeregSub":
            self._registry.deregister(lane, command)


def _lane_of(record: Record, command: Command) -> Lane:
    is_correlated = "CorrelAsId" in command.registration_options
    return lane_of(command.queue_name, record["correlation_id"] if is_correlated else "")
