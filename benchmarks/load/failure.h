/* The one way in which a run ends early: a sentence on the standard error, and exit code 1. */
#ifndef FAILURE_H
#define FAILURE_H

_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
