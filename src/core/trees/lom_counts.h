// What a node of a LOMtree knows of each label: an open-addressing map from label to four sums of importance weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "threads/gate.h"

namespace sapwood {

struct LomCount {
  int32_t label = -1;  // -1: an empty slot
  double l = 0;           // weight that came to the node
  double n = 0;           // weight that trained its router
  double m = 0;           // sum of scores
  double sent_right = 0;  // weight that the router sent right
};

class LomCounts {
 public:
  // The label's sums, made if they are not there. Valid until the next call.
  LomCount& of(int32_t label) {
    if (4 * (size_ + 1) > 3 * slots_.size()) grow();
    LomCount& slot = slots_[find(label)];
    if (slot.label < 0) {
      slot.label = label;
      ++size_;
    }
    return slot;
  }

  // Also while another thread adds labels: where the map is just growing this asks for what nobody needs, no more.
  void prefetch(int32_t label) const {
    const size_t offset = home(label, load_shared(n_slots_)) * sizeof(LomCount);
    __builtin_prefetch(reinterpret_cast<const void*>(load_shared(first_slot_) + offset));
  }

  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] size_t bytes() const { return slots_.capacity() * sizeof(LomCount); }

  // By label.
  [[nodiscard]] std::vector<LomCount> sorted() const;
 private:
  [[nodiscard]] static size_t home(int32_t label, size_t n_slots) {
    return (static_cast<uint64_t>(static_cast<uint32_t>(label) * 0x9E3779B1u) * n_slots) >> 32;
  }
  [[nodiscard]] size_t find(int32_t label) const {
    size_t s = home(label, slots_.size());
    while (slots_[s].label >= 0 && slots_[s].label != label) s = s + 1 == slots_.size() ? 0 : s + 1;
    return s;
  }
  void grow();

  std::vector<LomCount> slots_;
  size_t size_ = 0;
  uintptr_t first_slot_ = 0;  // for prefetch
  size_t n_slots_ = 0;
};

}  // namespace sapwood
