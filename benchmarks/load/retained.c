#include "retained.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "failure.h"
#include "histogram.h"

static void write_topic(char *topic, const struct task *task, uint64_t number)
{
    if (snprintf(topic, TOPIC_BYTES, "%s/%" PRIu64, task->topic, number) >= (int)TOPIC_BYTES)
        fail("the topic is longer than %u bytes", TOPIC_BYTES - 1);
}

static void append_numbered(struct connection *publisher, const struct task *task, uint64_t number, uint16_t identifier)
{
    char topic[TOPIC_BYTES];
    size_t identifier_at;
    size_t before = waiting(&publisher->out);
    write_topic(topic, task, number);
    append_publish(&publisher->out, task->peer.level, topic, 1, task->retained, task->payload_bytes, &identifier_at);
    uint8_t *at = publisher->out.data + publisher->out.from + before + identifier_at;
    at[0] = (uint8_t)(identifier >> 8);
    at[1] = (uint8_t)identifier;
}

void retain(const struct task *task)
{
    struct connection publisher = {.name = "publisher"};
    open_connection(&publisher, &task->peer, true);
    uint64_t acknowledged = 0, began = now_ns();
    for (uint64_t sent = 0; acknowledged < task->count; acknowledged++) {
        for (; sent < task->count && sent - acknowledged < task->window; sent++)
            append_numbered(&publisher, task, task->first + sent, (uint16_t)(sent % task->window + 1));
        struct packet packet;
        struct answer answer;
        expect(&publisher, task->peer.wait_ms, PUBACK, &packet);
        if (!read_answer(&packet, &answer) || answer.reason_code >= REFUSED_FROM
            || answer.identifier != acknowledged % task->window + 1)
            fail_on(&publisher, &packet);
    }
    printf("{\"acknowledged\": %" PRIu64 ", \"elapsed_s\": %.6f}\n", acknowledged,
           (double)(now_ns() - began) / NS_A_SECOND);
    close_connection(&publisher);
}

/* The number behind the last slash of its topic. Fails unless this is one of the retained messages. */
static uint64_t number_of(const struct connection *subscriber, const struct task *task, const struct packet *packet)
{
    struct publication got;
    char topic[TOPIC_BYTES] = "", wanted[TOPIC_BYTES];
    if (!read_publication(packet, task->peer.level, &got) || !got.is_retained || got.qos != task->qos
        || got.payload_bytes != task->payload_bytes || got.topic_bytes >= sizeof topic)
        fail_on(subscriber, packet);
    memcpy(topic, got.topic, got.topic_bytes);
    const char *slash = strrchr(topic, '/');
    uint64_t number = slash != NULL ? strtoull(slash + 1, NULL, 10) : task->count;
    write_topic(wanted, task, number);
    if (number >= task->count || strcmp(topic, wanted) != 0)
        fail_on(subscriber, packet);
    return number;
}

static void acknowledge(struct connection *subscriber, const struct packet *packet)
{
    struct publication got;
    read_publication(packet, subscriber->level, &got);
    if (got.qos > 0)
        append_answer(&subscriber->out, got.qos == 1 ? PUBACK : PUBREC, got.identifier);
}

void subscribe_to_retained(const struct task *task)
{
    struct connection subscriber = {.name = "subscriber"};
    struct histogram *came = calloc(1, sizeof *came);
    bool *has_come = calloc(task->count, sizeof *has_come);
    if (came == NULL || has_come == NULL)
        fail("no memory for %u messages", task->count);
    char filter[TOPIC_BYTES + 2];
    snprintf(filter, sizeof filter, "%.*s/#", (int)TOPIC_BYTES - 1, task->topic);
    open_connection(&subscriber, &task->peer, task->clean);
    uint64_t began = now_ns(), granted = 0, released = 0, rest = task->qos == 2 ? task->count : 0;
    subscribe(&subscriber, filter, task->qos);
    while (granted == 0 || came->total < task->count || released < rest) {
        struct packet packet;
        if (!take_packet(&subscriber, &packet)) {
            if (!await(&subscriber, task->peer.wait_ms))
                fail("%" PRIu64 " of %u messages came, then nothing for %u ms", came->total, task->count,
                     task->peer.wait_ms);
            continue;
        }
        uint64_t now = now_ns();
        if (packet.type == PUBLISH) {
            uint64_t number = number_of(&subscriber, task, &packet);
            if (has_come[number])
                fail("retained message %" PRIu64 " came twice", number);
            has_come[number] = true;
            note(came, now - began);
            acknowledge(&subscriber, &packet);
        } else if (packet.type == SUBACK && granted == 0) {
            expect_granted(&subscriber, &packet, task->qos);
            granted = now;
        } else if (packet.type == PUBREL && released < came->total) {
            struct answer answer;
            read_answer(&packet, &answer);
            append_answer(&subscriber.out, PUBCOMP, answer.identifier);
            released++;
        } else {
            fail_on(&subscriber, &packet);
        }
    }
    double elapsed_s = (double)(now_ns() - began) / NS_A_SECOND;
    printf("{\"suback_ms\": %.6f, \"elapsed_s\": %.6f, \"delivered\": %" PRIu64 ", \"way_ms\": ",
           (double)(granted - began) / NS_A_MS, elapsed_s, came->total);
    print_histogram(stdout, came);
    printf("}\n");
    close_connection(&subscriber);
    free(came);
    free(has_come);
}
