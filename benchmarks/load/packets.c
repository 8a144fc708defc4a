#include "packets.h"

#include <string.h>

#include "failure.h"

#define CONTINUES 0x80u
#define LENGTH_BITS 7u
#define MOST_LENGTH_BYTES 4u
#define PUBREL_FLAGS 2u
#define SUBSCRIBE_FLAGS 2u
/* MQTT 5 section 3.1.2.11.2: the session goes on until it is ended. */
static const uint8_t kept_for_ever[] = {5, 0x11, 0xff, 0xff, 0xff, 0xff};
static const uint8_t no_properties[] = {0};

enum width { ONE = 1, TWO = 2, FOUR = 4, VARIABLE, TEXT, PAIR };

/* What a CONNACK may have (MQTT 5 section 3.2.2.3). */
static const uint8_t width_of_property[0x2b] = {
    [0x11] = FOUR, [0x12] = TEXT, [0x13] = TWO, [0x15] = TEXT, [0x16] = TEXT, [0x1a] = TEXT, [0x1c] = TEXT,
    [0x1f] = TEXT, [0x21] = TWO,  [0x22] = TWO, [0x24] = ONE,  [0x25] = ONE,  [0x26] = PAIR, [0x27] = FOUR,
    [0x28] = ONE,  [0x29] = ONE,  [0x2a] = ONE,
};
#define RECEIVE_MAXIMUM 0x21u
#define RECEIVE_MAXIMUM_DEFAULT 65535u

/* A walk through the body of a packet; `is_whole` is false once something did not fit. */
struct walk {
    const uint8_t *at;
    size_t left;
    bool is_whole;
};

static const uint8_t *walk_over(struct walk *walk, size_t size)
{
    const uint8_t *found = walk->at;
    if (!walk->is_whole || walk->left < size) {
        walk->is_whole = false;
        return NULL;
    }
    walk->at += size;
    walk->left -= size;
    return found;
}

static unsigned walk_over_byte(struct walk *walk)
{
    const uint8_t *found = walk_over(walk, 1);
    return found != NULL ? found[0] : 0;
}

static unsigned walk_over_two(struct walk *walk)
{
    const uint8_t *found = walk_over(walk, 2);
    return found != NULL ? (unsigned)found[0] << 8 | found[1] : 0;
}

static size_t walk_over_length(struct walk *walk)
{
    size_t length = 0;
    for (unsigned place = 0; place < MOST_LENGTH_BYTES; place++) {
        unsigned byte = walk_over_byte(walk);
        length |= (size_t)(byte & ~CONTINUES) << (LENGTH_BITS * place);
        if (!(byte & CONTINUES))
            return length;
    }
    walk->is_whole = false;
    return 0;
}

const char *type_name(enum packet_type type)
{
    static const char *const names[16] = {
        "packet 0", "CONNECT", "CONNACK", "PUBLISH", "PUBACK", "PUBREC", "PUBREL", "PUBCOMP",
        "SUBSCRIBE", "SUBACK", "UNSUBSCRIBE", "UNSUBACK", "PINGREQ", "PINGRESP", "DISCONNECT", "AUTH",
    };
    return names[type & 15u];
}

bool first_packet(const uint8_t *data, size_t size, struct packet *found)
{
    struct walk walk = {.at = data, .left = size, .is_whole = true};
    unsigned first = walk_over_byte(&walk);
    size_t length = walk_over_length(&walk);
    if (!walk.is_whole) {
        if (size > MOST_LENGTH_BYTES)
            fail("the server sent a packet whose length is malformed");
        return false;
    }
    if (walk.left < length)
        return false;
    *found = (struct packet){
        .type = (enum packet_type)(first >> 4),
        .flags = first & 15u,
        .body = walk.at,
        .body_bytes = length,
        .bytes = size - walk.left + length,
    };
    return true;
}

bool read_publication(const struct packet *packet, unsigned level, struct publication *read)
{
    struct walk walk = {.at = packet->body, .left = packet->body_bytes, .is_whole = true};
    read->qos = packet->flags >> 1 & 3u;
    read->is_retained = packet->flags & FLAG_RETAIN;
    read->topic_bytes = walk_over_two(&walk);
    read->topic = walk_over(&walk, read->topic_bytes);
    read->identifier = read->qos > 0 ? (uint16_t)walk_over_two(&walk) : 0;
    if (level == LEVEL_5)
        walk_over(&walk, walk_over_length(&walk));
    read->payload = walk.at;
    read->payload_bytes = walk.left;
    return walk.is_whole && read->qos < 3;
}

bool read_answer(const struct packet *packet, struct answer *read)
{
    struct walk walk = {.at = packet->body, .left = packet->body_bytes, .is_whole = true};
    read->identifier = (uint16_t)walk_over_two(&walk);
    read->reason_code = walk.left > 0 ? walk_over_byte(&walk) : 0;
    return walk.is_whole;
}

