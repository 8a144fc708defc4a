/* Publishers: what they send, and how it is acknowledged.
 *
 * Packet identifiers go round in the window. A server acknowledges in the order of the packets (MQTT 3.1.1 section 4.6),
 * so a counter says which identifier must come next. With a subscriber the payload begins with the message's number and
 * the moment at which it was due.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "failure.h"
#include "run.h"

/* Messages that have left the window: acknowledged, and with several subscribers delivered to each, too. Otherwise the
 * publisher would run away from them. */
static uint64_t left_window(const struct run *run, const struct publisher *publisher)
{
    if (run->task->qos > 0 && publisher->subscribers_count < 2)
        return publisher->finished;
    uint64_t least = run->task->qos > 0 ? publisher->finished : UINT64_MAX;
    for (unsigned place = 0; place < publisher->subscribers_count; place++) {
        if (publisher->subscribers[place].delivered < least)
            least = publisher->subscribers[place].delivered;
    }
    return least;
}

static void append_message(struct run *run, struct publisher *publisher, uint64_t due_ns)
{
    const struct task *task = run->task;
    uint64_t place = publisher->sent % task->window;
    uint8_t *packet = publisher->packet.data;
    if (task->qos > 0) {
        packet[publisher->identifier_at] = (uint8_t)((place + 1) >> 8);
        packet[publisher->identifier_at + 1] = (uint8_t)(place + 1);
    }
    if (publisher->subscribers_count > 0) {
        struct stamp stamp = {.number = publisher->sent, .due_ns = due_ns};
        memcpy(packet + publisher->payload_at, &stamp, sizeof stamp);
    }
    publisher->due_ns[place] = due_ns;
    publisher->sent++;
    append(&publisher->connection.out, packet, waiting(&publisher->packet));
}

void fill_window(struct run *run, struct publisher *publisher, uint64_t now)
{
    const struct task *task = run->task;
    if (!has_rate(run) && now < run->deadline_ns)
        publisher->owed = left_window(run, publisher) + task->window;
    while (publisher->sent < publisher->owed && publisher->sent - left_window(run, publisher) < task->window) {
        uint64_t due = now;
        if (has_rate(run)) {
            uint64_t first = (uint64_t)(publisher - run->publishers);
            due = due_ns_of(run, publisher->sent * task->connections + first);
            uint64_t could = due > publisher->freed_ns ? due : publisher->freed_ns;
            note(&run->late, now > could ? now - could : 0);
        }
        append_message(run, publisher, due);
    }
}

/* The identifier that must come next fits; anything else is a wrong packet. */
static void check_answer(const struct run *run, const struct publisher *publisher, const struct packet *packet,
                         uint64_t counted, uint64_t of)
{
    struct answer answer;
    if (!read_answer(packet, &answer) || packet->flags != 0 || answer.reason_code >= REFUSED_FROM)
        fail_on(&publisher->connection, packet);
    if (counted >= of)
        fail("%s got a %s for packet identifier %u, and waits for none", publisher->connection.name,
             type_name(packet->type), answer.identifier);
    unsigned wanted = (unsigned)(counted % run->task->window) + 1;
    if (answer.identifier != wanted)
        fail("%s got the %s of packet identifier %u where that of %u was due, message %" PRIu64,
             publisher->connection.name, type_name(packet->type), answer.identifier, wanted, counted + 1);
}

static void finish_one(struct run *run, struct publisher *publisher, uint64_t now)
{
    note(&run->acknowledged, now - publisher->due_ns[publisher->finished % run->task->window]);
    if (publisher->sent - publisher->finished == run->task->window)
        publisher->freed_ns = now;
    publisher->finished++;
}

void take_answers(struct run *run, struct publisher *publisher, uint64_t now)
{
    unsigned qos = run->task->qos;
    struct packet packet;
    while (take_packet(&publisher->connection, &packet)) {
        if (packet.type == PUBACK && qos == 1) {
            check_answer(run, publisher, &packet, publisher->finished, publisher->sent);
            finish_one(run, publisher, now);
        } else if (packet.type == PUBREC && qos == 2) {
            check_answer(run, publisher, &packet, publisher->received, publisher->sent);
            uint16_t identifier = (uint16_t)(publisher->received++ % run->task->window + 1);
            append_answer(&publisher->connection.out, PUBREL, identifier);
        } else if (packet.type == PUBCOMP && qos == 2) {
            check_answer(run, publisher, &packet, publisher->finished, publisher->received);
            finish_one(run, publisher, now);
        } else {
            fail_on(&publisher->connection, &packet);
        }
    }
}

void open_publisher(struct run *run, unsigned place)
{
    const struct task *task = run->task;
    struct publisher *publisher = &run->publishers[place];
    snprintf(publisher->connection.name, sizeof publisher->connection.name, "publisher-%u", place);
    if (snprintf(publisher->topic, sizeof publisher->topic, "%s/%u", task->topic, place) >= (int)TOPIC_BYTES)
        fail("the topic is longer than %u bytes", TOPIC_BYTES - 1);
    publisher->payload_at = append_publish(&publisher->packet, task->peer.level, publisher->topic, task->qos, false,
                                           task->payload_bytes, &publisher->identifier_at);
    publisher->due_ns = zeroed(task->window, sizeof *publisher->due_ns);
    open_connection(&publisher->connection, &task->peer, true);
    if (task->qos > 0 && task->window > publisher->connection.receive_maximum)
        fail("the server allows %u messages under way, and the window has %u", publisher->connection.receive_maximum,
             task->window);
    add_side(run, publisher, NULL);
}
