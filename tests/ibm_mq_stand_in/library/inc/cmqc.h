/* The MQI as pymqi's C module and the stand-in see it: types, structures, constants and calls, written for this project.
 *
 * Field names, their order and the numbers are those of the IBM MQ documentation ("Data types used in the MQI", "MQCNO -
 * Connect options" and so on); sizes are those of IBM's compiled ibmmq wheel on 64-bit Linux, which a test compares.
 * Only what is needed stands here. This is no copy of IBM's header and no substitute for it.
 */
#ifndef STANDIN_CMQC_H
#define STANDIN_CMQC_H

#include <stdint.h>

/* ---- types --------------------------------------------------------------------------------------------------------- */

typedef int32_t MQLONG;
typedef unsigned char MQBYTE;
typedef char MQCHAR;
typedef int32_t MQBOOL;
typedef int8_t MQINT8;
typedef int16_t MQINT16;
typedef int32_t MQINT32;
typedef int64_t MQINT64;
typedef float MQFLOAT32;
typedef double MQFLOAT64;
typedef MQLONG MQHCONN;
typedef MQLONG MQHOBJ;
typedef MQINT64 MQHMSG;
typedef void *MQPTR;
typedef void *PMQVOID;
typedef MQLONG *PMQLONG;
typedef MQBYTE *PMQBYTE;
typedef MQCHAR *PMQCHAR;
typedef MQBOOL *PMQBOOL;
typedef MQINT8 *PMQINT8;
typedef MQINT16 *PMQINT16;
typedef MQINT32 *PMQINT32;
typedef MQINT64 *PMQINT64;
typedef MQFLOAT32 *PMQFLOAT32;
typedef MQFLOAT64 *PMQFLOAT64;
typedef MQHCONN *PMQHCONN;
typedef MQHOBJ *PMQHOBJ;
typedef MQHMSG *PMQHMSG;

/* ---- constants ----------------------------------------------------------------------------------------------------- */

/* The levels that pymqi asks for: each says that the structures and calls of that release are here. */
#define MQCMDL_LEVEL_500 500
#define MQCMDL_LEVEL_510 510
#define MQCMDL_LEVEL_520 520
#define MQCMDL_LEVEL_530 530
#define MQCMDL_LEVEL_600 600
#define MQCMDL_LEVEL_700 700
#define MQCMDL_LEVEL_710 710
#define MQCMDL_LEVEL_750 750
#define MQCMDL_LEVEL_800 800
#define MQCMDL_LEVEL_801 801

#define MQCC_OK 0
#define MQCC_WARNING 1
#define MQCC_FAILED 2
#define MQCC_UNKNOWN (-1)

#define MQRC_NONE 0
#define MQRC_ALREADY_CONNECTED 2002
#define MQRC_BUFFER_ERROR 2004
#define MQRC_BUFFER_LENGTH_ERROR 2005
#define MQRC_CHAR_ATTR_LENGTH_ERROR 2006
#define MQRC_CHAR_ATTRS_ERROR 2007
#define MQRC_CONNECTION_BROKEN 2009
#define MQRC_HANDLE_NOT_AVAILABLE 2017
#define MQRC_HCONN_ERROR 2018
#define MQRC_INT_ATTR_COUNT_ERROR 2021
#define MQRC_INT_ATTRS_ARRAY_ERROR 2023
#define MQRC_MD_ERROR 2026
#define MQRC_OD_ERROR 2044
#define MQRC_Q_MGR_NAME_ERROR 2058
#define MQRC_Q_MGR_NOT_AVAILABLE 2059
#define MQRC_SELECTOR_COUNT_ERROR 2065
#define MQRC_STORAGE_NOT_AVAILABLE 2071
#define MQRC_CNO_ERROR 2139
#define MQRC_PMO_ERROR 2173
#define MQRC_GMO_ERROR 2186
#define MQRC_CD_ERROR 2277
#define MQRC_OPTIONS_ERROR 2046
#define MQRC_UNEXPECTED_ERROR 2195
#define MQRC_CALL_IN_PROGRESS 2219
#define MQRC_FUNCTION_NOT_SUPPORTED 2298
#define MQRC_STRING_TRUNCATED 2311
#define MQRC_CSP_ERROR 2595
#define MQRC_HOST_NOT_AVAILABLE 2538

