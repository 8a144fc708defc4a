/* The load itself.
 *
 * A message's way: it becomes due (`owed`), it is sent when the window has room, it is acknowledged or, at QoS 0,
 * received by the subscriber. Latency counts from the moment at which it was due, whenever it could be sent, so that a
 * server that stands still is charged for all that waited meanwhile. At full window a message is due when it is sent.
 *
 * Identifiers go round in the window. A server acknowledges in the order of the packets (MQTT 3.1.1 section 4.6), so a
 * counter says which one must come next. With a subscriber the payload begins with the message's number and the moment
 * at which it was due: the subscriber must get each number once, in order.
 */
#include "publishers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "clock.h"
#include "failure.h"
#include "histogram.h"

#define EVENTS 256
#define IDENTIFIERS 65536u
#define TOPIC_BYTES 256u
/* So often a run looks whether a connection has waited too long. */
#define LOOK_MS 20

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
    struct subscriber *subscriber;
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

static void *zeroed(size_t count, size_t size)
{
    void *memory = calloc(count > 0 ? count : 1, size);
    if (memory == NULL)
        fail("no memory for %zu pieces of %zu bytes", count, size);
    return memory;
}

static bool has_rate(const struct run *run)
{
    return run->task->rate > 0;
}

static uint64_t due_ns_of(const struct run *run, uint64_t message)
{
    uint64_t rate = run->task->rate;
    return run->started_ns + message / rate * NS_A_SECOND + message % rate * NS_A_SECOND / rate;
}

/* Messages that have left the window. */
static uint64_t left_window(const struct run *run, const struct publisher *publisher)
{
    return run->task->qos == 0 ? publisher->subscriber->delivered : publisher->finished;
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
    if (publisher->subscriber != NULL) {
        struct stamp stamp = {.number = publisher->sent, .due_ns = due_ns};
        memcpy(packet + publisher->payload_at, &stamp, sizeof stamp);
    }
    publisher->due_ns[place] = due_ns;
    publisher->sent++;
    append(&publisher->connection.out, packet, waiting(&publisher->packet));
}

/* Tells the poll whether a connection waits to write. */
static void flush_side(struct run *run, struct side *side)
{
    bool waited = side->connection->waits_to_write;
    flush(side->connection);
    if (side->connection->waits_to_write != waited) {
        struct epoll_event wanted = {.events = EPOLLIN | (waited ? 0 : EPOLLOUT), .data.ptr = side};
        epoll_ctl(run->poll, EPOLL_CTL_MOD, side->connection->descriptor, &wanted);
    }
}

/* Appends what is owed and fits the window; the caller sends it. */
static void fill_window(struct run *run, struct publisher *publisher, uint64_t now)
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

static bool waits(const struct run *run, const struct side *side)
{
    const struct publisher *publisher = side->publisher;
    const struct subscriber *subscriber = side->subscriber;
    if (publisher != NULL)
        return run->task->qos > 0 && publisher->finished < publisher->sent;
    return subscriber->delivered < subscriber->publisher->sent
           || (run->task->qos == 2 && subscriber->released < subscriber->delivered);
}

/* Of a publisher and its subscriber: first come the sides of all publishers, then those of all subscribers. */
static struct side *side_of(struct run *run, const struct publisher *publisher)
{
    return &run->sides[publisher - run->publishers];
}

static void begin_to_wait(const struct run *run, struct side *side, uint64_t now)
{
    if (!waits(run, side))
        side->progress_ns = now;
}

static void fill_and_flush(struct run *run, struct publisher *publisher, uint64_t now)
{
    struct side *side = side_of(run, publisher);
    begin_to_wait(run, side, now);
    if (publisher->subscriber != NULL)
        begin_to_wait(run, side + run->task->connections, now);
    fill_window(run, publisher, now);
    flush_side(run, side);
}

