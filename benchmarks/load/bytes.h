/* Bytes that wait: appended behind, taken from the front. */
#ifndef BYTES_H
#define BYTES_H

#include <stddef.h>
#include <stdint.h>

struct bytes {
    uint8_t *data;
    size_t from; /* what stands before was taken already */
    size_t to;
    size_t capacity;
};

static inline size_t waiting(const struct bytes *bytes)
{
    return bytes->to - bytes->from;
}

/* Room for so many bytes behind the last one; `added` says how many of them were used. */
uint8_t *room_for(struct bytes *bytes, size_t size);
void added(struct bytes *bytes, size_t size);
void append(struct bytes *bytes, const void *data, size_t size);
void taken(struct bytes *bytes, size_t size);
void free_bytes(struct bytes *bytes);

#endif
