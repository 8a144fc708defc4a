"""Custody: a trail's subscriptions, retained publications and queues replayed, and what each publication is due.

    topic_match     which topics a pattern matches; many patterns by topic
    content_filter  the conditions that a subscriber may set on the contents of publications
    commands        a command of the queued publish/subscribe interface, as a record tells it
    registry        who is registered for what, after each command
    retained        what is retained on which topic, and who was promised a copy of it
    expectations    the copies that a publication is due, and those that it may have
    lanes           what waits for each MQTT client, in its order
    sessions        which client has which session, and is connected
    replay          a gateway's records in their order, and what is wrong with them

All of it is plain Python, written from the standards and the record's table alone: it shares no code with the gateway
and its broker. Where a record does not tell enough, the replay does not judge.
"""
