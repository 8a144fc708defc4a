/* Subscribers: each must get every message of its publisher once and in order, and acknowledges it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "failure.h"
#include "run.h"

#define IDENTIFIERS 65536u

static void take_publication(struct run *run, struct subscriber *subscriber, const struct packet *packet, uint64_t now)
{
    const struct publisher *publisher = subscriber->publisher;
    struct publication got;
    struct stamp stamp;
    if (!read_publication(packet, subscriber->connection.level, &got) || got.qos != run->task->qos || got.is_retained
        || got.payload_bytes != run->task->payload_bytes || got.topic_bytes != strlen(publisher->topic)
        || memcmp(got.topic, publisher->topic, got.topic_bytes) != 0)
        fail_on(&subscriber->connection, packet);
    memcpy(&stamp, got.payload, sizeof stamp);
    if (stamp.number != subscriber->delivered)
        fail("%s got message %" PRIu64 " where message %" PRIu64 " was due", subscriber->connection.name,
             stamp.number + 1, subscriber->delivered + 1);
    note(&run->delivered, now - stamp.due_ns);
    if (run->task->qos == 0 && publisher->sent - subscriber->delivered == run->task->window)
        subscriber->publisher->freed_ns = now;
    subscriber->delivered++;
    if (got.qos == 2) {
        if (subscriber->unreleased[got.identifier])
            fail("%s got a message with packet identifier %u, which was not released", subscriber->connection.name,
                 got.identifier);
        subscriber->unreleased[got.identifier] = true;
    }
    if (got.qos > 0)
        append_answer(&subscriber->connection.out, got.qos == 1 ? PUBACK : PUBREC, got.identifier);
}

void take_deliveries(struct run *run, struct subscriber *subscriber, uint64_t now)
{
    struct packet packet;
    struct answer release;
    while (take_packet(&subscriber->connection, &packet)) {
        if (packet.type == PUBLISH) {
            take_publication(run, subscriber, &packet, now);
            continue;
        }
        if (packet.type != PUBREL || !read_answer(&packet, &release) || !subscriber->unreleased[release.identifier])
            fail_on(&subscriber->connection, &packet);
        subscriber->unreleased[release.identifier] = false;
        subscriber->released++;
        append_answer(&subscriber->connection.out, PUBCOMP, release.identifier);
    }
}

void open_subscriber(struct run *run, unsigned place)
{
    struct subscriber *subscriber = &run->subscribers[place];
    struct packet packet;
    subscriber->publisher = &run->publishers[run->task->connections == 1 ? 0 : place];
    if (subscriber->publisher->subscribers_count++ == 0)
        subscriber->publisher->subscribers = subscriber;
    subscriber->unreleased = zeroed(IDENTIFIERS, sizeof *subscriber->unreleased);
    snprintf(subscriber->connection.name, sizeof subscriber->connection.name, "subscriber-%u", place);
    open_connection(&subscriber->connection, &run->task->peer, true);
    subscribe(&subscriber->connection, subscriber->publisher->topic, run->task->qos);
    expect(&subscriber->connection, run->task->peer.wait_ms, SUBACK, &packet);
    expect_granted(&subscriber->connection, &packet, run->task->qos);
    add_side(run, NULL, subscriber);
}
