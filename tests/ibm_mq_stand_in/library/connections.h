/* Connection handles: which thread may use one, and who waits for whom.
 *
 * A handle of MQCONN, or of MQCONNX with MQCNO_HANDLE_SHARE_NONE, belongs to the thread that made it: 2018 for others.
 * With HANDLE_SHARE_BLOCK calls of several threads come one after another; with HANDLE_SHARE_NO_BLOCK a second call is
 * refused with 2219. After a lost connection every call is 2009 until MQDISC. Source: IBM MQ, "Shared (thread independent)
 * connections with MQCONNX".
 */
#ifndef STANDIN_CONNECTIONS_H
#define STANDIN_CONNECTIONS_H

#include <pthread.h>
#include <sys/types.h>

#include "cmqc.h"
#include "transport.h"

#define MOST_CONNECTIONS 1024

struct connection {
    MQHCONN hconn;           /* 0: the place is free. A number is never given twice. */
    MQLONG sharing;          /* one of MQCNO_HANDLE_SHARE_* */
    int descriptor;          /* -1: the connection is broken */
    pid_t process;           /* a child that was forked does not inherit it */
    pthread_t owner;
    pthread_mutex_t calling; /* held during a call */
    char queue_manager_name[MQ_Q_MGR_NAME_LENGTH];
};

/* Takes over a connected descriptor under a new handle. NULL where there are too many. */
struct connection *connection_add(int descriptor, MQLONG sharing, const char *queue_manager_name);

/* The handle that is not shared and that this thread already has to the queue manager; 0 where there is none. */
MQHCONN connection_of_this_thread(const char *queue_manager_name);

/* Enters a call on a handle: 0, or the reason why not. After 0, and after MQRC_CONNECTION_BROKEN, `leave` must follow. */
MQLONG connection_enter(MQHCONN hconn, struct connection **found);
void connection_leave(struct connection *connection);

/* The connection is lost, inside a call. */
void connection_break(struct connection *connection);

/* Gives the handle up, inside a call; takes the place of `connection_leave`. */
void connection_remove(struct connection *connection);

#endif