#define MQHC_DEF_HCONN 0
#define MQHC_UNUSABLE_HCONN (-1)
#define MQHO_NONE 0
#define MQHO_UNUSABLE_HOBJ (-1)
#define MQHM_UNUSABLE_HMSG (-1)

#define MQCNO_NONE 0
#define MQCNO_VERSION_1 1
#define MQCNO_VERSION_2 2
#define MQCNO_VERSION_3 3
#define MQCNO_VERSION_4 4
#define MQCNO_VERSION_5 5
#define MQCNO_VERSION_6 6
#define MQCNO_VERSION_7 7
#define MQCNO_VERSION_8 8
#define MQCNO_HANDLE_SHARE_NONE 0x00000020
#define MQCNO_HANDLE_SHARE_BLOCK 0x00000040
#define MQCNO_HANDLE_SHARE_NO_BLOCK 0x00000080
#define MQCNO_CLIENT_BINDING 0x00000800
#define MQCSP_VERSION_1 1
#define MQCSP_AUTH_NONE 0
#define MQCSP_AUTH_USER_ID_AND_PWD 1
#define MQSCO_VERSION_1 1
#define MQBO_VERSION_1 1
#define MQMD_VERSION_1 1
#define MQMD_VERSION_2 2
#define MQOD_VERSION_1 1
#define MQOD_VERSION_2 2
#define MQOD_VERSION_3 3
#define MQOD_VERSION_4 4
#define MQPMO_VERSION_1 1
#define MQPMO_VERSION_2 2
#define MQPMO_VERSION_3 3
#define MQGMO_VERSION_1 1
#define MQGMO_VERSION_2 2
#define MQGMO_VERSION_3 3
#define MQGMO_VERSION_4 4
#define MQIMPO_VERSION_1 1
#define MQPD_VERSION_1 1
#define MQPD_SUPPORT_OPTIONAL 1
#define MQCOPY_DEFAULT 22
#define MQENC_NATIVE 546
#define MQCCSI_APPL (-3)
#define MQ_Q_MGR_NAME_LENGTH 48

#define MQIA_FIRST 1
#define MQIA_LAST 2000
#define MQCA_FIRST 2001
#define MQCA_LAST 4000

#define MQTYPE_AS_SET 0x00000000
#define MQTYPE_NULL 0x00000002
#define MQTYPE_BOOLEAN 0x00000004
#define MQTYPE_BYTE_STRING 0x00000008
#define MQTYPE_INT8 0x00000010
#define MQTYPE_INT16 0x00000020
#define MQTYPE_INT32 0x00000040
#define MQTYPE_INT64 0x00000080
#define MQTYPE_FLOAT32 0x00000100
#define MQTYPE_FLOAT64 0x00000200
#define MQTYPE_STRING 0x00000400

/* ---- structures ---------------------------------------------------------------------------------------------------- */

typedef struct {
    MQPTR VSPtr;
    MQLONG VSOffset, VSBufSize, VSLength, VSCCSID;
} MQCHARV, *PMQCHARV;
#define MQCHARV_DEFAULT 0, 0, 0, 0, MQCCSI_APPL

/* 364 bytes; version 1 is the first 324. */
typedef struct {
    MQCHAR StrucId[4];
    MQLONG Version, Report, MsgType, Expiry, Feedback, Encoding, CodedCharSetId;
    MQCHAR Format[8];
    MQLONG Priority, Persistence;
    MQBYTE MsgId[24], CorrelId[24];
    MQLONG BackoutCount;
    MQCHAR ReplyToQ[48], ReplyToQMgr[48], UserIdentifier[12];
    MQBYTE AccountingToken[32];
    MQCHAR ApplIdentityData[32];
    MQLONG PutApplType;
    MQCHAR PutApplName[28], PutDate[8], PutTime[8], ApplOriginData[4];
    MQBYTE GroupId[24];
    MQLONG MsgSeqNumber, Offset, MsgFlags, OriginalLength;
} MQMD, *PMQMD;
#define MQMD_LENGTH_1 324
#define MQMD_LENGTH_2 364

