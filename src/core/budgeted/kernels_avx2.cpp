#if defined(__x86_64__)
#define SAPWOOD_ISA avx2
#define SAPWOOD_ISA_NAME "avx2"
#include "budgeted/kernels_impl.h"
#endif
