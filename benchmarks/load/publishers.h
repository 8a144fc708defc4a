/* Publishers at full window or at a fixed rate, each with a subscriber or without. */
#ifndef PUBLISHERS_H
#define PUBLISHERS_H

#include "task.h"

/* Publishes for the time of the task, waits for the rest, and prints the outcome. Fails on whatever is not exact. */
void publish(const struct task *task);

#endif
