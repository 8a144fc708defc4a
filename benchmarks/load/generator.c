/* The load generator: `generator VERB NAME=VALUE...` prints one JSON object, or one sentence on the standard error.
 *
 * Exit code 0: measured; 1: the server did not do what it must, or is not there; 2: asked wrongly.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "failure.h"
#include "histogram.h"
#include "retained.h"
#include "run.h"
#include "sink.h"
#include "task.h"

#define ASKED_WRONGLY 2
#define MOST_CONNECTIONS 60000u
#define MOST_IDENTIFIERS 65535u
#define MOST_PAYLOAD_BYTES 268000000u
/* The busy wait takes a core: with two, the server would have to share the other one with all else. */
#define SPIN_US 40u
#define CORES_TO_SPIN 3

static struct task task = {
    .peer = {.level = 4, .wait_ms = 30000},
    .connections = 1, .window = 1, .payload_bytes = 64, .qos = 1, .count = 1, .clean = 1, .retained = 1,
    .seconds = 1, .topic = "bench/sensor",
};
static unsigned port;

static const struct {
    const char *name;
    unsigned *value;
    unsigned least, most;
} numbers[] = {
    {"port", &port, 1, 65535},
    {"level", &task.peer.level, 4, 5},
    {"wait_ms", &task.peer.wait_ms, 1, 3600000},
    {"connections", &task.connections, 1, MOST_CONNECTIONS},
    {"subscribers", &task.subscribers, 0, MOST_CONNECTIONS},
    {"window", &task.window, 1, MOST_IDENTIFIERS},
    {"payload_bytes", &task.payload_bytes, 0, MOST_PAYLOAD_BYTES},
    {"qos", &task.qos, 0, 2},
    {"rate", &task.rate, 0, 100000000},
    {"count", &task.count, 1, 100000000},
    {"clean", &task.clean, 0, 1},
    {"retained", &task.retained, 0, 1},
    {"first", &task.first, 0, 100000000},
    {"spin_us", &task.spin_us, 0, 1000},
};

_Noreturn void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(EXIT_FAILURE);
}

/* Latencies in ns, one a line, from the standard input: the percentiles that the generator makes of them. */
static void print_percentiles(const struct task *unused)
{
    (void)unused;
    static struct histogram histogram;
    uint64_t value_ns;
    while (scanf("%" SCNu64, &value_ns) == 1)
        note(&histogram, value_ns);
    print_histogram(stdout, &histogram);
    putchar('\n');
}

static void serve(const struct task *unused)
{
    (void)unused;
    serve_sink();
}

static const struct {
    const char *name;
    void (*work)(const struct task *);
} verbs[] = {
    {"publish", publish},       {"retain", retain}, {"subscribe", subscribe_to_retained},
    {"sink", serve},            {"percentiles", print_percentiles},
};

static bool take_number(const char *name, const char *value)
{
    for (size_t place = 0; place < sizeof numbers / sizeof numbers[0]; place++) {
        if (strcmp(numbers[place].name, name) != 0)
            continue;
        char *end;
        errno = 0;
        unsigned long number = strtoul(value, &end, 10);
        if (errno != 0 || *value < '0' || *value > '9' || *end != '\0' || number < numbers[place].least
            || number > numbers[place].most)
            return false;
        *numbers[place].value = (unsigned)number;
        return true;
    }
    return false;
}

static bool take_seconds(const char *value)
{
    char *end;
    task.seconds = strtod(value, &end);
    return *value != '\0' && *end == '\0' && task.seconds > 0 && task.seconds < 1e6;
}

static bool take_argument(char *argument)
{
    char *value = strchr(argument, '=');
    if (value == NULL)
        return false;
    *value++ = '\0';
    bool is_taken = strcmp(argument, "seconds") == 0 ? take_seconds(value) : take_number(argument, value);
    if (strcmp(argument, "topic") == 0) {
        task.topic = value;
        is_taken = *value != '\0';
    }
    value[-1] = '=';
    return is_taken;
}

static int usage(const char *wrong)
{
    fprintf(stderr, "generator: %s is wrong\nusage: generator publish|retain|subscribe|sink|percentiles [seconds=S] "
                    "[topic=TEXT]", wrong);
    for (size_t place = 0; place < sizeof numbers / sizeof numbers[0]; place++)
        fprintf(stderr, " [%s=%u..%u]", numbers[place].name, numbers[place].least, numbers[place].most);
    fputc('\n', stderr);
    return ASKED_WRONGLY;
}

int main(int count, char **arguments)
{
    task.spin_us = sysconf(_SC_NPROCESSORS_ONLN) >= CORES_TO_SPIN ? SPIN_US : 0;
    for (int place = 2; place < count; place++) {
        if (!take_argument(arguments[place]))
            return usage(arguments[place]);
    }
    if (task.subscribers > 0 && task.subscribers != task.connections && task.connections != 1)
        return usage("a number of subscribers other than 0 or that of connections");
    task.peer.port = (uint16_t)port;
    for (size_t place = 0; count > 1 && place < sizeof verbs / sizeof verbs[0]; place++) {
        if (strcmp(verbs[place].name, arguments[1]) != 0)
            continue;
        verbs[place].work(&task);
        return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    return usage(count > 1 ? arguments[1] : "no verb");
}