static void walk_over_property(struct walk *walk, enum width width)
{
    switch (width) {
    case VARIABLE:
        walk_over_length(walk);
        return;
    case PAIR:
        walk_over(walk, walk_over_two(walk));
        walk_over(walk, walk_over_two(walk));
        return;
    case TEXT:
        walk_over(walk, walk_over_two(walk));
        return;
    default:
        walk_over(walk, width);
    }
}

bool read_acceptance(const struct packet *packet, unsigned level, struct acceptance *read)
{
    struct walk walk = {.at = packet->body, .left = packet->body_bytes, .is_whole = true};
    read->is_session_present = walk_over_byte(&walk) & 1u;
    read->code = walk_over_byte(&walk);
    read->receive_maximum = RECEIVE_MAXIMUM_DEFAULT;
    if (level < LEVEL_5)
        return walk.is_whole && walk.left == 0;
    if (walk_over_length(&walk) != walk.left)
        return false;
    while (walk.is_whole && walk.left > 0) {
        unsigned property = walk_over_byte(&walk);
        if (property >= sizeof width_of_property || width_of_property[property] == 0)
            return false;
        if (property == RECEIVE_MAXIMUM)
            read->receive_maximum = walk_over_two(&walk);
        else
            walk_over_property(&walk, (enum width)width_of_property[property]);
    }
    return walk.is_whole;
}

static void append_two(struct bytes *to, size_t value)
{
    const uint8_t bytes[] = {(uint8_t)(value >> 8), (uint8_t)value};
    append(to, bytes, sizeof bytes);
}

static void append_text(struct bytes *to, const char *text)
{
    append_two(to, strlen(text));
    append(to, text, strlen(text));
}

static void append_header(struct bytes *to, enum packet_type type, unsigned flags, size_t length)
{
    uint8_t bytes[1 + MOST_LENGTH_BYTES] = {(uint8_t)((unsigned)type << 4 | flags)};
    size_t size = 1;
    do {
        bytes[size] = (uint8_t)((length & ~(size_t)CONTINUES & 0xffu) | (length >> LENGTH_BITS ? CONTINUES : 0));
        length >>= LENGTH_BITS;
        size++;
    } while (length > 0);
    append(to, bytes, size);
}

void append_connect(struct bytes *to, unsigned level, const char *client, bool starts_clean)
{
    const uint8_t behind_name[] = {(uint8_t)level, starts_clean ? 2 : 0, 0, 0};
    const uint8_t *properties = starts_clean ? no_properties : kept_for_ever;
    size_t properties_bytes = level < LEVEL_5 ? 0 : (size_t)properties[0] + 1;
    append_header(to, CONNECT, 0, 6 + sizeof behind_name + properties_bytes + 2 + strlen(client));
    append_text(to, "MQTT");
    append(to, behind_name, sizeof behind_name);
    append(to, properties, properties_bytes);
    append_text(to, client);
}

void append_subscribe(struct bytes *to, unsigned level, const char *filter, unsigned qos)
{
    const uint8_t options[] = {(uint8_t)qos};
    size_t properties_bytes = level < LEVEL_5 ? 0 : 1;
    append_header(to, SUBSCRIBE, SUBSCRIBE_FLAGS, 2 + properties_bytes + 2 + strlen(filter) + 1);
    append_two(to, 1);
    append(to, no_properties, properties_bytes);
    append_text(to, filter);
    append(to, options, sizeof options);
}

void append_answer(struct bytes *to, enum packet_type type, uint16_t identifier)
{
    append_header(to, type, type == PUBREL ? PUBREL_FLAGS : 0, 2);
    append_two(to, identifier);
}

void append_empty(struct bytes *to, enum packet_type type)
{
    append_header(to, type, 0, 0);
}

size_t append_publish(struct bytes *to, unsigned level, const char *topic, unsigned qos, bool is_retained,
                      size_t payload_bytes, size_t *identifier_at)
{
    size_t before = waiting(to), identifier_bytes = qos > 0 ? 2 : 0, properties_bytes = level < LEVEL_5 ? 0 : 1;
    size_t length = 2 + strlen(topic) + identifier_bytes + properties_bytes + payload_bytes;
    append_header(to, PUBLISH, qos << 1 | (is_retained ? FLAG_RETAIN : 0), length);
    append_text(to, topic);
    *identifier_at = waiting(to) - before;
    append(to, "\0\1", identifier_bytes);
    append(to, no_properties, properties_bytes);
    size_t payload_at = waiting(to) - before;
    memset(room_for(to, payload_bytes), 'x', payload_bytes);
    added(to, payload_bytes);
    return payload_at;
}
