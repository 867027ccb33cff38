#define SAPWOOD_ISA baseline
#define SAPWOOD_ISA_NAME "baseline"
#include "lanes_table_impl.h"
