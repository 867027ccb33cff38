// 16-bit floats (IEEE 754 binary16) for weights that are only read.
#pragma once

#include <bit>
#include <cstdint>

namespace sapwood {

// Rounds to nearest, ties to even; beyond the range to infinity.
[[nodiscard]] inline uint16_t to_half(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude >= 0x47800000u) return sign | (magnitude > 0x7F800000u ? 0x7E00u : 0x7C00u);
  if (magnitude < 0x38800000u) {  // below 2^-14: let float addition do the rounding at 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return sign | static_cast<uint16_t>(std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f));
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  return sign | static_cast<uint16_t>((magnitude - 0x38000000u + 0xFFFu + odd) >> 13);
}

[[nodiscard]] inline float from_half(uint16_t half) {
  const float magnitude = std::bit_cast<float>(static_cast<uint32_t>(half & 0x7FFFu) << 13) * 0x1p112f;
  return half & 0x8000u ? -magnitude : magnitude;
}

}  // namespace sapwood
