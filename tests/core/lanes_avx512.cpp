#if defined(__x86_64__)
#define SAPWOOD_ISA avx512
#define SAPWOOD_ISA_NAME "avx512"
#include "lanes_table_impl.h"
#endif
