/* The calls on objects and messages. Each checks what it was given, hands it to the queue manager's process, and checks
 * the answer. Structures of older versions are completed on the way there and cut on the way back. */
#include <stdlib.h>
#include <string.h>

#include "connections.h"

#define MOST_SELECTORS 256
#define MOST_CHARACTERS (16 * 1024)

_Static_assert(sizeof(MQMD) == MQMD_LENGTH_2, "MQMD");
_Static_assert(sizeof(MQOD) == MQOD_LENGTH_4, "MQOD");
_Static_assert(sizeof(MQPMO) == MQPMO_LENGTH_3, "MQPMO");
_Static_assert(sizeof(MQGMO) == MQGMO_LENGTH_4, "MQGMO");

static const size_t md_lengths[] = {MQMD_LENGTH_1, MQMD_LENGTH_2};
static const size_t od_lengths[] = {MQOD_LENGTH_1, MQOD_LENGTH_2, MQOD_LENGTH_3, MQOD_LENGTH_4};
static const size_t pmo_lengths[] = {MQPMO_LENGTH_1, MQPMO_LENGTH_2, MQPMO_LENGTH_3};
static const size_t gmo_lengths[] = {MQGMO_LENGTH_1, MQGMO_LENGTH_2, MQGMO_LENGTH_3, MQGMO_LENGTH_4};

/* One structure on its way: a complete copy, and how much of it the program has. */
struct copy {
    unsigned char *program;
    size_t length;
    MQLONG version;
    union {
        unsigned char bytes[MQOD_LENGTH_4];
        MQMD md;
        MQOD od;
        MQPMO pmo;
        MQGMO gmo;
    } as;
};

/* Copies a structure by its version. 0, or -1 for one that is none. */
static int take(struct copy *copy, MQPTR given, const char *identifier, const size_t *lengths, MQLONG last_version) {
    memset(copy, 0, sizeof *copy);
    if (given == NULL || memcmp(given, identifier, 4) != 0) return -1;
    memcpy(&copy->version, (unsigned char *)given + 4, sizeof copy->version);
    if (copy->version < 1 || copy->version > last_version) return -1;
    copy->program = given;
    copy->length = lengths[copy->version - 1];
    memcpy(copy->as.bytes, given, copy->length);
    return 0;
}

static int take_md(struct copy *copy, MQPTR given) {
    if (take(copy, given, "MD  ", md_lengths, 2) < 0) return -1;
    if (copy->version == MQMD_VERSION_1) {
        copy->as.md.Version = MQMD_VERSION_2;
        copy->as.md.MsgSeqNumber = 1;
        copy->as.md.OriginalLength = -1;
    }
    return 0;
}

static int take_gmo(struct copy *copy, MQPTR given) {
    if (take(copy, given, "GMO ", gmo_lengths, 4) < 0) return -1;
    if (copy->version == MQGMO_VERSION_1) copy->as.gmo.MatchOptions = 1 + 2; /* MQMO_MATCH_MSG_ID, _CORREL_ID */
    return 0;
}

/* Gives a structure back as far as the program has it; its version stays. */
static void give_back(const struct copy *copy, const unsigned char *changed) {
    memcpy(copy->program + 8, changed + 8, copy->length - 8);
}

/* Carries a call out. The answer's fields are checked: `least` bytes or nothing. */
static void call(MQHCONN hconn, enum verb verb, struct iovec *parts, int part_count, size_t least,
                 struct answer *answer) {
    struct connection *connection = NULL;
    MQLONG refusal = connection_enter(hconn, &connection);
    memset(answer, 0, sizeof *answer);
    if (refusal == MQRC_NONE) {
        if (transport_exchange(connection->descriptor, verb, parts, part_count, answer) < 0)
            refusal = MQRC_CONNECTION_BROKEN;
        else if (answer->length < least && answer->comp_code != MQCC_FAILED)
            refusal = MQRC_UNEXPECTED_ERROR;
        else if (answer->reason == MQRC_CONNECTION_BROKEN)
            refusal = MQRC_CONNECTION_BROKEN;
        if (refusal == MQRC_CONNECTION_BROKEN) connection_break(connection);
    }
    if (connection != NULL) connection_leave(connection);
    if (refusal != MQRC_NONE) {
        free(answer->fields);
        *answer = (struct answer){MQCC_FAILED, refusal, NULL, 0};
    }
}