static void send_what_is_due(struct run *run, uint64_t now)
{
    uint64_t first = run->next, connections = run->task->connections;
    while (run->next < run->total && due_ns_of(run, run->next) <= now)
        run->publishers[run->next++ % connections].owed++;
    uint64_t end = run->next - first < connections ? run->next : first + connections;
    for (uint64_t message = first; message < end; message++)
        fill_and_flush(run, &run->publishers[message % connections], now);
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

static void take_answers(struct run *run, struct publisher *publisher, uint64_t now)
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

static void take_deliveries(struct run *run, struct subscriber *subscriber, uint64_t now)
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

static void serve_side(struct run *run, struct side *side, unsigned events)
{
    if (events & ~(unsigned)EPOLLOUT) {
        receive(side->connection);
        uint64_t now = now_ns();
        side->progress_ns = now;
        if (side->publisher != NULL)
            take_answers(run, side->publisher, now);
        else
            take_deliveries(run, side->subscriber, now);
        struct publisher *publisher = side->publisher != NULL ? side->publisher : side->subscriber->publisher;
        fill_window(run, publisher, now);
        if (side->publisher == NULL)
            flush_side(run, side_of(run, publisher));
    }
    flush_side(run, side);
}

static bool is_done(const struct run *run, uint64_t now)
{
    if (has_rate(run) ? run->next < run->total : now < run->deadline_ns)
        return false;
    for (unsigned place = 0; place < run->task->connections; place++) {
        if (run->publishers[place].sent < run->publishers[place].owed)
            return false;
    }
    for (size_t place = 0; place < run->sides_count; place++) {
        if (waits(run, &run->sides[place]))
            return false;
    }
    return true;
}

static void fail_if_one_waits_too_long(const struct run *run, uint64_t now)
{
    for (size_t place = 0; place < run->sides_count; place++) {
        const struct side *side = &run->sides[place];
        if (!waits(run, side) || now < side->progress_ns + (uint64_t)run->task->peer.wait_ms * NS_A_MS)
            continue;
        if (side->publisher != NULL)
            fail("%s: %" PRIu64 " of %" PRIu64 " messages were acknowledged, then nothing came for %u ms",
                 side->connection->name, side->publisher->finished, side->publisher->sent, run->task->peer.wait_ms);
        fail("%s: %" PRIu64 " of %" PRIu64 " messages came, and %" PRIu64 " PUBRELs, then nothing for %u ms",
             side->connection->name, side->subscriber->delivered, side->subscriber->publisher->sent,
             side->subscriber->released, run->task->peer.wait_ms);
    }
}

/* How long the poll may wait, in ms. Near the next message it may not; before that the timer ends the wait in time. */
static int longest_wait_ms(const struct run *run)
{
    if (!has_rate(run) || run->next >= run->total)
        return LOOK_MS;
    uint64_t due = due_ns_of(run, run->next), spin = (uint64_t)run->task->spin_us * NS_A_US;
    if (due <= now_ns() + spin)
        return 0;
    struct itimerspec at = {.it_value = {.tv_sec = (time_t)((due - spin) / NS_A_SECOND),
                                         .tv_nsec = (long)((due - spin) % NS_A_SECOND)}};
    timerfd_settime(run->timer, TFD_TIMER_ABSTIME, &at, NULL);
    return LOOK_MS;
}

static void poll_once(struct run *run)
{
    struct epoll_event events[EVENTS];
    int ready = epoll_wait(run->poll, events, EVENTS, longest_wait_ms(run));
    if (ready < 0 && errno != EINTR)
        fail("cannot wait: %s", strerror(errno));
    for (int place = 0; place < ready; place++) {
        uint64_t ticks;
        if (events[place].data.ptr != NULL)
            serve_side(run, events[place].data.ptr, events[place].events);
        else if (read(run->timer, &ticks, sizeof ticks) < 0 && errno != EAGAIN)
            fail("cannot read the timer: %s", strerror(errno));
        if (has_rate(run)) /* a message does not wait until all that is ready was served */
            send_what_is_due(run, now_ns());
    }
}

static void add_side(struct run *run, struct publisher *publisher, struct subscriber *subscriber)
{
    struct side *side = &run->sides[run->sides_count++];
    *side = (struct side){.publisher = publisher, .subscriber = subscriber};
    side->connection = publisher != NULL ? &publisher->connection : &subscriber->connection;
    struct epoll_event wanted = {.events = EPOLLIN, .data.ptr = side};
    if (epoll_ctl(run->poll, EPOLL_CTL_ADD, side->connection->descriptor, &wanted) != 0)
        fail("cannot poll %s: %s", side->connection->name, strerror(errno));
}

static void open_publisher(struct run *run, unsigned place)
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

static void open_subscriber(struct run *run, unsigned place)
{
    struct subscriber *subscriber = &run->subscribers[place];
    struct packet packet;
    subscriber->publisher = &run->publishers[place];
    subscriber->publisher->subscriber = subscriber;
    subscriber->unreleased = zeroed(IDENTIFIERS, sizeof *subscriber->unreleased);
    snprintf(subscriber->connection.name, sizeof subscriber->connection.name, "subscriber-%u", place);
    open_connection(&subscriber->connection, &run->task->peer, true);
    subscribe(&subscriber->connection, subscriber->publisher->topic, run->task->qos);
    expect(&subscriber->connection, run->task->peer.wait_ms, SUBACK, &packet);
    expect_granted(&subscriber->connection, &packet, run->task->qos);
    add_side(run, NULL, subscriber);
}

static void open_all(struct run *run)
{
    const struct task *task = run->task;
    run->poll = epoll_create1(EPOLL_CLOEXEC);
    run->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event wanted = {.events = EPOLLIN, .data.ptr = NULL};
    if (run->poll < 0 || run->timer < 0 || epoll_ctl(run->poll, EPOLL_CTL_ADD, run->timer, &wanted) != 0)
        fail("no timer: %s", strerror(errno));
    run->publishers = zeroed(task->connections, sizeof *run->publishers);
    run->subscribers = zeroed(task->subscribers, sizeof *run->subscribers);
    run->sides = zeroed(task->connections + task->subscribers, sizeof *run->sides);
    for (unsigned place = 0; place < task->connections; place++)
        open_publisher(run, place);
    for (unsigned place = 0; place < task->subscribers; place++)
        open_subscriber(run, place);
}

static void work(struct run *run)
{
    run->started_ns = now_ns();
    run->deadline_ns = run->started_ns + (uint64_t)(run->task->seconds * NS_A_SECOND);
    run->total = (uint64_t)(run->task->rate * run->task->seconds + 0.5);
    for (unsigned place = 0; !has_rate(run) && place < run->task->connections; place++)
        fill_and_flush(run, &run->publishers[place], now_ns());
    uint64_t now = run->started_ns, look_ns = now;
    while (!is_done(run, now)) {
        if (has_rate(run))
            send_what_is_due(run, now_ns());
        poll_once(run);
        now = now_ns();
        if (now < look_ns)
            continue;
        fail_if_one_waits_too_long(run, now);
        look_ns = now + (uint64_t)LOOK_MS * NS_A_MS;
    }
}

/* A packet too many would come before the answer to this. */
static void expect_silence(struct run *run)
{
    struct packet packet;
    for (size_t place = 0; place < run->sides_count; place++) {
        struct connection *connection = run->sides[place].connection;
        append_empty(&connection->out, PINGREQ);
        expect(connection, run->task->peer.wait_ms, PINGRESP, &packet);
    }
}

static double cpu_s(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec)
           + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static void print_outcome(const struct run *run, double elapsed_s)
{
    uint64_t sent = 0, finished = 0, delivered = 0;
    for (unsigned place = 0; place < run->task->connections; place++) {
        sent += run->publishers[place].sent;
        finished += run->publishers[place].finished;
    }
    for (unsigned place = 0; place < run->task->subscribers; place++)
        delivered += run->subscribers[place].delivered;
    printf("{\"sent\": %" PRIu64 ", \"acknowledged\": %" PRIu64 ", \"delivered\": %" PRIu64, sent, finished, delivered);
    printf(", \"elapsed_s\": %.6f, \"cpu_s\": %.6f, \"acknowledgement_ms\": ", elapsed_s, cpu_s());
    print_histogram(stdout, &run->acknowledged);
    printf(", \"way_ms\": ");
    print_histogram(stdout, &run->delivered);
    printf(", \"late_ms\": ");
    print_histogram(stdout, &run->late);
    printf("}\n");
}

static void close_all(struct run *run)
{
    for (size_t place = 0; place < run->sides_count; place++)
        close_connection(run->sides[place].connection);
    for (unsigned place = 0; place < run->task->connections; place++) {
        free(run->publishers[place].due_ns);
        free_bytes(&run->publishers[place].packet);
    }
    for (unsigned place = 0; place < run->task->subscribers; place++)
        free(run->subscribers[place].unreleased);
    free(run->publishers);
    free(run->subscribers);
    free(run->sides);
    close(run->poll);
    close(run->timer);
}

void publish(const struct task *task)
{
    if (task->subscribers > 0 && task->payload_bytes < sizeof(struct stamp))
        fail("a message for a subscriber has %zu bytes or more", sizeof(struct stamp));
    if (task->subscribers == 0 && task->qos == 0)
        fail("at QoS 0 each publisher needs a subscriber: nothing else says what the server has taken");
    struct run *run = zeroed(1, sizeof *run);
    run->task = task;
    open_all(run);
    work(run);
    double elapsed_s = (double)(now_ns() - run->started_ns) / NS_A_SECOND;
    expect_silence(run);
    print_outcome(run, elapsed_s);
    close_all(run);
    free(run);
}
