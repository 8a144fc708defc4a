#include "connections.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct connection *table[MOST_CONNECTIONS]; /* places are made when needed and never freed */
static MQHCONN last_hconn;

static struct connection *free_place(void) {
    for (int index = 0; index < MOST_CONNECTIONS; index++) {
        if (table[index] == NULL) {
            table[index] = calloc(1, sizeof **table);
            if (table[index] == NULL || pthread_mutex_init(&table[index]->calling, NULL) != 0) return NULL;
        }
        if (table[index]->hconn == 0) return table[index];
    }
    return NULL;
}

struct connection *connection_add(int descriptor, MQLONG sharing, const char *queue_manager_name) {
    pthread_mutex_lock(&table_lock);
    struct connection *place = last_hconn == INT32_MAX ? NULL : free_place();
    if (place != NULL) {
        place->hconn = ++last_hconn;
        place->sharing = sharing;
        place->descriptor = descriptor;
        place->process = getpid();
        place->owner = pthread_self();
        memcpy(place->queue_manager_name, queue_manager_name, sizeof place->queue_manager_name);
    }
    pthread_mutex_unlock(&table_lock);
    return place;
}

static int belongs_here(const struct connection *connection) {
    if (connection->process != getpid()) return 0;
    return connection->sharing != MQCNO_HANDLE_SHARE_NONE || pthread_equal(connection->owner, pthread_self());
}

MQHCONN connection_of_this_thread(const char *queue_manager_name) {
    MQHCONN found = 0;
    pthread_mutex_lock(&table_lock);
    for (int index = 0; index < MOST_CONNECTIONS && table[index] != NULL && found == 0; index++) {
        struct connection *each = table[index];
        if (each->hconn != 0 && each->sharing == MQCNO_HANDLE_SHARE_NONE && each->descriptor >= 0 &&
            belongs_here(each) && memcmp(each->queue_manager_name, queue_manager_name, MQ_Q_MGR_NAME_LENGTH) == 0)
            found = each->hconn;
    }
    pthread_mutex_unlock(&table_lock);
    return found;
}

static struct connection *find(MQHCONN hconn) {
    struct connection *found = NULL;
    pthread_mutex_lock(&table_lock);
    for (int index = 0; index < MOST_CONNECTIONS && table[index] != NULL && found == NULL; index++)
        if (hconn > 0 && table[index]->hconn == hconn && belongs_here(table[index])) found = table[index];
    pthread_mutex_unlock(&table_lock);
    return found;
}

MQLONG connection_enter(MQHCONN hconn, struct connection **found) {
    struct connection *connection = find(hconn);
    if (connection == NULL) return MQRC_HCONN_ERROR;
    if (connection->sharing == MQCNO_HANDLE_SHARE_NO_BLOCK) {
        if (pthread_mutex_trylock(&connection->calling) != 0) return MQRC_CALL_IN_PROGRESS;
    } else {
        pthread_mutex_lock(&connection->calling);
    }
    if (find(hconn) != connection) { /* given up while we waited */
        pthread_mutex_unlock(&connection->calling);
        return MQRC_HCONN_ERROR;
    }
    *found = connection;
    return connection->descriptor < 0 ? MQRC_CONNECTION_BROKEN : MQRC_NONE;
}

void connection_leave(struct connection *connection) {
    pthread_mutex_unlock(&connection->calling);
}

void connection_break(struct connection *connection) {
    pthread_mutex_lock(&table_lock);
    if (connection->descriptor >= 0) close(connection->descriptor);
    connection->descriptor = -1;
    pthread_mutex_unlock(&table_lock);
}

void connection_remove(struct connection *connection) {
    connection_break(connection);
    pthread_mutex_lock(&table_lock);
    connection->hconn = 0;
    pthread_mutex_unlock(&table_lock);
    pthread_mutex_unlock(&connection->calling);
}
