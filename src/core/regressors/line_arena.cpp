#include "regressors/line_arena.h"

namespace sapwood {

// Half of a larger block that nobody uses, or else the next lines of a chunk.
uint32_t LineArena::take_new(int room) {
  for (int larger = 2 * room; larger <= kMostRoom; larger *= 2) {
    if (free_[size_class(larger)].empty()) continue;
    const uint32_t block = take(larger);
    for (int half = larger / 2; half >= room; half /= 2) give_back(block + static_cast<uint32_t>(half), half);
    return block;
  }
  // A block does not lie across its own multiple, and so never across two chunks: what is skipped goes to smaller ones.
  while (taken_ % room != 0) {
    const int part = 1 << std::countr_zero(static_cast<uint64_t>(taken_));
    give_back(static_cast<uint32_t>(taken_), part);
    taken_ += part;
  }
  const auto block = static_cast<uint32_t>(taken_);
  taken_ += room;
  if (taken_ > static_cast<int64_t>(kChunk) * static_cast<int64_t>(chunks_.size())) {
    memory_.emplace_back(size_t{kChunk} * kOnlineLine);
    chunks_.push_back(memory_.back().get());
  }
  return block;
}

}  // namespace sapwood
