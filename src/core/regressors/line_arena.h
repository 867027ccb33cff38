// Where all groups of a tree have their lines: memory in large chunks, on huge pages, for blocks of few lines.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "aligned.h"
#include "regressors/kernels.h"

namespace sapwood {

// Blocks have room for a power of two of lines, kMostRoom at most. What one group gives back another takes: nodes come and
// go, and each alone would hold memory in reserve.
class LineArena {
 public:
  static constexpr int kMostRoom = 16;

  LineArena() = default;
  LineArena(const LineArena&) = delete;
  LineArena& operator=(const LineArena&) = delete;

  uint32_t take(int room) {
    auto& given_back = free_[size_class(room)];
    if (given_back.empty()) return take_new(room);
    const uint32_t block = given_back.back();
    given_back.pop_back();
    return block;
  }
  void give_back(uint32_t block, int room) { free_[size_class(room)].push_back(block); }

  // The first line of a block. Blocks never move.
  [[nodiscard]] float* at(uint32_t block) const {
    return chunks_[block >> kLogChunk] + kOnlineLine * static_cast<int64_t>(block & (kChunk - 1));
  }

 private:
  static constexpr int kLogChunk = 14;  // lines: 2 MB
  static constexpr uint32_t kChunk = 1u << kLogChunk;

  [[nodiscard]] static size_t size_class(int room) { return static_cast<size_t>(std::countr_zero(static_cast<unsigned>(room))); }
  uint32_t take_new(int room);

  std::vector<AlignedArray<float>> memory_;
  std::vector<float*> chunks_;
  int64_t taken_ = 0;  // lines
  std::array<std::vector<uint32_t>, 5> free_;  // blocks of 1, 2, 4, 8, 16 lines that were given back
};

}  // namespace sapwood
