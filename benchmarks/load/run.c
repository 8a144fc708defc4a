#include "run.h"

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

#define EVENTS 256
/* So often a run looks whether a connection has waited too long. */
#define LOOK_MS 20

void *zeroed(size_t count, size_t size)
{
    void *memory = calloc(count > 0 ? count : 1, size);
    if (memory == NULL)
        fail("no memory for %zu pieces of %zu bytes", count, size);
    return memory;
}

bool has_rate(const struct run *run)
{
    return run->task->rate > 0;
}

uint64_t due_ns_of(const struct run *run, uint64_t message)
{
    uint64_t rate = run->task->rate;
    return run->started_ns + message / rate * NS_A_SECOND + message % rate * NS_A_SECOND / rate;
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

static bool waits(const struct run *run, const struct side *side)
{
    const struct publisher *publisher = side->publisher;
    const struct subscriber *subscriber = side->subscriber;
    if (publisher != NULL)
        return run->task->qos > 0 && publisher->finished < publisher->sent;
    return subscriber->delivered < subscriber->publisher->sent
           || (run->task->qos == 2 && subscriber->released < subscriber->delivered);
}

/* Of a publisher: first come the sides of all publishers, then those of all subscribers. */
static struct side *side_of(struct run *run, const struct publisher *publisher)
{
    return &run->sides[publisher - run->publishers];
}

/* The place of the first subscriber of this publisher. */
static size_t first_of(const struct run *run, const struct publisher *publisher)
{
    return (size_t)(publisher->subscribers - run->subscribers);
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
    for (unsigned place = 0; place < publisher->subscribers_count; place++)
        begin_to_wait(run, &run->sides[run->task->connections + first_of(run, publisher) + place], now);
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

void add_side(struct run *run, struct publisher *publisher, struct subscriber *subscriber)
{
    struct side *side = &run->sides[run->sides_count++];
    *side = (struct side){.publisher = publisher, .subscriber = subscriber};
    side->connection = publisher != NULL ? &publisher->connection : &subscriber->connection;
    struct epoll_event wanted = {.events = EPOLLIN, .data.ptr = side};
    if (epoll_ctl(run->poll, EPOLL_CTL_ADD, side->connection->descriptor, &wanted) != 0)
        fail("cannot poll %s: %s", side->connection->name, strerror(errno));
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
