"""The keys of [mqtt] that are limits. Each is a row of `Limit`, with its default, range and meaning."""

from gateway.config.limits import Limit
from gateway.config.values import Seconds, Table


class ConnectionLimits(Table):
    """Limits on the number, the rate and the slowness of connections."""

    maximum_connections: int = Limit.CONNECTIONS.field
    maximum_connections_per_user: int = Limit.CONNECTIONS_PER_USER.field
    maximum_connections_per_address: int = Limit.CONNECTIONS_PER_ADDRESS.field
    maximum_connections_per_prefix: int = Limit.CONNECTIONS_PER_PREFIX.field
    maximum_waiting_connections: int = Limit.WAITING_CONNECTIONS.field
    connection_rate: int = Limit.CONNECTION_RATE.field
    connection_rate_per_address: int = Limit.CONNECTION_RATE_PER_ADDRESS.field
    connection_rate_per_prefix: int = Limit.CONNECTION_RATE_PER_PREFIX.field
    connect_timeout_s: Seconds = Limit.CONNECT_TIMEOUT.field
    maximum_unsent_bytes: int = Limit.UNSENT_BYTES.field
    maximum_unsent_bytes_in_all: int = Limit.UNSENT_BYTES_IN_ALL.field
    maximum_unfinished_bytes_in_all: int = Limit.UNFINISHED_BYTES_IN_ALL.field
    slow_reader_timeout_s: Seconds = Limit.SLOW_READER.field


