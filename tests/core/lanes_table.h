// The operations of lanes.h as plain functions on arrays, one table for each instruction set. Each is compiled with the
// flags of its set in a file of its own, which holds nothing else: inline code of the standard library compiled there
// could be merged into the rest, and would not run on older machines.
#pragma once

#include <cstdint>

struct LanesTable {
  const char* name;
  // in, out: 16 floats each
  void (*exp)(const float* in, float* out);
  void (*log1p_unit)(const float* in, float* out);
  void (*rsqrt)(const float* in, float* out);
  void (*sqrt)(const float* in, float* out);
  void (*round)(const float* in, float* out);
  void (*abs)(const float* in, float* out);
  void (*max)(const float* a, const float* b, float* out);
  void (*min)(const float* a, const float* b, float* out);
  void (*fma)(const float* a, const float* b, const float* c, float* out);
  void (*divide)(const float* a, const float* b, float* out);
  void (*select)(uint16_t mask, const float* yes, const float* no, float* out);
  uint16_t (*greater)(const float* a, const float* b);
  uint16_t (*equal)(const float* a, const float* b);
  void (*expand_half)(const void* packed, uint16_t set, float* out);
  void (*expand_float)(const void* packed, uint16_t set, float* out);
  int (*find_key)(const uint32_t* keys, uint32_t key);
  int (*popcount)(uint16_t x);
};

namespace sapwood {
namespace baseline {
extern const LanesTable kLanesTable;
}
namespace avx2 {
extern const LanesTable kLanesTable;
}
namespace avx512 {
extern const LanesTable kLanesTable;
}
}  // namespace sapwood
