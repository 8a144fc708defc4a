"""The rows of the limits on topic filters (limits.py): how many, how deep, of how many shapes and groups."""

from typing import Final

from gateway.config.limit_row import LimitAnswer, LimitRow, Scope

SUBSCRIBE: Final = (LimitAnswer("QUOTA_EXCEEDED", ("SUBACK",)),)
"""What the client is told whose filter is refused."""

SUBSCRIPTIONS: Final = LimitRow(
    key="maximum_subscriptions",
    default=2_000,
    unit="topic filters",
    meaning="topic filters of one session; further ones are refused in the SUBACK",
    answers=SUBSCRIBE,
    told="the client has too many topic filters: unsubscribe first",
    where="limits.budgets",
)
SUBSCRIPTION_LEVELS: Final = LimitRow(
    key="maximum_subscription_levels",
    default=40_000,
    unit="levels of topic filters",
    meaning="levels of all topic filters of one session; each takes up to 250 bytes of memory, as long as the"
    " session lives; further filters are refused in the SUBACK",
    answers=SUBSCRIBE,
    told="the topic filters of the client have too many levels: unsubscribe first",
    where="limits.budgets",
)
SHARED_GROUPS: Final = LimitRow(
    key="maximum_shared_groups",
    default=100,
    unit="groups of shared subscriptions",
    meaning="groups of shared subscriptions ($share/GROUP/FILTER) that one session is a member of: a message may come"
    " once for each group; further groups are refused in the SUBACK",
    answers=SUBSCRIBE,
    told="the client is in too many groups of shared subscriptions: unsubscribe first",
    where="limits.budgets",
)
SUBSCRIPTION_CHARACTERS: Final = LimitRow(
    key="maximum_subscription_characters",
    default=1_048_576,
    unit="characters",
    meaning="characters of all topic filters of one session; each new filter writes all of them to the store again",
    answers=SUBSCRIBE,
    where="bridge.sessions.session_limits",
)
FILTER_SHAPES_IN_ALL: Final = LimitRow(
    key="maximum_filter_shapes_in_all",
    default=384,
    unit="shapes",
    meaning="shapes of topic filters in all; a shape is the number of levels, the places of + and whether # ends the"
    " filter, and counts once for each eight levels begun; a known shape is always taken, and so is one of up to eight"
    " levels with at most one +; the last quarter is kept for users that have brought 8 or less",
    answers=SUBSCRIBE,
    told="there are too many shapes of topic filters: use at most one + in eight levels, or another filter's +",
    where="bridge.sessions.filter_shapes",
    scope=Scope.ALL,
)
FILTER_SHAPES_PER_USER: Final = FILTER_SHAPES_IN_ALL._replace(
    key="maximum_filter_shapes_per_user",
    default=64,
    meaning="shapes of topic filters that one user or MQ application has brought, or the clients without a user in one"
    " network (IPv4: one /24, IPv6: one /48), counted as above; the RegSub of an application is refused with 2102",
    scope=Scope.USER,
)
