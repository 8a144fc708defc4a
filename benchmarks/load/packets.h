/* MQTT packets of levels 4 (3.1.1) and 5, as far as load needs them: made, and taken apart.
 *
 * Nothing here comes from the gateway, so that a fault of its own codec cannot hide in the load.
 */
#ifndef PACKETS_H
#define PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"

enum packet_type {
    CONNECT = 1, CONNACK = 2, PUBLISH = 3, PUBACK = 4, PUBREC = 5, PUBREL = 6, PUBCOMP = 7,
    SUBSCRIBE = 8, SUBACK = 9, PINGREQ = 12, PINGRESP = 13, DISCONNECT = 14,
};

#define LEVEL_5 5u
#define FLAG_RETAIN 0x01u
/* Reason codes and return codes from here on are refusals. */
#define REFUSED_FROM 0x80u

struct packet {
    enum packet_type type;
    unsigned flags;
    const uint8_t *body;
    size_t body_bytes;
    size_t bytes; /* with the fixed header */
};

/* A PUBLISH, taken apart. */
struct publication {
    unsigned qos;
    bool is_retained;
    uint16_t identifier;
    const uint8_t *topic;
    size_t topic_bytes;
    const uint8_t *payload;
    size_t payload_bytes;
};

/* PUBACK, PUBREC, PUBREL or PUBCOMP. */
struct answer {
    uint16_t identifier;
    unsigned reason_code;
};

/* CONNACK. */
struct acceptance {
    unsigned code;
    bool is_session_present;
    unsigned receive_maximum;
};

const char *type_name(enum packet_type type);

/* The first packet of these bytes; false where it is not whole yet. Fails where its length is malformed. */
bool first_packet(const uint8_t *data, size_t size, struct packet *found);

/* Each is false where the packet is malformed. */
bool read_publication(const struct packet *packet, unsigned level, struct publication *read);
bool read_answer(const struct packet *packet, struct answer *read);
bool read_acceptance(const struct packet *packet, unsigned level, struct acceptance *read);

void append_connect(struct bytes *to, unsigned level, const char *client, bool starts_clean);
void append_subscribe(struct bytes *to, unsigned level, const char *filter, unsigned qos);
void append_answer(struct bytes *to, enum packet_type type, uint16_t identifier);
void append_empty(struct bytes *to, enum packet_type type);

/* Returns where in the packet the payload begins; the identifier of QoS 1 and 2 stands at `*identifier_at` of it. */
size_t append_publish(struct bytes *to, unsigned level, const char *topic, unsigned qos, bool is_retained,
                      size_t payload_bytes, size_t *identifier_at);

#endif
