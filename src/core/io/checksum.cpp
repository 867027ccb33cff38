#include "io/checksum.h"

#include <algorithm>
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

// Both halves of the product of 128 bits.
uint64_t folded_product(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

// Words are taken two by two: the product of a pair, each word first mixed with a key of its place, folds into the sum.
uint64_t checksum(std::span<const std::byte> data) {
  constexpr size_t kPair = 2 * sizeof(uint64_t);
  const size_t n_pairs = data.size() / kPair, rest = data.size() % kPair;
  uint64_t sum = 0, key = kGolden;
  const std::byte* p = data.data();
  for (size_t i = 0; i < n_pairs; ++i, p += kPair, key += kGolden) {
    sum += folded_product(word_at(p, 8) ^ key, word_at(p + 8, 8) ^ ~key);
  }
  if (rest) {
    const size_t low = std::min(rest, sizeof(uint64_t));
    sum += folded_product(word_at(p, low) ^ key, word_at(p + low, rest - low) ^ ~key);
  }
  return mix(data.size() ^ mix(sum));
}

}  // namespace sapwood
