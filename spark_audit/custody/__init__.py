"""Custody: the audit replays subscriptions, retained publications and queues of a trail, and knows who was due what.

    topic_match     topics against patterns
    content_filter  the conditions that a subscriber may set on the contents of publications
    commands        a command of the queued publish/subscribe interface, as a record tells it
    commit          the records of one commit
    applications    the commands of MQ applications
    places          topic spaces and subscription points, by the rules of the gateway's broker
    registry        the registered subscriptions after each command
    retained        the retained publications, and the copies of them that were promised
    expectations    the copies that a publication is due, and those that it may have
    copies          the copies that were made, against these
    sessions        the sessions of clients, and their connections
    lanes           the messages that wait for each MQTT client, in their order
    deliveries      the deliveries to clients, against these
    confirmations   the acknowledgements that clients are due
    reason_codes    the codes of answers, and of each reason of a refusal
    answers         the codes that clients were told, against these and what the records know
    refusals        refused topic filters, against the records that tell and count them
    queues          the messages on queues of applications, and dead letters
    stock           the gateway's own counts, against lanes and queues
    inventory       the gateway's own lists, against sessions, registry and retained
    passages        the messages that go to other queue managers
    replay          a gateway's records in their order, and what is wrong with them
    findings        a violation
    memory          the state of a replay as JSON, for an audit that goes on

All of it is plain Python, written from the standards and the record's table alone: it shares no code with the gateway
and its broker. Where a record does not tell enough, the replay does not judge.
"""
