/* Frames between this library and the queue manager's process, over a Unix socket. Integers are 32 bits, native order.
 *
 *   request   length of what follows, verb, fields          (layout of the fields: ../wire.py)
 *   answer    length of what follows, completion code, reason code, fields
 *
 * A connection has at most one request without an answer.
 */
#ifndef STANDIN_TRANSPORT_H
#define STANDIN_TRANSPORT_H

#include <stddef.h>
#include <sys/uio.h>

#include "cmqc.h"

enum verb {
    VERB_CONNECT = 1,
    VERB_DISCONNECT,
    VERB_OPEN,
    VERB_CLOSE,
    VERB_PUT,
    VERB_PUT1,
    VERB_GET,
    VERB_BEGIN,
    VERB_COMMIT,
    VERB_BACK_OUT,
    VERB_INQUIRE,
    VERB_SET
};

/* IBM MQ's ceiling for one message, 100 MiB; a frame has a little more. */
#define LONGEST_MESSAGE (100 * 1024 * 1024)
#define LONGEST_FRAME (LONGEST_MESSAGE + 64 * 1024)
#define MOST_PARTS 16

struct answer {
    MQLONG comp_code, reason;
    unsigned char *fields; /* to be freed by who asked; NULL where there are none */
    size_t length;
};

/* A connected descriptor, or -1. */
int transport_connect(const char *path, size_t path_length);

/* Sends a request and waits for its answer. Returns 0, or -1 where the connection is of no use any more. */
int transport_exchange(int descriptor, enum verb verb, struct iovec *parts, int part_count, struct answer *answer);

#endif
