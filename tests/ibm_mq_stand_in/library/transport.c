#include "transport.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int transport_connect(const char *path, size_t path_length) {
    struct sockaddr_un address;
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    if (path_length == 0 || path_length >= sizeof address.sun_path) return -1;
    memcpy(address.sun_path, path, path_length);
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return -1;
    int result;
    do result = connect(descriptor, (struct sockaddr *)&address, sizeof address);
    while (result < 0 && errno == EINTR);
    if (result == 0) return descriptor;
    close(descriptor);
    return -1;
}

/* Sends everything; `parts` are used up. */
static int send_all(int descriptor, struct iovec *parts, int part_count) {
    while (part_count > 0) {
        struct msghdr message;
        memset(&message, 0, sizeof message);
        message.msg_iov = parts;
        message.msg_iovlen = (size_t)part_count;
        ssize_t sent = sendmsg(descriptor, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return -1;
        size_t left = (size_t)sent;
        while (part_count > 0 && left >= parts->iov_len) {
            left -= parts->iov_len;
            parts++;
            part_count--;
        }
        if (part_count > 0) {
            parts->iov_base = (char *)parts->iov_base + left;
            parts->iov_len -= left;
        }
    }
    return 0;
}

static int receive_all(int descriptor, void *buffer, size_t length) {
    unsigned char *at = buffer;
    while (length > 0) {
        ssize_t received = recv(descriptor, at, length, 0);
        if (received < 0 && errno == EINTR) continue;
        if (received <= 0) return -1;
        at += received;
        length -= (size_t)received;
    }
    return 0;
}

static int receive_answer(int descriptor, struct answer *answer) {
    int32_t header[3];
    if (receive_all(descriptor, header, sizeof header) < 0) return -1;
    if (header[0] < 8 || header[0] > LONGEST_FRAME) return -1;
    answer->comp_code = header[1];
    answer->reason = header[2];
    answer->length = (size_t)header[0] - 8;
    if (answer->length == 0) return 0;
    answer->fields = malloc(answer->length);
    if (answer->fields == NULL) return -1;
    if (receive_all(descriptor, answer->fields, answer->length) == 0) return 0;
    free(answer->fields);
    answer->fields = NULL;
    return -1;
}

int transport_exchange(int descriptor, enum verb verb, struct iovec *parts, int part_count, struct answer *answer) {
    struct iovec all[MOST_PARTS + 1];
    memset(answer, 0, sizeof *answer);
    if (part_count > MOST_PARTS) return -1;
    size_t length = sizeof(int32_t);
    for (int index = 0; index < part_count; index++) length += parts[index].iov_len;
    if (length > LONGEST_FRAME) return -1;
    int32_t header[2] = {(int32_t)length, (int32_t)verb};
    all[0] = (struct iovec){header, sizeof header};
    memcpy(all + 1, parts, sizeof *parts * (size_t)part_count);
    if (send_all(descriptor, all, part_count + 1) < 0) return -1;
    return receive_answer(descriptor, answer);
}
