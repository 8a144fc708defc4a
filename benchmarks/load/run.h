/* A run of the load: its publishers and subscribers, and what they share.
 *
 * A message's way: it becomes due (`owed`), it is sent when the window has room, it is acknowledged and, where there is a
 * subscriber, delivered. Latency counts from the moment at which it was due, whenever it could be sent, so that a server
 * that stands still is charged for all that waited meanwhile. At full window a message is due when it is sent.
 */
#ifndef RUN_H
#define RUN_H

#include "connection.h"
#include "histogram.h"
#include "task.h"

/* What the payload begins with where there is a subscriber. */
struct stamp {
    uint64_t number;
    uint64_t due_ns;
};

struct publisher {
    struct connection connection;
    char topic[TOPIC_BYTES];
    struct bytes packet; /* a PUBLISH, whose identifier and stamp are written over */
    size_t identifier_at;
    size_t payload_at;
    uint64_t *due_ns; /* of the messages under way, a ring of one window */
    uint64_t owed;    /* messages that were due so far; at full window: all that were sent */
    uint64_t sent;
    uint64_t received; /* at QoS 2: by PUBREC */
    uint64_t finished;
    uint64_t freed_ns; /* when the window had room again last: until then the generator is not late */
    struct subscriber *subscribers; /* the first of its own, which stand side by side */
    unsigned subscribers_count;
};

struct subscriber {
    struct connection connection;
    struct publisher *publisher;
    uint64_t delivered;
    uint64_t released; /* at QoS 2: by PUBREL */
    bool *unreleased;  /* by packet identifier */
};

/* A connection that a poll finds ready, and whose it is. */
struct side {
    struct connection *connection;
    struct publisher *publisher;
    struct subscriber *subscriber;
    uint64_t progress_ns; /* since then it has waited */
};

struct run {
    const struct task *task;
    struct publisher *publishers;
    struct subscriber *subscribers;
    struct side *sides;
    size_t sides_count;
    int poll;
    int timer;
    uint64_t started_ns;
    uint64_t deadline_ns;
    uint64_t total; /* at a fixed rate: messages of all publishers */
    uint64_t next;  /* at a fixed rate: the message that is due next */
    struct histogram acknowledged;
    struct histogram delivered;
    struct histogram late;
};

/* Publishes for the time of the task, waits for the rest, and prints the outcome. Fails on whatever is not exact. */
void publish(const struct task *task);

void *zeroed(size_t count, size_t size);
bool has_rate(const struct run *run);

/* When a message of a run with a rate is due; they go round the publishers. */
uint64_t due_ns_of(const struct run *run, uint64_t message);

/* Each opens a side and adds it to the run; the publisher comes first. */
void open_publisher(struct run *run, unsigned place);
void open_subscriber(struct run *run, unsigned place);
void add_side(struct run *run, struct publisher *publisher, struct subscriber *subscriber);

/* Appends what is owed and fits the window; the caller sends it. */
void fill_window(struct run *run, struct publisher *publisher, uint64_t now);

/* Each takes the packets that have come in, and appends what they ask for. */
void take_answers(struct run *run, struct publisher *publisher, uint64_t now);
void take_deliveries(struct run *run, struct subscriber *subscriber, uint64_t now);

#endif
