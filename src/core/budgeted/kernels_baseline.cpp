#define SAPWOOD_ISA baseline
#define SAPWOOD_ISA_NAME "baseline"
#include "budgeted/kernels_impl.h"
