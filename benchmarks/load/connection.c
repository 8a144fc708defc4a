#include "connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "failure.h"

#define READ_BYTES 65536u

void open_connection(struct connection *connection, const struct peer *peer, bool starts_clean)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(peer->port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int is_on = 1;
    connection->level = peer->level;
    connection->descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection->descriptor < 0)
        fail("%s has no socket: %s", connection->name, strerror(errno));
    if (connect(connection->descriptor, (struct sockaddr *)&address, sizeof address) != 0)
        fail("%s cannot connect to port %u: %s", connection->name, (unsigned)peer->port, strerror(errno));
    setsockopt(connection->descriptor, IPPROTO_TCP, TCP_NODELAY, &is_on, sizeof is_on);
    fcntl(connection->descriptor, F_SETFL, O_NONBLOCK);
    append_connect(&connection->out, peer->level, connection->name, starts_clean);
    struct packet packet;
    expect(connection, peer->wait_ms, CONNACK, &packet);
    struct acceptance acceptance;
    if (!read_acceptance(&packet, peer->level, &acceptance))
        fail_on(connection, &packet);
    if (acceptance.code != 0 || acceptance.is_session_present)
        fail("CONNECT of %s was answered with code %02x, session present %d", connection->name, acceptance.code,
             acceptance.is_session_present);
    connection->receive_maximum = acceptance.receive_maximum;
}

void subscribe(struct connection *connection, const char *filter, unsigned qos)
{
    append_subscribe(&connection->out, connection->level, filter, qos);
    flush(connection);
}

void expect_granted(const struct connection *connection, const struct packet *suback, unsigned qos)
{
    size_t code_at = connection->level < LEVEL_5 ? 2 : suback->body_bytes - 1;
    if (suback->type != SUBACK || suback->body_bytes < 3 || suback->body[code_at] != qos)
        fail_on(connection, suback);
}

void receive(struct connection *connection)
{
    uint8_t *room = room_for(&connection->in, READ_BYTES);
    ssize_t size = recv(connection->descriptor, room, READ_BYTES, 0);
    if (size == 0)
        fail("the server closed the connection of %s", connection->name);
    if (size > 0)
        added(&connection->in, (size_t)size);
    else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        fail("%s cannot read: %s", connection->name, strerror(errno));
}

bool take_packet(struct connection *connection, struct packet *packet)
{
    struct bytes *in = &connection->in;
    if (waiting(in) == 0 || !first_packet(in->data + in->from, waiting(in), packet))
        return false;
    taken(in, packet->bytes);
    return true;
}

void flush(struct connection *connection)
{
    struct bytes *out = &connection->out;
    while (waiting(out) > 0) {
        ssize_t size = send(connection->descriptor, out->data + out->from, waiting(out), MSG_NOSIGNAL);
        if (size > 0)
            taken(out, (size_t)size);
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            break;
        else if (errno != EINTR)
            fail("%s cannot write: %s", connection->name, strerror(errno));
    }
    connection->waits_to_write = waiting(out) > 0;
}

bool await(struct connection *connection, unsigned wait_ms)
{
    for (;;) {
        flush(connection);
        struct pollfd wanted = {.fd = connection->descriptor, .events = POLLIN};
        if (connection->waits_to_write)
            wanted.events |= POLLOUT;
        int ready = poll(&wanted, 1, (int)wait_ms);
        if (ready < 0 && errno != EINTR)
            fail("%s cannot wait: %s", connection->name, strerror(errno));
        if (ready == 0)
            return false;
        if (ready > 0 && wanted.revents & ~POLLOUT) {
            receive(connection);
            return true;
        }
    }
}

void expect(struct connection *connection, unsigned wait_ms, enum packet_type type, struct packet *packet)
{
    while (!take_packet(connection, packet)) {
        if (!await(connection, wait_ms))
            fail("%s: no %s came for %u ms", connection->name, type_name(type), wait_ms);
    }
    if (packet->type != type)
        fail_on(connection, packet);
}

void close_connection(struct connection *connection)
{
    append_empty(&connection->out, DISCONNECT);
    flush(connection);
    close(connection->descriptor);
    free_bytes(&connection->in);
    free_bytes(&connection->out);
}

void fail_on(const struct connection *connection, const struct packet *packet)
{
    char shown[2 * 16 + 1] = "";
    for (size_t place = 0; place < packet->body_bytes && place < 16; place++) {
        static const char digits[] = "0123456789abcdef";
        shown[2 * place] = digits[packet->body[place] >> 4];
        shown[2 * place + 1] = digits[packet->body[place] & 15u];
        shown[2 * place + 2] = '\0';
    }
    fail("%s got a wrong %s: flags %x, %zu bytes, %s", connection->name, type_name(packet->type), packet->flags,
         packet->body_bytes, shown);
}
