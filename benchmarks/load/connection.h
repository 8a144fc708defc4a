/* A connection of the load: a socket that does not block, and the bytes that wait on either side of it. */
#ifndef CONNECTION_H
#define CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "bytes.h"
#include "packets.h"

/* What all connections of a run have in common. */
struct peer {
    uint16_t port; /* on 127.0.0.1 */
    unsigned level; /* 4 or 5 */
    unsigned wait_ms; /* a server that does not answer for so long has failed */
};

struct connection {
    int descriptor;
    unsigned level;
    char name[32]; /* its client identifier, which errors name too */
    struct bytes in;
    struct bytes out;
    bool waits_to_write;
    unsigned receive_maximum;
};

/* Connects and waits for CONNACK. Fails unless the server accepts it as a new session. */
void open_connection(struct connection *connection, const struct peer *peer, bool starts_clean);

/* Asks for one subscription; the SUBACK is a packet that comes in, for `expect_granted`. */
void subscribe(struct connection *connection, const char *filter, unsigned qos);
void expect_granted(const struct connection *connection, const struct packet *suback, unsigned qos);

/* Reads once what is there. Fails where the server has closed the connection. */
void receive(struct connection *connection);

/* The next packet that has come in; it is valid until the next call of `receive`. False where none is whole. */
bool take_packet(struct connection *connection, struct packet *packet);

/* Sends what waits, as far as the socket takes it; `waits_to_write` says whether something is left. */
void flush(struct connection *connection);

/* Sends what waits and waits for bytes, at most `wait_ms`; false where none came. For one connection alone. */
bool await(struct connection *connection, unsigned wait_ms);

/* Waits for one packet of this type. Fails for any other. */
void expect(struct connection *connection, unsigned wait_ms, enum packet_type type, struct packet *packet);

/* DISCONNECT, and the end. */
void close_connection(struct connection *connection);

_Noreturn void fail_on(const struct connection *connection, const struct packet *packet);

#endif