static void refuse(PMQLONG comp_code, PMQLONG reason, MQLONG why) {
    *comp_code = MQCC_FAILED;
    *reason = why;
}

/* Ends a call: the codes, and the fields are freed. */
static void end(struct answer *answer, PMQLONG comp_code, PMQLONG reason) {
    free(answer->fields);
    *comp_code = answer->comp_code;
    *reason = answer->reason;
}

void MQOPEN(MQHCONN hconn, MQPTR descriptor, MQLONG options, PMQHOBJ hobj, PMQLONG comp_code, PMQLONG reason) {
    struct copy od;
    struct answer answer;
    *hobj = MQHO_UNUSABLE_HOBJ;
    if (take(&od, descriptor, "OD  ", od_lengths, 4) < 0) {
        refuse(comp_code, reason, MQRC_OD_ERROR);
        return;
    }
    struct iovec parts[] = {{&options, sizeof options}, {od.as.bytes, sizeof od.as.od}};
    call(hconn, VERB_OPEN, parts, 2, sizeof(MQHOBJ) + sizeof(MQOD), &answer);
    if (answer.comp_code != MQCC_FAILED) {
        memcpy(hobj, answer.fields, sizeof *hobj);
        give_back(&od, answer.fields + sizeof *hobj);
    }
    end(&answer, comp_code, reason);
}

void MQCLOSE(MQHCONN hconn, PMQHOBJ hobj, MQLONG options, PMQLONG comp_code, PMQLONG reason) {
    struct answer answer;
    struct iovec parts[] = {{hobj, sizeof *hobj}, {&options, sizeof options}};
    call(hconn, VERB_CLOSE, parts, 2, 0, &answer);
    if (answer.comp_code != MQCC_FAILED) *hobj = MQHO_UNUSABLE_HOBJ;
    end(&answer, comp_code, reason);
}

/* What MQPUT and MQPUT1 have in common: 0, or why the message cannot be sent. */
static MQLONG take_message(struct copy *md, struct copy *pmo, MQPTR descriptor, MQPTR options, MQLONG length,
                           MQPTR buffer) {
    if (take_md(md, descriptor) < 0) return MQRC_MD_ERROR;
    if (take(pmo, options, "PMO ", pmo_lengths, 3) < 0) return MQRC_PMO_ERROR;
    if (length < 0) return MQRC_BUFFER_LENGTH_ERROR;
    if (length > LONGEST_MESSAGE) return 2031; /* MQRC_MSG_TOO_BIG_FOR_Q_MGR */
    return length > 0 && buffer == NULL ? MQRC_BUFFER_ERROR : MQRC_NONE;
}

void MQPUT(MQHCONN hconn, MQHOBJ hobj, MQPTR descriptor, MQPTR options, MQLONG length, MQPTR buffer,
           PMQLONG comp_code, PMQLONG reason) {
    struct copy md, pmo;
    struct answer answer;
    MQLONG refusal = take_message(&md, &pmo, descriptor, options, length, buffer);
    if (refusal != MQRC_NONE) {
        refuse(comp_code, reason, refusal);
        return;
    }
    struct iovec parts[] = {{&hobj, sizeof hobj},
                            {md.as.bytes, sizeof(MQMD)},
                            {pmo.as.bytes, sizeof(MQPMO)},
                            {buffer, (size_t)length}};
    call(hconn, VERB_PUT, parts, 4, sizeof(MQMD) + sizeof(MQPMO), &answer);
    if (answer.comp_code != MQCC_FAILED) {
        give_back(&md, answer.fields);
        give_back(&pmo, answer.fields + sizeof(MQMD));
    }
    end(&answer, comp_code, reason);
}

