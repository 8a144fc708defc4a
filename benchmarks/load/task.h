/* What a run is to do, as the command line says it: `name=value`, all with defaults. */
#ifndef TASK_H
#define TASK_H

#include <stdint.h>

#include "connection.h"

/* The longest topic that load has, and a NUL. */
#define TOPIC_BYTES 256u

struct task {
    struct peer peer;
    unsigned connections; /* publishers */
    unsigned subscribers; /* none, one for each publisher on its topic, or all on the topic of the only publisher */
    unsigned window;      /* messages that each publisher may have under way */
    unsigned payload_bytes;
    unsigned qos;
    unsigned rate;  /* messages a second of all publishers together; 0: as fast as the window lets */
    unsigned count; /* of `retain` and `subscribe`: messages */
    unsigned retained; /* of `retain`: whether the messages are retained */
    unsigned first; /* of `retain`: the number of the first topic */
    unsigned clean; /* of `subscribe`: whether the session ends with its connection */
    unsigned spin_us; /* so long before a message is due the generator waits no more, but looks again and again */
    double seconds;
    const char *topic;
};

#endif
