/* Programmable commands: the two numbers that pymqi's C module names. Written for this project; see cmqc.h. */
#ifndef STANDIN_CMQCFC_H
#define STANDIN_CMQCFC_H

#define MQRCCF_COMMAND_FAILED 3008
#define MQIACF_Q_ATTRS 1002

#endif
