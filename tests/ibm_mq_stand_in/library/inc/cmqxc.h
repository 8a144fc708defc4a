/* The channel definition that a client connects with. Written for this project; see cmqc.h. */
#ifndef STANDIN_CMQXC_H
#define STANDIN_CMQXC_H

#include "cmqc.h"

#define MQCD_VERSION_4 4
#define MQCD_VERSION_6 6
#define MQCD_VERSION_7 7
#define MQCD_VERSION_13 13
#define MQ_CONN_NAME_LENGTH 264
#define MQ_CHANNEL_NAME_LENGTH 20
#define MQ_SSL_CIPHER_SPEC_LENGTH 32

/* 2,000 bytes. How much of it is there follows from Version (MQCD_LENGTH_*). */
typedef struct {
    MQCHAR ChannelName[20];
    MQLONG Version, ChannelType, TransportType;
    MQCHAR Desc[64], QMgrName[48], XmitQName[48], ShortConnectionName[20], MCAName[20], ModeName[8], TpName[64];
    MQLONG BatchSize, DiscInterval, ShortRetryCount, ShortRetryInterval, LongRetryCount, LongRetryInterval;
    MQCHAR SecurityExit[128], MsgExit[128], SendExit[128], ReceiveExit[128];
    MQLONG SeqNumberWrap, MaxMsgLength, PutAuthority, DataConversion;
    MQCHAR SecurityUserData[32], MsgUserData[32], SendUserData[32], ReceiveUserData[32];
    /* version 2 */
    MQCHAR UserIdentifier[12], Password[12], MCAUserIdentifier[12];
    MQLONG MCAType;
    MQCHAR ConnectionName[264], RemoteUserIdentifier[12], RemotePassword[12];
    /* version 3 */
    MQCHAR MsgRetryExit[128], MsgRetryUserData[32];
    MQLONG MsgRetryCount, MsgRetryInterval;
    /* version 4 */
    MQLONG HeartbeatInterval, BatchInterval, NonPersistentMsgSpeed, StrucLength, ExitNameLength, ExitDataLength;
    MQLONG MsgExitsDefined, SendExitsDefined, ReceiveExitsDefined;
    MQPTR MsgExitPtr, MsgUserDataPtr, SendExitPtr, SendUserDataPtr, ReceiveExitPtr, ReceiveUserDataPtr;
    /* version 5 */
    MQPTR ClusterPtr;
    MQLONG ClustersDefined, NetworkPriority;
    /* version 6 */
    MQLONG LongMCAUserIdLength, LongRemoteUserIdLength;
    MQPTR LongMCAUserIdPtr, LongRemoteUserIdPtr;
    MQBYTE MCASecurityId[40], RemoteSecurityId[40];
    /* version 7 */
    MQCHAR SSLCipherSpec[32];
    MQPTR SSLPeerNamePtr;
    MQLONG SSLPeerNameLength, SSLClientAuth, KeepAliveInterval;
    MQCHAR LocalAddress[48];
    MQLONG BatchHeartbeat;
    /* version 8 */
    MQLONG HdrCompList[2], MsgCompList[16], CLWLChannelRank, CLWLChannelPriority, CLWLChannelWeight;
    MQLONG ChannelMonitoring, ChannelStatistics;
    /* version 9 */
    MQLONG SharingConversations, PropertyControl, MaxInstances, MaxInstancesPerClient, ClientChannelWeight;
    MQLONG ConnectionAffinity;
    /* version 10 */
    MQLONG BatchDataLimit, UseDLQ;
    /* version 11 */
    MQLONG DefReconnect;
    MQCHAR CertificateLabel[64];
    /* version 12 */
    MQLONG SPLProtection;
    /* version 13 */
    MQLONG QuantumSafeAlgorithm, QuantumSafeRequired;
} MQCD, *PMQCD;
#define MQCD_CURRENT_LENGTH 2000

#endif
