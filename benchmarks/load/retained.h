/* Retained messages: published, one on each topic, and received by a SUBSCRIBE to all of them. */
#ifndef RETAINED_H
#define RETAINED_H

#include "task.h"

/* Publishes them and waits for every PUBACK. */
void retain(const struct task *task);

/* Subscribes, waits until each has come once, and prints when SUBACK and when the messages came. */
void subscribe_to_retained(const struct task *task);

#endif