class SessionLimits(Table):
    """Limits on what one session may ask for, and on the room of one session and of all."""

    maximum_packet_bytes: int = Limit.PACKET_BYTES.field
    maximum_in_flight: int = Limit.IN_FLIGHT.field
    receive_maximum: int = Limit.RECEIVE_MAXIMUM.field
    topic_alias_maximum: int = Limit.TOPIC_ALIASES.field
    maximum_keep_alive_s: int = Limit.KEEP_ALIVE.field
    maximum_held_bytes: int = Limit.HELD_BYTES.field
    maximum_held_bytes_in_all: int = Limit.HELD_BYTES_IN_ALL.field
    maximum_topic_bytes: int = Limit.TOPIC_BYTES.field
    maximum_topic_levels: int = Limit.TOPIC_LEVELS.field
    maximum_subscriptions: int = Limit.SUBSCRIPTIONS.field
    maximum_subscriptions_per_user: int = Limit.SUBSCRIPTIONS_PER_USER.field
    maximum_subscriptions_per_address: int = Limit.SUBSCRIPTIONS_PER_ADDRESS.field
    maximum_subscriptions_per_prefix: int = Limit.SUBSCRIPTIONS_PER_PREFIX.field
    maximum_subscriptions_in_all: int = Limit.SUBSCRIPTIONS_IN_ALL.field
    maximum_subscription_levels: int = Limit.SUBSCRIPTION_LEVELS.field
    maximum_subscription_levels_per_user: int = Limit.SUBSCRIPTION_LEVELS_PER_USER.field
    maximum_subscription_levels_per_address: int = Limit.SUBSCRIPTION_LEVELS_PER_ADDRESS.field
    maximum_subscription_levels_per_prefix: int = Limit.SUBSCRIPTION_LEVELS_PER_PREFIX.field
    maximum_subscription_levels_in_all: int = Limit.SUBSCRIPTION_LEVELS_IN_ALL.field
    maximum_shared_groups: int = Limit.SHARED_GROUPS.field
    maximum_shared_groups_per_user: int = Limit.SHARED_GROUPS_PER_USER.field
    maximum_shared_groups_per_address: int = Limit.SHARED_GROUPS_PER_ADDRESS.field
    maximum_shared_groups_per_prefix: int = Limit.SHARED_GROUPS_PER_PREFIX.field
    maximum_shared_groups_in_all: int = Limit.SHARED_GROUPS_IN_ALL.field
    maximum_subscription_characters: int = Limit.SUBSCRIPTION_CHARACTERS.field
    maximum_filter_shapes_in_all: int = Limit.FILTER_SHAPES_IN_ALL.field
    maximum_filter_shapes_per_user: int = Limit.FILTER_SHAPES_PER_USER.field
    maximum_sessions: int = Limit.SESSIONS.field
    maximum_session_expiry_s: int = Limit.SESSION_EXPIRY.field
    maximum_sessions_per_user: int = Limit.SESSIONS_PER_USER.field
    maximum_sessions_per_address: int = Limit.SESSIONS_PER_ADDRESS.field
    maximum_sessions_per_prefix: int = Limit.SESSIONS_PER_PREFIX.field
    maximum_session_memory_bytes: int = Limit.SESSION_MEMORY.field
    message_rate: int = Limit.MESSAGE_RATE.field
    message_rate_per_user: int = Limit.MESSAGE_RATE_PER_USER.field
    message_rate_per_address: int = Limit.MESSAGE_RATE_PER_ADDRESS.field
    message_rate_per_prefix: int = Limit.MESSAGE_RATE_PER_PREFIX.field
    byte_rate: int = Limit.BYTE_RATE.field
    byte_rate_per_user: int = Limit.BYTE_RATE_PER_USER.field
    byte_rate_per_address: int = Limit.BYTE_RATE_PER_ADDRESS.field
    byte_rate_per_prefix: int = Limit.BYTE_RATE_PER_PREFIX.field
    new_topic_rate: int = Limit.NEW_TOPIC_RATE.field
    new_topic_rate_per_user: int = Limit.NEW_TOPIC_RATE_PER_USER.field
    new_topic_rate_per_address: int = Limit.NEW_TOPIC_RATE_PER_ADDRESS.field
    new_topic_rate_per_prefix: int = Limit.NEW_TOPIC_RATE_PER_PREFIX.field
    trail_byte_rate: int = Limit.TRAIL_BYTE_RATE.field
    trail_byte_rate_per_user: int = Limit.TRAIL_BYTE_RATE_PER_USER.field
    trail_byte_rate_per_address: int = Limit.TRAIL_BYTE_RATE_PER_ADDRESS.field
    trail_byte_rate_per_prefix: int = Limit.TRAIL_BYTE_RATE_PER_PREFIX.field
    maximum_retained_copy_bytes: int = Limit.RETAINED_COPIES.field
    maximum_retained_copy_bytes_per_user: int = Limit.RETAINED_COPIES_PER_USER.field
    maximum_retained_copy_bytes_per_address: int = Limit.RETAINED_COPIES_PER_ADDRESS.field
    maximum_retained_copy_bytes_per_prefix: int = Limit.RETAINED_COPIES_PER_PREFIX.field
    maximum_retained_copy_bytes_in_all: int = Limit.RETAINED_COPIES_IN_ALL.field
    maximum_queued_messages: int = Limit.QUEUED_MESSAGES.field
    maximum_queued_bytes: int = Limit.QUEUED_BYTES.field
    maximum_queued_bytes_per_user: int = Limit.QUEUED_BYTES_PER_USER.field
    maximum_queued_bytes_per_address: int = Limit.QUEUED_BYTES_PER_ADDRESS.field
    maximum_queued_bytes_per_prefix: int = Limit.QUEUED_BYTES_PER_PREFIX.field
    maximum_queued_age_s: int = Limit.QUEUED_AGE.field
    maximum_dead_letters: int = Limit.DEAD_LETTERS.field
    maximum_dead_letter_bytes: int = Limit.DEAD_LETTER_BYTES.field
    maximum_dead_letters_per_user: int = Limit.DEAD_LETTERS_PER_USER.field
    maximum_dead_letters_per_address: int = Limit.DEAD_LETTERS_PER_ADDRESS.field
    maximum_dead_letters_per_prefix: int = Limit.DEAD_LETTERS_PER_PREFIX.field
    maximum_dead_letter_bytes_per_user: int = Limit.DEAD_LETTER_BYTES_PER_USER.field
    maximum_dead_letter_bytes_per_address: int = Limit.DEAD_LETTER_BYTES_PER_ADDRESS.field
    maximum_dead_letter_bytes_per_prefix: int = Limit.DEAD_LETTER_BYTES_PER_PREFIX.field
    dead_letter_expiry_s: int = Limit.DEAD_LETTER_EXPIRY.field
    maximum_retained_messages: int = Limit.RETAINED_MESSAGES.field


class MqttLimits(ConnectionLimits, SessionLimits):
    """All limits of [mqtt]."""
