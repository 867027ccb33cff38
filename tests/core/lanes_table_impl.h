// Included by lanes_*.cpp, each of which defines SAPWOOD_ISA.
#include "lanes_table.h"
#include "regressors/lanes.h"

namespace sapwood::SAPWOOD_ISA {

extern const LanesTable kLanesTable;
const LanesTable kLanesTable = {
    SAPWOOD_ISA_NAME,
    [](const float* in, float* out) { store(out, exp(load(in))); },
    [](const float* in, float* out) { store(out, log1p_unit(load(in))); },
    [](const float* in, float* out) { store(out, rsqrt(load(in))); },
    [](const float* in, float* out) { store(out, sqrt(load(in))); },
    [](const float* in, float* out) { store(out, round(load(in))); },
    [](const float* in, float* out) { store(out, abs(load(in))); },
    [](const float* a, const float* b, float* out) { store(out, max(load(a), load(b))); },
    [](const float* a, const float* b, float* out) { store(out, min(load(a), load(b))); },
    [](const float* a, const float* b, const float* c, float* out) { store(out, fma(load(a), load(b), load(c))); },
    [](const float* a, const float* b, float* out) { store(out, load(a) / load(b)); },
    [](uint16_t mask, const float* yes, const float* no, float* out) {
      store(out, select(mask_from_bits(mask), load(yes), load(no)));
    },
    [](const float* a, const float* b) { return bits(load(a) > load(b)); },
    [](const float* a, const float* b) { return bits(load(a) == load(b)); },
    [](const void* packed, uint16_t set, float* out) {
      store(out, zero());
      add_expanded_half(out, packed, set, 1.0f);
    },
    [](const void* packed, uint16_t set, float* out) {
      store(out, zero());
      add_expanded_float(out, packed, set, 1.0f);
    },
    [](const uint32_t* keys, uint32_t key) { return find_key(keys, key); },
    [](uint16_t x) { return popcount(x); },
};

}  // namespace sapwood::SAPWOOD_ISA
