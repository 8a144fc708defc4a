"""A command server for PCF over a queue manager of the stand-in: enough for programs that make their own queues.

It makes and deletes local queues, and says the command level and who need not show a password. Commands about rights
and channels are answered well and do nothing, because the stand-in has neither. Every other command is answered with
MQRCCF_COMMAND_FAILED. Source: IBM MQ, "Definitions of the Programmable Command Formats".
"""

import struct
import threading
from collections.abc import Callable, Mapping
from typing import Final, Self

from mq_adapters.embedded.socket.client import SocketClient
from mq_adapters.message import MQPER_NOT_PERSISTENT, Message, MessageDescriptor
from mq_adapters.reasons import QueueManagerError

COMMAND_QUEUE: Final = "SYSTEM.ADMIN.COMMAND.QUEUE"
MODEL_QUEUE: Final = "SYSTEM.DEFAULT.MODEL.QUEUE"
_WAIT_S: Final = 0.2
#: MQCFH: type, length, version, command, sequence number, control, completion code, reason, count; of this machine.
_HEADER: Final = struct.Struct("=9i")
_INTEGER: Final = struct.Struct("=4i")
#: Type, length, parameter, CCSID, length of the string.
_STRING: Final = struct.Struct("=5i")
_TYPE_AND_LENGTH: Final = struct.Struct("=2i")
_MQCFT_RESPONSE, _MQCFT_INTEGER, _MQCFT_STRING = 2, 3, 4
_MQCFC_LAST: Final = 1
_MQRT_REPLY: Final = 2
_MQRCCF_COMMAND_FAILED: Final = 3008
_MQCMD_CREATE_Q, _MQCMD_DELETE_Q = 11, 12
#: Ping and change of the queue manager, CREATE and DELETE CHANNEL, REFRESH SECURITY, AUTHINFO, SET AUTHREC and CHLAUTH.
_WITHOUT_EFFECT: Final = (40, 1, 23, 24, 78, 79, 90, 203)
#: What an inquiry tells: of the queue manager its level and the name of its CONNAUTH, and of that CHCKCLNT(OPTIONAL).
_TOLD: Final[Mapping[int, Mapping[int, int | str]]] = {2: {31: 940, 2125: "STANDIN"}, 83: {258: 0}}
_CCSID: Final = 1208
_NAME, _PURGE, _REPLACE = 2016, 1007, 1006
#: Parameters of MQCMD_CREATE_Q as keywords of MQSC.
_KEYWORDS: Final = {13: "MAXMSGL", 15: "MAXDEPTH", 22: "BOTHRESH"}
_TEXTS: Final = {2013: "DESCR", 2019: "BOQNAME"}
_PERSISTENCE, _DEF_PERSISTENT = 5, 1

Parameters = Mapping[int, int | str]


class PcfServer(threading.Thread):
    """Answers commands until it is left."""

    def __init__(self, connect: Callable[[], SocketClient]) -> None:
        super().__init__(name="pcf", daemon=True)
        self._connect = connect
        self._is_over = threading.Event()

    def __enter__(self) -> Self:
        with self._connect() as client:
            client.mqsc(f"DEFINE QLOCAL({COMMAND_QUEUE})")
            client.mqsc(f"DEFINE QMODEL({MODEL_QUEUE})")
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_over.set()
        self.join(60)

    def run(self) -> None:
        with self._connect() as client:
            while not self._is_over.is_set():
                try:
                    asked = client.get(COMMAND_QUEUE, wait_s=_WAIT_S)
                except QueueManagerError:
                    continue
                _answer(client, asked)


def _answer(client: SocketClient, asked: Message) -> None:
    command, _, parameters = read(asked.body)
    succeeded = _carried_out(client, command, parameters)
    comp_code, reason = (0, 0) if succeeded else (2, _MQRCCF_COMMAND_FAILED)
    told = _TOLD.get(command, {})
    body = _HEADER.pack(_MQCFT_RESPONSE, _HEADER.size, 1, command, 1, _MQCFC_LAST, comp_code, reason, len(told))
    body += b"".join(_parameter(name, value) for name, value in told.items())
    descriptor = MessageDescriptor(
        msg_type=_MQRT_REPLY, format=b"MQADMIN ", correl_id=asked.msg_id, persistence=MQPER_NOT_PERSISTENT
    )
    try:
        client.put(asked.descriptor.reply_to_q, Message(descriptor, body))
    except QueueManagerError:
        return  # nobody waits any more


def _parameter(name: int, value: int | str) -> bytes:
    if isinstance(value, int):
        return _INTEGER.pack(_MQCFT_INTEGER, _INTEGER.size, name, value)
    text = value.encode()
    padded = text + bytes(-len(text) % 4)
    return _STRING.pack(_MQCFT_STRING, _STRING.size + len(padded), name, _CCSID, len(text)) + padded


def read(body: bytes) -> tuple[int, int, Parameters]:
    """A command: its number, how many parameters it says that it has, and those that are integers and strings."""
    _, _, _, command, _, _, _, _, count = _HEADER.unpack_from(body)
    parameters: dict[int, int | str] = {}
    position = _HEADER.size
    for _ in range(count):
        kind, length = _TYPE_AND_LENGTH.unpack_from(body, position)
        if kind == _MQCFT_INTEGER:
            _, _, name, value = _INTEGER.unpack_from(body, position)
            parameters[name] = value
        elif kind == _MQCFT_STRING:
            _, _, name, _, size = _STRING.unpack_from(body, position)
            start = position + _STRING.size
            parameters[name] = body[start : start + size].decode().rstrip(" \0")
        position += max(length, _TYPE_AND_LENGTH.size)
    return command, count, parameters


def _carried_out(client: SocketClient, command: int, parameters: Parameters) -> bool:
    name = parameters.get(_NAME, "")
    if command in _WITHOUT_EFFECT or command in _TOLD:
        return True
    if command == _MQCMD_CREATE_Q:
        words = [f"DEFINE QLOCAL({name})", "REPLACE" if parameters.get(_REPLACE) else ""]
        words += [f"{word}({parameters[key]})" for key, word in _KEYWORDS.items() if key in parameters]
        words += [f"{word}('{parameters[key]}')" for key, word in _TEXTS.items() if key in parameters]
        if parameters.get(_PERSISTENCE) == _DEF_PERSISTENT:
            words.append("DEFPSIST(YES)")
        return client.mqsc(" ".join(words)).succeeded
    if command == _MQCMD_DELETE_Q:
        return client.mqsc(f"DELETE QLOCAL({name}){' PURGE' if parameters.get(_PURGE) else ''}").succeeded
    return False
