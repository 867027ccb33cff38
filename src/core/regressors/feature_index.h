// From features to the lines of a bank: a hash map that only grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "threads/gate.h"

namespace sapwood {

// Key: uint32_t for columns, uint64_t for path features (see online_row.h). Lines are greater than 0.
template <class Key>
class FeatureIndex {
 public:
  void prefetch(Key key) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[home(key)]);
  }

  // The line of a feature, or `otherwise`.
  [[nodiscard]] int32_t line_of(Key key, int32_t otherwise) const {
    if (slots_.empty()) return otherwise;
    for (size_t s = home(key);; s = s + 1 == slots_.size() ? 0 : s + 1) {
      const int32_t line = load_shared(slots_[s].line);
      if (line == 0) return otherwise;
      if (slots_[s].key == key) return line;
    }
  }

  // Whether so many features can be added without moving memory: then one thread may add while others look up.
  [[nodiscard]] bool has_room(size_t n) const { return 2 * (size_ + n) <= slots_.size(); }

  // A feature that is not there yet.
  void add(Key key, int32_t line) {
    reserve(size_ + 1);
    place({key, line});
    ++size_;
  }

  // Makes room for so many features in all.
  void reserve(size_t n) {
    if (2 * n <= slots_.size()) return;
    const std::vector<Slot> old = std::move(slots_);
    size_t n_slots = old.empty() ? kFirstSlots : 2 * old.size();
    while (n_slots < 2 * n) n_slots *= 2;
    slots_.assign(n_slots, Slot{0, 0});
    for (const Slot& slot : old) {
      if (slot.line) place(slot);
    }
  }

  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] size_t bytes() const { return slots_.size() * sizeof(Slot); }

 private:
  static constexpr size_t kFirstSlots = 16;

  struct Slot {
    Key key;
    int32_t line;  // 0: empty
  };

  [[nodiscard]] size_t home(Key key) const {
    uint32_t mixed;
    if constexpr (sizeof(Key) == 8) {
      mixed = static_cast<uint32_t>((key * 0x9E3779B97F4A7C15ull) >> 32);
    } else {
      mixed = key * 0x9E3779B1u;
    }
    return (static_cast<uint64_t>(mixed) * slots_.size()) >> 32;
  }
  void place(Slot slot) {
    size_t s = home(slot.key);
    while (slots_[s].line) s = s + 1 == slots_.size() ? 0 : s + 1;
    slots_[s].key = slot.key;
    store_shared(slots_[s].line, slot.line);  // last: who sees it sees the key
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace sapwood