/* 424 bytes. */
typedef struct {
    MQCHAR StrucId[4];
    MQLONG Version, ObjectType;
    MQCHAR ObjectName[48], ObjectQMgrName[48], DynamicQName[48], AlternateUserId[12];
    MQLONG RecsPresent, KnownDestCount, UnknownDestCount, InvalidDestCount, ObjectRecOffset, ResponseRecOffset;
    MQPTR ObjectRecPtr, ResponseRecPtr;
    MQBYTE AlternateSecurityId[40];
    MQCHAR ResolvedQName[48], ResolvedQMgrName[48];
    MQCHARV ObjectString, SelectionString, ResObjectString;
    MQLONG ResolvedType;
} MQOD, *PMQOD;
#define MQOD_LENGTH_1 168
#define MQOD_LENGTH_2 208
#define MQOD_LENGTH_3 344
#define MQOD_LENGTH_4 424
#define MQOD_CURRENT_LENGTH MQOD_LENGTH_4

/* 184 bytes. */
typedef struct {
    MQCHAR StrucId[4];
    MQLONG Version, Options, Timeout;
    MQHOBJ Context;
    MQLONG KnownDestCount, UnknownDestCount, InvalidDestCount;
    MQCHAR ResolvedQName[48], ResolvedQMgrName[48];
    MQLONG RecsPresent, PutMsgRecFields, PutMsgRecOffset, ResponseRecOffset;
    MQPTR PutMsgRecPtr, ResponseRecPtr;
    MQHMSG OriginalMsgHandle, NewMsgHandle;
    MQLONG Action, PubLevel;
} MQPMO, *PMQPMO;
#define MQPMO_LENGTH_1 128
#define MQPMO_LENGTH_2 160
#define MQPMO_LENGTH_3 184
#define MQPMO_CURRENT_LENGTH MQPMO_LENGTH_3

/* 112 bytes. */
typedef struct {
    MQCHAR StrucId[4];
    MQLONG Version, Options, WaitInterval, Signal1, Signal2;
    MQCHAR ResolvedQName[48];
    MQLONG MatchOptions;
    MQCHAR GroupStatus, SegmentStatus, Segmentation, Reserved1;
    MQBYTE MsgToken[16];
    MQLONG ReturnedLength, Reserved2;
    MQHMSG MsgHandle;
} MQGMO, *PMQGMO;
#define MQGMO_LENGTH_1 72
#define MQGMO_LENGTH_2 80
#define MQGMO_LENGTH_3 100
#define MQGMO_LENGTH_4 112

/* 104 bytes. */
typedef struct {
    MQCHAR StrucId[4];
    MQLONG Version, AuthenticationType;
    MQBYTE Reserved1[4];
    MQPTR CSPUserIdPtr;
    MQLONG CSPUserIdOffset, CSPUserIdLength;
    MQBYTE Reserved2[8];
    MQPTR CSPPasswordPtr;
    MQLONG CSPPasswordOffset, CSPPasswordLength;
    MQBYTE Reserved3[8];
    MQPTR InitialKeyPtr;
    MQLONG InitialKeyOffset, InitialKeyLength;
    MQBYTE Reserved4[8];
    MQPTR TokenPtr;
    MQLONG TokenOffset, TokenLength;
} MQCSP, *PMQCSP;
#define MQCSP_DEFAULT \
    {'C', 'S', 'P', ' '}, MQCSP_VERSION_1, MQCSP_AUTH_NONE, {0}, 0, 0, 0, {0}, 0, 0, 0, {0}, 0, 0, 0, {0}, 0, 0, 0

/* 672 bytes. */
typedef struct {
    MQCHAR StrucId[4];
    MQLONG Version;
    MQCHAR KeyRepository[256], CryptoHardware[256];
    MQLONG AuthInfoRecCount, AuthInfoRecOffset;
    MQPTR AuthInfoRecPtr;
    MQLONG KeyResetCount, FipsRequired, EncryptionPolicySuiteB[4], CertificateValPolicy;
    MQCHAR CertificateLabel[64];
    MQPTR KeyRepoPasswordPtr;
    MQLONG KeyRepoPasswordOffset, KeyRepoPasswordLength;
    MQLONG HTTPSCertValidation, HTTPSCertRevocation;
    MQPTR HTTPSKeyStorePtr;
    MQLONG HTTPSKeyStoreOffset, HTTPSKeyStoreLength;
} MQSCO, *PMQSCO;

