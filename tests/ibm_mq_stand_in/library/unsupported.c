/* Calls that pymqi and ibmmq are linked with and that the gateway never makes: each answers 2298. */
#include "cmqbc.h"
#include "cmqc.h"

#define ANSWER_FUNCTION_NOT_SUPPORTED \
    (*comp_code = MQCC_FAILED, *reason = MQRC_FUNCTION_NOT_SUPPORTED)
#define UNSUPPORTED(name, ...) \
    void name(__VA_ARGS__, PMQLONG comp_code, PMQLONG reason) { ANSWER_FUNCTION_NOT_SUPPORTED; }

#pragma GCC diagnostic ignored "-Wunused-parameter" /* what they were given is of no interest */

UNSUPPORTED(MQSUB, MQHCONN hconn, MQPTR descriptor, PMQHOBJ hobj, PMQHOBJ hsub)
UNSUPPORTED(MQSUBRQ, MQHCONN hconn, MQHOBJ hsub, MQLONG action, MQPTR options)
UNSUPPORTED(MQSTAT, MQHCONN hconn, MQLONG type, MQPTR status)
UNSUPPORTED(MQCB, MQHCONN hconn, MQLONG operation, MQPTR callback, MQHOBJ hobj, MQPTR descriptor, MQPTR options)
UNSUPPORTED(MQCTL, MQHCONN hconn, MQLONG operation, MQPTR options)
UNSUPPORTED(MQCRTMH, MQHCONN hconn, MQPTR options, PMQHMSG hmsg)
UNSUPPORTED(MQDLTMH, MQHCONN hconn, PMQHMSG hmsg, MQPTR options)
UNSUPPORTED(MQSETMP, MQHCONN hconn, MQHMSG hmsg, MQPTR options, PMQCHARV name, MQPTR descriptor, MQLONG type,
            MQLONG length, MQPTR value)
UNSUPPORTED(MQDLTMP, MQHCONN hconn, MQHMSG hmsg, MQPTR options, PMQCHARV name)
UNSUPPORTED(mqCreateBag, MQLONG options, PMQHBAG bag)
UNSUPPORTED(mqDeleteBag, PMQHBAG bag)
UNSUPPORTED(mqAddString, MQHBAG bag, MQLONG selector, MQLONG length, PMQCHAR text)
UNSUPPORTED(mqAddInteger, MQHBAG bag, MQLONG selector, MQLONG value)
UNSUPPORTED(mqAddInquiry, MQHBAG bag, MQLONG selector)
UNSUPPORTED(mqAddByteString, MQHBAG bag, MQLONG selector, MQLONG length, PMQBYTE bytes)
UNSUPPORTED(mqAddStringFilter, MQHBAG bag, MQLONG selector, MQLONG length, PMQCHAR text, MQLONG operation)
UNSUPPORTED(mqAddIntegerFilter, MQHBAG bag, MQLONG selector, MQLONG value, MQLONG operation)
UNSUPPORTED(mqExecute, MQHCONN hconn, MQLONG command, MQHBAG options, MQHBAG admin, MQHBAG response,
            MQHOBJ admin_queue, MQHOBJ response_queue)
UNSUPPORTED(mqInquireBag, MQHBAG bag, MQLONG selector, MQLONG index, PMQHBAG value)
UNSUPPORTED(mqInquireInteger, MQHBAG bag, MQLONG selector, MQLONG index, PMQLONG value)
UNSUPPORTED(mqInquireString, MQHBAG bag, MQLONG selector, MQLONG index, MQLONG size, PMQCHAR text, PMQLONG length,
            PMQLONG coded_char_set_id)
UNSUPPORTED(mqInquireByteString, MQHBAG bag, MQLONG selector, MQLONG index, MQLONG size, PMQBYTE bytes, PMQLONG length)
UNSUPPORTED(mqInquireItemInfo, MQHBAG bag, MQLONG selector, MQLONG index, PMQLONG found, PMQLONG type)
UNSUPPORTED(mqCountItems, MQHBAG bag, MQLONG selector, PMQLONG count)

void MQINQMP(MQHCONN hconn, MQHMSG hmsg, MQPTR options, PMQCHARV name, MQPTR descriptor, PMQLONG type, MQLONG length,
             MQPTR value, PMQLONG data_length, PMQLONG comp_code, PMQLONG reason) {
    *data_length = 0;
    ANSWER_FUNCTION_NOT_SUPPORTED;
}
