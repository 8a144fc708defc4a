"""The limits of the MQTT server: what one client, one user, one address and all of them together may have.

Where 0 is allowed it means that there is no limit. `gateway.limits.limit` has the name of each in the metrics.
"""

from pydantic import Field

from gateway.config.values import (
    MAXIMUM_PACKET_IDENTIFIERS,
    MAXIMUM_REMAINING_LENGTH_BYTES,
    MAXIMUM_TEXT_BYTES,
    Seconds,
    Table,
)


class ConnectionLimits(Table):
    """How many may connect, how often, and how slow they may be."""

    maximum_connections: int = Field(
        default=10_000, ge=1, description="connections at one time; further ones are refused"
    )
    maximum_connections_per_user: int = Field(
        default=0, ge=0, description="connections of one user at one time; 0: no limit"
    )
    maximum_connections_per_address: int = Field(
        default=0, ge=0, description="connections from one address (IPv6: one /64) at one time; 0: no limit"
    )
    maximum_waiting_connections: int = Field(
        default=2_000, ge=1, description="connections without a CONNECT; past it the one that waits longest is closed"
    )
    connection_rate: int = Field(
        default=5_000, ge=0, description="new connections a second, ten seconds' worth at once; 0: no limit"
    )
    connection_rate_per_address: int = Field(
        default=1_000, ge=0, description="the same from one address (IPv6: one /64); 0: no limit"
    )
    connect_timeout_s: Seconds = Field(default=10.0, description="seconds that a new connection has for its CONNECT")
    maximum_unsent_bytes: int = Field(
        default=8_388_608,
        ge=1,
        le=2_147_483_647,  # uvloop counts them in a C int
        description="bytes that may wait for one slow client before its deliveries pause",
    )
    maximum_unsent_bytes_in_all: int = Field(
        default=536_870_912,
        ge=1,
        description="bytes that may wait for all clients; past it connections that take nothing are closed",
    )
    maximum_unfinished_bytes_in_all: int = Field(
        default=536_870_912,
        ge=1,
        description="bytes of packets whose end has not come and of requests that wait; past it the largest are closed",
    )
    slow_reader_timeout_s: Seconds = Field(
        default=60.0, description="seconds after which a client that takes nothing of what waits for it is disconnected"
    )


class SessionLimits(Table):
    """What one session may ask for, and what may be kept for it and for all of them."""

    maximum_packet_bytes: int = Field(
        default=MAXIMUM_REMAINING_LENGTH_BYTES,
        ge=2,
        le=MAXIMUM_REMAINING_LENGTH_BYTES,
        description="bytes of the largest packet that is taken, by its remaining length",
    )
    maximum_in_flight: int = Field(
        default=100,
        ge=1,
        le=MAXIMUM_PACKET_IDENTIFIERS,
        description="PUBLISH packets of QoS 1 and 2 on their way to one client before the first is acknowledged",
    )
    receive_maximum: int = Field(
        default=1_000,
        ge=1,
        le=MAXIMUM_PACKET_IDENTIFIERS,
        description="PUBLISH packets of QoS 1 and 2 that a client of MQTT 5 may have unanswered; CONNACK says so",
    )
    topic_alias_maximum: int = Field(
        default=64, ge=0, le=65_535, description="topic aliases that a client of MQTT 5 may set; CONNACK says so"
    )
    maximum_keep_alive_s: int = Field(
        default=0,
        ge=0,
        le=65_535,
        description="longest keep-alive time of a client of MQTT 5, which CONNACK tells it; 0: its own",
    )
    maximum_held_bytes: int = Field(
        default=67_108_864,
        ge=1,
        description="bytes of one client's QoS 2 messages between PUBLISH and PUBREL, 600 more for each; one is taken",
    )
    maximum_held_bytes_in_all: int = Field(
        default=536_870_912,
        ge=1,
        description="the same of all clients, with wills; past it, to twice as much, the first 65,536 of a client",
    )
    maximum_topic_bytes: int = Field(
        default=40_960,  # what 10,240 characters have at the most
        ge=1,
        le=MAXIMUM_TEXT_BYTES,
        description="bytes of a topic name or filter, in UTF-8; MQ carries no more than 10,240 characters",
    )
    maximum_topic_levels: int = Field(
        default=200, ge=1, le=200, description="levels of a topic name or filter; each costs 300 bytes of index"
    )
    maximum_subscriptions: int = Field(
        default=2_000, ge=1, description="topic filters of one session; further ones are refused in the SUBACK"
    )
    maximum_subscription_characters: int = Field(
        default=1_048_576,
        ge=1,
        description="characters of all topic filters of one session, which are written with each new one",
    )
    maximum_sessions: int = Field(
        default=100_000,
        ge=1,
        description="sessions, connected or not; past it none that outlives its connection is begun",
    )
    maximum_queued_messages: int = Field(
        default=1_000_000,
        ge=0,
        description="messages that wait for one session; the newest past it become dead letters; 0: no limit",
    )
    maximum_queued_bytes: int = Field(
        default=4_294_967_296, ge=0, description="their bytes, with their headers; 0: no limit"
    )
    maximum_queued_age_s: int = Field(
        default=0,
        ge=0,
        le=3_153_600_000,  # a hundred years
        description="seconds a message waits for a session without connection, then it is a dead letter; 0: no limit",
    )
    maximum_dead_letters: int = Field(
        default=100_000,
        ge=0,
        description="dead letters that one publisher or session may cause, at most half of their queue's MAXDEPTH; past"
        " it what causes them waits; 0: no limit",
    )
    maximum_retained_messages: int = Field(
        default=1_000_000,
        ge=0,
        description="retained messages here, in all; a PUBLISH of one more is refused; 0: no limit",
    )


class MqttLimits(ConnectionLimits, SessionLimits):
    """All of them."""