/* 272 bytes. ClientConnPtr leads to an MQCD, SSLConfigPtr to an MQSCO, SecurityParmsPtr to an MQCSP. */
typedef struct {
    MQCHAR StrucId[4];
    MQLONG Version, Options, ClientConnOffset;
    MQPTR ClientConnPtr;
    MQBYTE ConnTag[128];
    PMQSCO SSLConfigPtr;
    MQLONG SSLConfigOffset;
    MQBYTE ConnectionId[24];
    MQLONG SecurityParmsOffset;
    PMQCSP SecurityParmsPtr;
    PMQCHAR CCDTUrlPtr;
    MQLONG CCDTUrlOffset, CCDTUrlLength;
    MQBYTE Reserved[8];
    MQCHAR ApplName[28];
    MQBYTE Reserved2[4];
    MQPTR BalanceParmsPtr;
    MQLONG BalanceParmsOffset;
    MQBYTE Reserved3[4];
} MQCNO, *PMQCNO;
#define MQCNO_DEFAULT \
    {'C', 'N', 'O', ' '}, MQCNO_VERSION_1, MQCNO_NONE, 0, 0, {0}, 0, 0, {0}, 0, 0, 0, 0, 0, {0}, {0}, {0}, 0, 0, {0}

typedef struct {
    MQCHAR StrucId[4];
    MQLONG Version, Options;
} MQBO, *PMQBO;
#define MQBO_DEFAULT {'B', 'O', ' ', ' '}, MQBO_VERSION_1, 0

/* 344 bytes. */
typedef struct {
    MQCHAR StrucId[4];
    MQLONG Version, Options;
    MQCHAR ObjectName[48], AlternateUserId[12];
    MQBYTE AlternateSecurityId[40];
    MQLONG SubExpiry;
    MQCHARV ObjectString, SubName, SubUserData;
    MQBYTE SubCorrelId[24];
    MQLONG PubPriority;
    MQBYTE PubAccountingToken[32];
    MQCHAR PubApplIdentityData[32];
    MQCHARV SelectionString;
    MQLONG SubLevel;
    MQCHARV ResObjectString;
} MQSD, *PMQSD;

/* 16 bytes. */
typedef struct {
    MQCHAR StrucId[4];
    MQLONG Version, Options, NumPubs;
} MQSRO, *PMQSRO;

/* 12 bytes. */
typedef struct {
    MQCHAR StrucId[4];
    MQLONG Version, Options;
} MQCMHO, *PMQCMHO;

/* 20 bytes. */
typedef struct {
    MQCHAR StrucId[4];
    MQLONG Version, Options, ValueEncoding, ValueCCSID;
} MQSMPO, *PMQSMPO;

/* 64 bytes. */
typedef struct {
    MQCHAR StrucId[4];
    MQLONG Version, Options, RequestedEncoding, RequestedCCSID, ReturnedEncoding, ReturnedCCSID, Reserved1;
    MQCHARV ReturnedName;
    MQCHAR TypeString[8];
} MQIMPO, *PMQIMPO;
#define MQIMPO_DEFAULT \
    {'I', 'M', 'P', 'O'}, MQIMPO_VERSION_1, 0, MQENC_NATIVE, MQCCSI_APPL, MQENC_NATIVE, 0, 0, {MQCHARV_DEFAULT}, {0}

/* 24 bytes. */
typedef struct {
    MQCHAR StrucId[4];
    MQLONG Version, Options, Support, Context, CopyOptions;
} MQPD, *PMQPD;
#define MQPD_DEFAULT {'P', 'D', ' ', ' '}, MQPD_VERSION_1, 0, MQPD_SUPPORT_OPTIONAL, 0, MQCOPY_DEFAULT