void MQPUT1(MQHCONN hconn, MQPTR object, MQPTR descriptor, MQPTR options, MQLONG length, MQPTR buffer,
            PMQLONG comp_code, PMQLONG reason) {
    struct copy od, md, pmo;
    struct answer answer;
    MQLONG refusal = take_message(&md, &pmo, descriptor, options, length, buffer);
    if (take(&od, object, "OD  ", od_lengths, 4) < 0) refusal = MQRC_OD_ERROR;
    if (refusal != MQRC_NONE) {
        refuse(comp_code, reason, refusal);
        return;
    }
    struct iovec parts[] = {{od.as.bytes, sizeof(MQOD)},
                            {md.as.bytes, sizeof(MQMD)},
                            {pmo.as.bytes, sizeof(MQPMO)},
                            {buffer, (size_t)length}};
    call(hconn, VERB_PUT1, parts, 4, sizeof(MQOD) + sizeof(MQMD) + sizeof(MQPMO), &answer);
    if (answer.comp_code != MQCC_FAILED) {
        give_back(&od, answer.fields);
        give_back(&md, answer.fields + sizeof(MQOD));
        give_back(&pmo, answer.fields + sizeof(MQOD) + sizeof(MQMD));
    }
    end(&answer, comp_code, reason);
}

void MQGET(MQHCONN hconn, MQHOBJ hobj, MQPTR descriptor, MQPTR options, MQLONG length, MQPTR buffer,
           PMQLONG data_length, PMQLONG comp_code, PMQLONG reason) {
    const size_t before_body = sizeof(MQMD) + sizeof(MQGMO) + sizeof(MQLONG);
    struct copy md, gmo;
    struct answer answer;
    MQLONG refusal = MQRC_NONE;
    if (take_md(&md, descriptor) < 0) refusal = MQRC_MD_ERROR;
    else if (take_gmo(&gmo, options) < 0) refusal = MQRC_GMO_ERROR;
    else if (length < 0) refusal = MQRC_BUFFER_LENGTH_ERROR;
    else if (length > 0 && buffer == NULL) refusal = MQRC_BUFFER_ERROR;
    *data_length = 0;
    if (refusal != MQRC_NONE) {
        refuse(comp_code, reason, refusal);
        return;
    }
    struct iovec parts[] = {{&hobj, sizeof hobj},
                            {md.as.bytes, sizeof(MQMD)},
                            {gmo.as.bytes, sizeof(MQGMO)},
                            {&length, sizeof length}};
    call(hconn, VERB_GET, parts, 4, before_body, &answer);
    if (answer.comp_code != MQCC_FAILED && answer.length - before_body > (size_t)length) {
        free(answer.fields);
        answer = (struct answer){MQCC_FAILED, MQRC_UNEXPECTED_ERROR, NULL, 0};
    }
    if (answer.comp_code != MQCC_FAILED) {
        give_back(&md, answer.fields);
        give_back(&gmo, answer.fields + sizeof(MQMD));
        memcpy(data_length, answer.fields + sizeof(MQMD) + sizeof(MQGMO), sizeof *data_length);
        if (answer.length > before_body) memcpy(buffer, answer.fields + before_body, answer.length - before_body);
    }
    end(&answer, comp_code, reason);
}

static void call_without_fields(MQHCONN hconn, enum verb verb, PMQLONG comp_code, PMQLONG reason) {
    struct answer answer;
    call(hconn, verb, NULL, 0, 0, &answer);
    end(&answer, comp_code, reason);
}

void MQBEGIN(MQHCONN hconn, MQPTR options, PMQLONG comp_code, PMQLONG reason) {
    (void)options;
    call_without_fields(hconn, VERB_BEGIN, comp_code, reason);
}

void MQCMIT(MQHCONN hconn, PMQLONG comp_code, PMQLONG reason) {
    call_without_fields(hconn, VERB_COMMIT, comp_code, reason);
}

