#if defined(__x86_64__)
#define SAPWOOD_ISA avx512
#define SAPWOOD_ISA_NAME "avx512"
#include "budgeted/kernels_impl.h"
#endif
