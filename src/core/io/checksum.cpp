#include "io/checksum.h"

#include <bit>
#include <cstring>

namespace sapwood {

namespace {

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15u;

// The finaliser of splitmix64.
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// `size` bytes, 8 at most, as a little-endian word.
uint64_t word_at(const std::byte* p, size_t size) {
  static_assert(std::endian::native == std::endian::little, "model files are mapped as they are");
  uint64_t word = 0;
  std::memcpy(&word, p, size);
  return word;
}

}  // namespace

uint64_t checksum(std::span<const std::byte> data) {
  const size_t n_words = data.size() / sizeof(uint64_t);
  uint64_t sum = 0, key = 0;
  for (size_t i = 0; i < n_words; ++i) sum += mix(word_at(data.data() + i * sizeof(uint64_t), sizeof(uint64_t)) ^ (key += kGolden));
  if (const size_t rest = data.size() % sizeof(uint64_t)) {
    sum += mix(word_at(data.data() + n_words * sizeof(uint64_t), rest) ^ (key + kGolden));
  }
  return mix(data.size() ^ sum);
}

}  // namespace sapwood
