#include "bytes.h"

#include <stdlib.h>
#include <string.h>

#include "failure.h"

#define LEAST_CAPACITY 4096u

uint8_t *room_for(struct bytes *bytes, size_t size)
{
    if (bytes->capacity - bytes->to >= size && bytes->data != NULL)
        return bytes->data + bytes->to;
    if (bytes->from > 0) {
        memmove(bytes->data, bytes->data + bytes->from, waiting(bytes));
        bytes->to -= bytes->from;
        bytes->from = 0;
    }
    if (bytes->capacity - bytes->to < size || bytes->data == NULL) {
        size_t capacity = bytes->capacity > 0 ? bytes->capacity : LEAST_CAPACITY;
        while (capacity - bytes->to < size)
            capacity *= 2;
        uint8_t *grown = realloc(bytes->data, capacity);
        if (grown == NULL)
            fail("no memory for %zu bytes", capacity);
        bytes->data = grown;
        bytes->capacity = capacity;
    }
    return bytes->data + bytes->to;
}

void added(struct bytes *bytes, size_t size)
{
    bytes->to += size;
}

void append(struct bytes *bytes, const void *data, size_t size)
{
    if (size == 0)
        return;
    memcpy(room_for(bytes, size), data, size);
    added(bytes, size);
}

void taken(struct bytes *bytes, size_t size)
{
    bytes->from += size;
    if (bytes->from == bytes->to)
        bytes->from = bytes->to = 0;
}

void free_bytes(struct bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct bytes){0};
}
