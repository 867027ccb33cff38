// SplitMix64 (Steele, Lea, Flood 2014): small, seedable anywhere, the same on every machine.
#pragma once

#include <cstdint>

#ifdef SAPWOOD_ISA  // a copy for each instruction set, see regressors/lanes.h
namespace sapwood::SAPWOOD_ISA {
#else
namespace sapwood {
#endif

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }

  [[nodiscard]] uint64_t state() const { return state_; }

  // In [0, 1): the upper 53 bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  // A whole number in [0, n), n > 0 (Lemire's multiplication, its tiny bias accepted).
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(((next() >> 32) * n) >> 32); }

 private:
  uint64_t state_;
};

}  // namespace sapwood