void MQBACK(MQHCONN hconn, PMQLONG comp_code, PMQLONG reason) {
    call_without_fields(hconn, VERB_BACK_OUT, comp_code, reason);
}

static MQLONG check_attributes(MQLONG selector_count, PMQLONG selectors, MQLONG int_count, PMQLONG ints,
                               MQLONG char_length, PMQCHAR chars) {
    if (selector_count < 0 || selector_count > MOST_SELECTORS || (selector_count > 0 && selectors == NULL))
        return MQRC_SELECTOR_COUNT_ERROR;
    if (int_count < 0 || int_count > MOST_SELECTORS) return MQRC_INT_ATTR_COUNT_ERROR;
    if (int_count > 0 && ints == NULL) return MQRC_INT_ATTRS_ARRAY_ERROR;
    if (char_length < 0) return MQRC_CHAR_ATTR_LENGTH_ERROR;
    return char_length > 0 && chars == NULL ? MQRC_CHAR_ATTRS_ERROR : MQRC_NONE;
}

void MQINQ(MQHCONN hconn, MQHOBJ hobj, MQLONG selector_count, PMQLONG selectors, MQLONG int_count, PMQLONG ints,
           MQLONG char_length, PMQCHAR chars, PMQLONG comp_code, PMQLONG reason) {
    struct answer answer;
    MQLONG refusal = check_attributes(selector_count, selectors, int_count, ints, char_length, chars);
    if (refusal != MQRC_NONE) {
        refuse(comp_code, reason, refusal);
        return;
    }
    if (char_length > MOST_CHARACTERS) char_length = MOST_CHARACTERS; /* more than all that there is */
    MQLONG counts[] = {hobj, selector_count, int_count, char_length};
    struct iovec parts[] = {{counts, sizeof counts}, {selectors, sizeof *selectors * (size_t)selector_count}};
    call(hconn, VERB_INQUIRE, parts, 2, 2 * sizeof(MQLONG), &answer);
    if (answer.comp_code != MQCC_FAILED) {
        MQLONG found[2];
        memcpy(found, answer.fields, sizeof found);
        if (found[0] < 0 || found[0] > int_count || found[1] < 0 || found[1] > char_length ||
            answer.length != sizeof found + (size_t)found[0] * sizeof *ints + (size_t)found[1]) {
            free(answer.fields);
            answer = (struct answer){MQCC_FAILED, MQRC_UNEXPECTED_ERROR, NULL, 0};
        } else {
            size_t int_bytes = (size_t)found[0] * sizeof *ints;
            if (int_bytes > 0) memcpy(ints, answer.fields + sizeof found, int_bytes);
            if (found[1] > 0) memcpy(chars, answer.fields + sizeof found + int_bytes, (size_t)found[1]);
        }
    }
    end(&answer, comp_code, reason);
}

void MQSET(MQHCONN hconn, MQHOBJ hobj, MQLONG selector_count, PMQLONG selectors, MQLONG int_count, PMQLONG ints,
           MQLONG char_length, PMQCHAR chars, PMQLONG comp_code, PMQLONG reason) {
    struct answer answer;
    MQLONG refusal = check_attributes(selector_count, selectors, int_count, ints, char_length, chars);
    if (char_length > MOST_CHARACTERS) refusal = MQRC_CHAR_ATTR_LENGTH_ERROR;
    if (refusal != MQRC_NONE) {
        refuse(comp_code, reason, refusal);
        return;
    }
    MQLONG counts[] = {hobj, selector_count, int_count, char_length};
    struct iovec parts[] = {{counts, sizeof counts},
                            {selectors, sizeof *selectors * (size_t)selector_count},
                            {ints, sizeof *ints * (size_t)int_count},
                            {chars, (size_t)char_length}};
    call(hconn, VERB_SET, parts, 4, 0, &answer);
    end(&answer, comp_code, reason);
}
