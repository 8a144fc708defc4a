/* MQCONN, MQCONNX and MQDISC; and the one thing that keeps this library from being taken for IBM's.
 *
 * The variable RFHBRIDGE_MQ_STAND_IN names the Unix sockets of queue manager processes: `PATH`, or several with `;`
 * between them, each as `CONNAME=PATH` where a client's list of CONNAMEs shall choose. A CONNAME that is not named there
 * leads to the entry without a name; where there is none, nobody listens at it (2538).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmqxc.h"
#include "connections.h"

#define VARIABLE "RFHBRIDGE_MQ_STAND_IN"
#define LONGEST_TEXT 2048

const char STANDIN_NAME[] = "STANDIN_MQ: rfhbridge's stand-in for the IBM MQ client library, for tests only";

__attribute__((constructor)) static void refuse_to_load_by_accident(void) {
    if (getenv(VARIABLE) != NULL) return;
    fprintf(stderr, "%s; it is not IBM MQ and does not load without " VARIABLE "\n", STANDIN_NAME);
    _exit(78); /* EX_CONFIG of sysexits.h */
}

/* What a program asks for when it connects, as it goes to the queue manager. */
struct request {
    MQCHAR queue_manager_name[48];
    MQLONG options, max_msg_length, process;
    MQCHAR channel_name[20], connection_name[264], cipher_spec[32], appl_name[28], key_repository[256];
    MQLONG lengths[4]; /* of user, password, peer name, CCDT's URL, which follow */
};

struct texts {
    const void *at[4];
};

static void fail(PMQHCONN hconn, PMQLONG comp_code, PMQLONG reason, MQLONG why) {
    *hconn = MQHC_UNUSABLE_HCONN;
    *comp_code = MQCC_FAILED;
    *reason = why;
}

/* A text behind a pointer or at an offset from a structure's start, with its length. 0, or -1 where it cannot be. */
static int read_text(struct request *request, struct texts *texts, int index, const void *structure, MQPTR pointer,
                     MQLONG offset, MQLONG length) {
    const void *at = pointer;
    if (at == NULL && offset != 0) at = (const char *)structure + offset;
    if (at == NULL || length == 0) return 0;
    if (length < 0 || length > LONGEST_TEXT) return -1;
    texts->at[index] = at;
    request->lengths[index] = length;
    return 0;
}

static MQLONG read_channel(struct request *request, struct texts *texts, const MQCD *channel) {
    if (channel->Version < 1 || channel->Version > MQCD_VERSION_13) return MQRC_CD_ERROR;
    memcpy(request->channel_name, channel->ChannelName, sizeof request->channel_name);
    request->max_msg_length = channel->MaxMsgLength;
    if (channel->Version >= 2)
        memcpy(request->connection_name, channel->ConnectionName, sizeof request->connection_name);
    else
        memcpy(request->connection_name, channel->ShortConnectionName, sizeof channel->ShortConnectionName);
    if (channel->Version < MQCD_VERSION_7) return MQRC_NONE;
    memcpy(request->cipher_spec, channel->SSLCipherSpec, sizeof request->cipher_spec);
    if (read_text(request, texts, 2, channel, channel->SSLPeerNamePtr, 0, channel->SSLPeerNameLength) < 0)
        return MQRC_CD_ERROR;
    return MQRC_NONE;
}

static MQLONG read_security(struct request *request, struct texts *texts, const MQCSP *security) {
    if (memcmp(security->StrucId, "CSP ", 4) != 0) return MQRC_CSP_ERROR;
    if (security->AuthenticationType != MQCSP_AUTH_USER_ID_AND_PWD) return MQRC_NONE;
    if (read_text(request, texts, 0, security, security->CSPUserIdPtr, security->CSPUserIdOffset,
                  security->CSPUserIdLength) < 0 ||
        read_text(request, texts, 1, security, security->CSPPasswordPtr, security->CSPPasswordOffset,
                  security->CSPPasswordLength) < 0)
        return MQRC_CSP_ERROR;
    return MQRC_NONE;
}