/* ---- calls --------------------------------------------------------------------------------------------------------- */

void MQCONN(PMQCHAR queue_manager_name, PMQHCONN hconn, PMQLONG comp_code, PMQLONG reason);
void MQCONNX(PMQCHAR queue_manager_name, PMQCNO options, PMQHCONN hconn, PMQLONG comp_code, PMQLONG reason);
void MQDISC(PMQHCONN hconn, PMQLONG comp_code, PMQLONG reason);
void MQOPEN(MQHCONN hconn, MQPTR descriptor, MQLONG options, PMQHOBJ hobj, PMQLONG comp_code, PMQLONG reason);
void MQCLOSE(MQHCONN hconn, PMQHOBJ hobj, MQLONG options, PMQLONG comp_code, PMQLONG reason);
void MQPUT(MQHCONN hconn, MQHOBJ hobj, MQPTR descriptor, MQPTR options, MQLONG length, MQPTR buffer,
           PMQLONG comp_code, PMQLONG reason);
void MQPUT1(MQHCONN hconn, MQPTR object, MQPTR descriptor, MQPTR options, MQLONG length, MQPTR buffer,
            PMQLONG comp_code, PMQLONG reason);
void MQGET(MQHCONN hconn, MQHOBJ hobj, MQPTR descriptor, MQPTR options, MQLONG length, MQPTR buffer,
           PMQLONG data_length, PMQLONG comp_code, PMQLONG reason);
void MQBEGIN(MQHCONN hconn, MQPTR options, PMQLONG comp_code, PMQLONG reason);
void MQCMIT(MQHCONN hconn, PMQLONG comp_code, PMQLONG reason);
void MQBACK(MQHCONN hconn, PMQLONG comp_code, PMQLONG reason);
void MQINQ(MQHCONN hconn, MQHOBJ hobj, MQLONG selector_count, PMQLONG selectors, MQLONG int_count, PMQLONG ints,
           MQLONG char_length, PMQCHAR chars, PMQLONG comp_code, PMQLONG reason);
void MQSET(MQHCONN hconn, MQHOBJ hobj, MQLONG selector_count, PMQLONG selectors, MQLONG int_count, PMQLONG ints,
           MQLONG char_length, PMQCHAR chars, PMQLONG comp_code, PMQLONG reason);

/* These exist to be linked with, and answer 2298. */
void MQSUB(MQHCONN hconn, MQPTR descriptor, PMQHOBJ hobj, PMQHOBJ hsub, PMQLONG comp_code, PMQLONG reason);
void MQSUBRQ(MQHCONN hconn, MQHOBJ hsub, MQLONG action, MQPTR options, PMQLONG comp_code, PMQLONG reason);
void MQSTAT(MQHCONN hconn, MQLONG type, MQPTR status, PMQLONG comp_code, PMQLONG reason);
void MQCB(MQHCONN hconn, MQLONG operation, MQPTR callback, MQHOBJ hobj, MQPTR descriptor, MQPTR options,
          PMQLONG comp_code, PMQLONG reason);
void MQCTL(MQHCONN hconn, MQLONG operation, MQPTR options, PMQLONG comp_code, PMQLONG reason);
void MQCRTMH(MQHCONN hconn, MQPTR options, PMQHMSG hmsg, PMQLONG comp_code, PMQLONG reason);
void MQDLTMH(MQHCONN hconn, PMQHMSG hmsg, MQPTR options, PMQLONG comp_code, PMQLONG reason);
void MQSETMP(MQHCONN hconn, MQHMSG hmsg, MQPTR options, PMQCHARV name, MQPTR descriptor, MQLONG type, MQLONG length,
             MQPTR value, PMQLONG comp_code, PMQLONG reason);
void MQINQMP(MQHCONN hconn, MQHMSG hmsg, MQPTR options, PMQCHARV name, MQPTR descriptor, PMQLONG type, MQLONG length,
             MQPTR value, PMQLONG data_length, PMQLONG comp_code, PMQLONG reason);
void MQDLTMP(MQHCONN hconn, MQHMSG hmsg, MQPTR options, PMQCHARV name, PMQLONG comp_code, PMQLONG reason);

#endif
