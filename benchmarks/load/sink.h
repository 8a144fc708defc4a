/* A server that does nothing but answer: it shows what the generator can do where the server costs almost nothing. */
#ifndef SINK_H
#define SINK_H

/* Prints its port as JSON, then serves until it is killed. */
_Noreturn void serve_sink(void);

#endif