static MQLONG read_options(struct request *request, struct texts *texts, const MQCNO *options) {
    MQLONG reason = MQRC_NONE;
    if (memcmp(options->StrucId, "CNO ", 4) != 0 || options->Version < 1 || options->Version > MQCNO_VERSION_8)
        return MQRC_CNO_ERROR;
    request->options = options->Options;
    const void *channel = NULL;
    if (options->Version >= MQCNO_VERSION_2) {
        channel = options->ClientConnPtr;
        if (channel == NULL && options->ClientConnOffset != 0)
            channel = (const char *)options + options->ClientConnOffset;
    }
    if (channel != NULL) reason = read_channel(request, texts, channel);
    if (reason == MQRC_NONE && options->Version >= MQCNO_VERSION_4 && options->SSLConfigPtr != NULL)
        memcpy(request->key_repository, options->SSLConfigPtr->KeyRepository, sizeof request->key_repository);
    if (reason == MQRC_NONE && options->Version >= MQCNO_VERSION_5 && options->SecurityParmsPtr != NULL)
        reason = read_security(request, texts, options->SecurityParmsPtr);
    if (reason == MQRC_NONE && options->Version >= MQCNO_VERSION_6 &&
        read_text(request, texts, 3, options, options->CCDTUrlPtr, options->CCDTUrlOffset, options->CCDTUrlLength) < 0)
        reason = MQRC_CNO_ERROR;
    if (options->Version >= MQCNO_VERSION_7 && options->ApplName[0] != 0 && options->ApplName[0] != ' ')
        memcpy(request->appl_name, options->ApplName, sizeof request->appl_name);
    return reason;
}

/* The socket for one CONNAME (or for none): the entry that names it, else the one without a name. */
static const char *entry_for(const char *name, size_t name_length, size_t *path_length) {
    const char *fallback = NULL, *entry = getenv(VARIABLE);
    size_t fallback_length = 0;
    while (entry != NULL && *entry != 0) {
        size_t length = strcspn(entry, ";");
        const char *equals = memchr(entry, '=', length);
        if (equals == NULL && fallback == NULL) {
            fallback = entry;
            fallback_length = length;
        } else if (equals != NULL && (name_length == 0 || ((size_t)(equals - entry) == name_length &&
                                                          memcmp(entry, name, name_length) == 0))) {
            *path_length = length - (size_t)(equals + 1 - entry);
            return equals + 1;
        }
        entry += length + (entry[length] == ';');
    }
    *path_length = fallback_length;
    return fallback;
}

/* Asks one queue manager. 0 with its answer, or -1 where nobody listens or the answer never came. */
static int ask(const char *path, size_t path_length, struct request *request, struct texts *texts, int *descriptor,
               struct answer *answer) {
    struct iovec parts[5] = {{request, sizeof *request}};
    for (int index = 0; index < 4; index++)
        parts[index + 1] = (struct iovec){(void *)texts->at[index], (size_t)request->lengths[index]};
    *descriptor = transport_connect(path, path_length);
    if (*descriptor < 0) return -1;
    if (transport_exchange(*descriptor, VERB_CONNECT, parts, 5, answer) == 0) return 0;
    close(*descriptor);
    return -1;
}

static int is_worth_another_name(MQLONG reason) {
    return reason == MQRC_Q_MGR_NOT_AVAILABLE || reason == MQRC_HOST_NOT_AVAILABLE || reason == 2161 || reason == 2162 ||
           reason == 2537;
}

/* Tries the CONNAMEs in their order; the reason is the last one's. */
static MQLONG connect_somewhere(struct request *request, struct texts *texts, int *descriptor, struct answer *answer) {
    char names[sizeof request->connection_name + 1];
    memcpy(names, request->connection_name, sizeof request->connection_name);
    names[sizeof request->connection_name] = 0;
    const char *name = names;
    MQLONG reason;
    do {
        while (*name == ' ' || *name == ',') name++;
        size_t length = strcspn(name, ", "), path_length = 0;
        const char *path = entry_for(name, length, &path_length);
        reason = length > 0 ? MQRC_HOST_NOT_AVAILABLE : MQRC_Q_MGR_NOT_AVAILABLE;
        if (path != NULL && ask(path, path_length, request, texts, descriptor, answer) == 0) {
            reason = answer->reason;
            if (answer->comp_code != MQCC_FAILED && answer->length == MQ_Q_MGR_NAME_LENGTH) return MQRC_NONE;
            free(answer->fields);
            close(*descriptor);
            if (!is_worth_another_name(reason)) return reason != MQRC_NONE ? reason : MQRC_UNEXPECTED_ERROR;
        }
        name += length;
        name += strspn(name, ", ");
    } while (*name != 0);
    return reason;
}

