#include "sink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bytes.h"
#include "failure.h"
#include "packets.h"

#define EVENTS 64
#define BACKLOG 128
#define READ_BYTES 65536u
#define LEVEL_AT 6u

struct peer_of_sink {
    int descriptor;
    unsigned level;
    struct bytes in;
    struct bytes out;
};

static void answer(struct peer_of_sink *peer, const struct packet *packet)
{
    struct publication got;
    struct answer read;
    switch (packet->type) {
    case CONNECT:
        peer->level = packet->body_bytes > LEVEL_AT ? packet->body[LEVEL_AT] : 0;
        append(&peer->out, peer->level < LEVEL_5 ? "\x20\2\0\0" : "\x20\3\0\0\0", peer->level < LEVEL_5 ? 4 : 5);
        return;
    case PUBLISH:
        if (!read_publication(packet, peer->level, &got))
            fail("the sink got a malformed PUBLISH");
        if (got.qos > 0)
            append_answer(&peer->out, got.qos == 1 ? PUBACK : PUBREC, got.identifier);
        return;
    case PUBREL:
        if (!read_answer(packet, &read))
            fail("the sink got a malformed PUBREL");
        append_answer(&peer->out, PUBCOMP, read.identifier);
        return;
    case PINGREQ:
        append_empty(&peer->out, PINGRESP);
        return;
    case DISCONNECT:
        return;
    default:
        fail("the sink got a %s, which it does not know", type_name(packet->type));
    }
}

/* The socket blocks, but not for long: a generator always reads. False when the client is gone. */
static bool serve(struct peer_of_sink *peer)
{
    ssize_t size = recv(peer->descriptor, room_for(&peer->in, READ_BYTES), READ_BYTES, 0);
    if (size <= 0)
        return size < 0 && errno == EINTR;
    added(&peer->in, (size_t)size);
    struct packet packet;
    while (waiting(&peer->in) > 0 && first_packet(peer->in.data + peer->in.from, waiting(&peer->in), &packet)) {
        answer(peer, &packet);
        taken(&peer->in, packet.bytes);
    }
    while (waiting(&peer->out) > 0) {
        ssize_t sent = send(peer->descriptor, peer->out.data + peer->out.from, waiting(&peer->out), MSG_NOSIGNAL);
        if (sent > 0)
            taken(&peer->out, (size_t)sent);
        else if (errno != EINTR)
            return false;
    }
    return true;
}

static void add_peer(int poll, int listener)
{
    int is_on = 1;
    struct peer_of_sink *peer = calloc(1, sizeof *peer);
    if (peer == NULL)
        fail("no memory for a connection");
    peer->descriptor = accept(listener, NULL, NULL);
    struct epoll_event wanted = {.events = EPOLLIN, .data.ptr = peer};
    if (peer->descriptor < 0 || epoll_ctl(poll, EPOLL_CTL_ADD, peer->descriptor, &wanted) != 0)
        fail("the sink cannot accept: %s", strerror(errno));
    setsockopt(peer->descriptor, IPPROTO_TCP, TCP_NODELAY, &is_on, sizeof is_on);
}

static void remove_peer(struct peer_of_sink *peer)
{
    close(peer->descriptor);
    free_bytes(&peer->in);
    free_bytes(&peer->out);
    free(peer);
}

_Noreturn void serve_sink(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), poll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event wanted = {.events = EPOLLIN, .data.ptr = NULL}, events[EVENTS];
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0
        || listen(listener, BACKLOG) != 0 || getsockname(listener, (struct sockaddr *)&address, &size) != 0 || poll < 0
        || epoll_ctl(poll, EPOLL_CTL_ADD, listener, &wanted) != 0)
        fail("the sink cannot listen: %s", strerror(errno));
    printf("{\"port\": %u}\n", (unsigned)ntohs(address.sin_port));
    fflush(stdout);
    for (;;) {
        int ready = epoll_wait(poll, events, EVENTS, -1);
        for (int place = 0; place < ready; place++) {
            if (events[place].data.ptr == NULL)
                add_peer(poll, listener);
            else if (!serve(events[place].data.ptr))
                remove_peer(events[place].data.ptr);
        }
    }
}
