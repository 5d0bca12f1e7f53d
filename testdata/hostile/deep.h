/* How many frames a thread stays in. */
#define DEPTH 100

typedef unsigned long deep_function(int depth, volatile int *stop);
