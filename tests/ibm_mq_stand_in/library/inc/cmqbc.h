/* The administration interface (MQAI), as far as pymqi's C module must be linked with it: every call answers 2298.
 * Written for this project; see cmqc.h. */
#ifndef STANDIN_CMQBC_H
#define STANDIN_CMQBC_H

#include "cmqc.h"

typedef MQLONG MQHBAG;
typedef MQHBAG *PMQHBAG;

#define MQHB_UNUSABLE_HBAG (-1)
#define MQHB_NONE (-2)
#define MQCBO_ADMIN_BAG 0x00000001
#define MQBL_NULL_TERMINATED (-1)
#define MQIND_NONE (-1)
#define MQIASY_COMP_CODE (-6)
#define MQIASY_REASON (-7)
#define MQSEL_ANY_USER_SELECTOR (-30002)
#define MQSEL_ALL_USER_SELECTORS (-30002)
#define MQIT_INTEGER 1
#define MQIT_STRING 2
#define MQITEM_BYTE_STRING 8
#define MQHA_BAG_HANDLE 4001

void mqCreateBag(MQLONG options, PMQHBAG bag, PMQLONG comp_code, PMQLONG reason);
void mqDeleteBag(PMQHBAG bag, PMQLONG comp_code, PMQLONG reason);
void mqAddString(MQHBAG bag, MQLONG selector, MQLONG length, PMQCHAR text, PMQLONG comp_code, PMQLONG reason);
void mqAddInteger(MQHBAG bag, MQLONG selector, MQLONG value, PMQLONG comp_code, PMQLONG reason);
void mqAddInquiry(MQHBAG bag, MQLONG selector, PMQLONG comp_code, PMQLONG reason);
void mqAddByteString(MQHBAG bag, MQLONG selector, MQLONG length, PMQBYTE bytes, PMQLONG comp_code, PMQLONG reason);
void mqAddStringFilter(MQHBAG bag, MQLONG selector, MQLONG length, PMQCHAR text, MQLONG operation, PMQLONG comp_code,
                       PMQLONG reason);
void mqAddIntegerFilter(MQHBAG bag, MQLONG selector, MQLONG value, MQLONG operation, PMQLONG comp_code, PMQLONG reason);
void mqExecute(MQHCONN hconn, MQLONG command, MQHBAG options, MQHBAG admin, MQHBAG response, MQHOBJ admin_queue,
               MQHOBJ response_queue, PMQLONG comp_code, PMQLONG reason);
void mqInquireBag(MQHBAG bag, MQLONG selector, MQLONG index, PMQHBAG value, PMQLONG comp_code, PMQLONG reason);
void mqInquireInteger(MQHBAG bag, MQLONG selector, MQLONG index, PMQLONG value, PMQLONG comp_code, PMQLONG reason);
void mqInquireString(MQHBAG bag, MQLONG selector, MQLONG index, MQLONG size, PMQCHAR text, PMQLONG length,
                     PMQLONG coded_char_set_id, PMQLONG comp_code, PMQLONG reason);
void mqInquireByteString(MQHBAG bag, MQLONG selector, MQLONG index, MQLONG size, PMQBYTE bytes, PMQLONG length,
                         PMQLONG comp_code, PMQLONG reason);
void mqInquireItemInfo(MQHBAG bag, MQLONG selector, MQLONG index, PMQLONG found, PMQLONG type, PMQLONG comp_code,
                       PMQLONG reason);
void mqCountItems(MQHBAG bag, MQLONG selector, PMQLONG count, PMQLONG comp_code, PMQLONG reason);

#endif