static MQLONG sharing_of(MQLONG options) {
    const MQLONG all = MQCNO_HANDLE_SHARE_NONE | MQCNO_HANDLE_SHARE_BLOCK | MQCNO_HANDLE_SHARE_NO_BLOCK;
    MQLONG chosen = options & all;
    if (chosen == 0) return MQCNO_HANDLE_SHARE_NONE;
    return (chosen & (chosen - 1)) == 0 ? chosen : 0;
}

/* Whether a request names a channel, itself or by MQSERVER, or asks for a client's binding: a thread may have many such
 * connections. */
static int is_client(const struct request *request) {
    return request->channel_name[0] != 0 || getenv("MQSERVER") != NULL || (request->options & MQCNO_CLIENT_BINDING) != 0;
}

static void begin_connection(struct request *request, struct texts *texts, PMQHCONN hconn, PMQLONG comp_code,
                             PMQLONG reason) {
    int descriptor = -1;
    struct answer answer;
    MQLONG sharing = sharing_of(request->options);
    if (sharing == 0) {
        fail(hconn, comp_code, reason, MQRC_OPTIONS_ERROR);
        return;
    }
    MQLONG refusal = connect_somewhere(request, texts, &descriptor, &answer);
    if (refusal != MQRC_NONE) {
        fail(hconn, comp_code, reason, refusal);
        return;
    }
    const char *name = (const char *)answer.fields;
    int is_only_one = sharing == MQCNO_HANDLE_SHARE_NONE && !is_client(request);
    MQHCONN existing = is_only_one ? connection_of_this_thread(name) : 0;
    struct connection *added = existing != 0 ? NULL : connection_add(descriptor, sharing, name);
    free(answer.fields);
    if (added == NULL) close(descriptor);
    if (added == NULL && existing == 0) {
        fail(hconn, comp_code, reason, MQRC_HANDLE_NOT_AVAILABLE);
        return;
    }
    *hconn = existing != 0 ? existing : added->hconn;
    *comp_code = existing != 0 ? MQCC_WARNING : MQCC_OK;
    *reason = existing != 0 ? MQRC_ALREADY_CONNECTED : MQRC_NONE;
}

void MQCONNX(PMQCHAR queue_manager_name, PMQCNO options, PMQHCONN hconn, PMQLONG comp_code, PMQLONG reason) {
    struct request request;
    struct texts texts = {{NULL, NULL, NULL, NULL}};
    memset(&request, 0, sizeof request);
    if (queue_manager_name != NULL)
        memcpy(request.queue_manager_name, queue_manager_name,
               strnlen(queue_manager_name, sizeof request.queue_manager_name));
    request.process = (MQLONG)getpid();
    MQLONG refusal = options != NULL ? read_options(&request, &texts, options) : MQRC_NONE;
    if (request.appl_name[0] == 0)
        memcpy(request.appl_name, program_invocation_short_name,
               strnlen(program_invocation_short_name, sizeof request.appl_name));
    if (refusal != MQRC_NONE)
        fail(hconn, comp_code, reason, refusal);
    else
        begin_connection(&request, &texts, hconn, comp_code, reason);
}

void MQCONN(PMQCHAR queue_manager_name, PMQHCONN hconn, PMQLONG comp_code, PMQLONG reason) {
    MQCONNX(queue_manager_name, NULL, hconn, comp_code, reason);
}

void MQDISC(PMQHCONN hconn, PMQLONG comp_code, PMQLONG reason) {
    struct connection *connection = NULL;
    struct answer answer = {MQCC_FAILED, MQRC_NONE, NULL, 0};
    answer.reason = connection_enter(*hconn, &connection);
    if (answer.reason == MQRC_NONE &&
        transport_exchange(connection->descriptor, VERB_DISCONNECT, NULL, 0, &answer) < 0)
        answer = (struct answer){MQCC_FAILED, MQRC_CONNECTION_BROKEN, NULL, 0};
    if (connection != NULL) {
        connection_remove(connection);
        *hconn = MQHC_UNUSABLE_HCONN;
    }
    free(answer.fields);
    *comp_code = answer.comp_code;
    *reason = answer.reason;
}
