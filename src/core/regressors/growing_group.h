// Up to 16 banks that learn online and share one index of features: what a node with many children holds.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "aligned.h"
#include "regressors/kernels.h"
#include "regressors/line_arena.h"

namespace sapwood {

// Bit l: the weight of lane l of a line is such. No jumps: they would be unforeseeable.
template <class Test>
unsigned lanes_where(const float* line, Test test) {
  unsigned lanes = 0;
  for (int l = 0; l < kBankLanes; ++l) lanes |= static_cast<unsigned>(test(line[l])) << l;
  return lanes;
}

// Most features occur with one lane of a node alone: such a lone weight stands in the index itself. Once a second lane meets
// the feature, banks have a line of it: those whose children it has occurred with. The lines of a feature stand together in a
// block with room for a power of two of them: first the weights, bank after bank, then the squared gradients.
class GrowingGroup {
 public:
  // Weights up to this size are not worth a line of their own.
  static constexpr float kNegligibleWeight = 0.05f;

  struct Slot {
    uint32_t feature;
    uint16_t banks;  // bit b: bank b knows the feature; 0: an empty slot
    uint8_t room;    // lines in the block, or 0: a lone weight
    uint8_t lane;    // whose a lone weight is
    union {
      uint32_t block;  // in the arena
      float lone[2];   // weight, squared gradients
    };

    [[nodiscard]] int lines_before(int bank) const { return std::popcount(static_cast<uint16_t>(banks & ((1u << bank) - 1))); }
    [[nodiscard]] bool is_lone() const { return banks && !room; }
  };
  // A feature, and which of some lanes alone knows it from now on.
  struct Heir {
    static constexpr int kNone = -1, kSeveral = -2;
    uint32_t feature;
    int number;
  };

  using SlotVector = CacheLineVector<Slot>;

  // The arena must outlive the group.
  explicit GrowingGroup(LineArena& arena);
  ~GrowingGroup();
  GrowingGroup(const GrowingGroup&) = delete;
  GrowingGroup& operator=(const GrowingGroup&) = delete;

  // What is known of the features of a row; values are multiplied by scale. Returns how many.
  template <class Index>
  int64_t find(Row<Index> row, float scale, GroupLines* found) const {
    prefetch(row);
    int64_t n = 0;
    for (int64_t k = 0; k < row.count; ++k) {
      if (row.value[k] == 0) continue;
      const Slot& slot = slots_[place_of(static_cast<uint32_t>(row.index[k]))];
      if (slot.banks) found[n++] = lines_of(slot, row.value[k] * scale);
    }
    return n;
  }

  // The same; the lanes that are right (bits, by bank) know every feature of the row afterwards. Holds until the next call.
  template <class Index>
  int64_t find_or_add(Row<Index> row, float scale, const uint16_t* right, GroupLines* found) {
    uint16_t banks = 0;
    int lane = -1;  // if it is one alone
    for (int b = 0; b < kGroupBanks; ++b) {
      if (!right[b]) continue;
      const bool is_only = !banks && std::has_single_bit(right[b]);
      lane = is_only ? kBankLanes * b + std::countr_zero(right[b]) : -1;
      banks |= static_cast<uint16_t>(1u << b);
    }
    prefetch(row);
    make_room(row);
    int64_t n = 0;
    for (int64_t k = 0; k < row.count; ++k) {
      if (row.value[k] == 0) continue;  // a feature that does not occur
      const auto feature = static_cast<uint32_t>(row.index[k]);
      Slot& slot = slots_[place_of(feature)];
      if (banks & ~slot.banks || (banks && !slot.room)) meet(slot, feature, banks, lane);
      if (slot.banks) found[n++] = lines_of(slot, row.value[k] * scale);
    }
    return n;
  }

  // Asks for what a row will need before it does: where its features stand, and, a while later, their lines.
  template <class Index>
  void prefetch(Row<Index> row) const {
    for (int64_t k = 0; k < row.count; ++k) __builtin_prefetch(&slots_[home(static_cast<uint32_t>(row.index[k]))]);
  }
  template <class Index>
  void prefetch_lines(Row<Index> row) const {
    for (int64_t k = 0; k < row.count; ++k) prefetch_lines(slots_[place_of(static_cast<uint32_t>(row.index[k]))]);
  }

  // Makes sure that the banks have a line of the feature.
  const Slot& add(uint32_t feature, uint16_t banks);
  // Sets the weight of a lane.
  void put(uint32_t feature, int lane, float weight, float square);
  // Makes room in the index for so many features. Whoever adds the features of another group in the order of its slots,
  // which is that of their hashes, must do so first: in a smaller index they would all queue up at its beginning.
  void reserve(size_t n_features);
  // Narrows an index that is wider than its features need.
  void fit_index();
  [[nodiscard]] bool knows(uint32_t feature) const { return slots_[place_of(feature)].banks != 0; }

  [[nodiscard]] const SlotVector& slots() const { return slots_; }  // those with banks are in use
  // Calls visit(slot) for those, in their order, while the lines of the next ones are on their way.
  template <class Visit>
  void each_slot(Visit visit) const {
    for (size_t s = 0; s < slots_.size(); ++s) {
      if (s + kSlotsAhead < slots_.size()) prefetch_lines(slots_[s + kSlotsAhead]);
      if (slots_[s].banks) visit(slots_[s]);
    }
  }
  [[nodiscard]] float* weights(const Slot& slot, int bank) const { return arena_.at(slot.block) + kBankLanes * slot.lines_before(bank); }
  // From a line of weights to its squared gradients.
  [[nodiscard]] static int64_t to_squares(const Slot& slot) { return int64_t{kBankLanes} * slot.room; }

  [[nodiscard]] float* bias() { return bias_.data(); }  // banks x kOnlineLine
  [[nodiscard]] const float* bias() const { return bias_.data(); }

  // A lane that has learned nothing: scores begin below the margin, where most children of a node stay.
  void reset_lane(int lane);
  // Moves what a lane knows to another, and resets it.
  void move_lane(int from, int to);
  // Every lane becomes a mixture of all in what it knows of the features: of lane lanes[j] lane lanes[i] takes the share
  // shares[i * lanes + j]. A lone weight goes to the one lane that has the feature now. No line is made for weights that
  // are negligible all.
  void mix_lanes(std::span<const int> lanes, std::span<const float> shares, std::span<const Heir> features);

  // Adds the largest weight by size of each line; drops the lines whose largest is below. Says how many went.
  void largest_weights(std::vector<float>& out) const;
  int64_t drop_lines(float below);

  // Bytes of lines and index. Told by what they hold, not by how they came to lie: a model read from a file says the same.
  [[nodiscard]] int64_t memory() const { return line_bytes_ + static_cast<int64_t>(2 * n_features_ * sizeof(Slot)); }
  [[nodiscard]] int64_t n_features() const { return static_cast<int64_t>(n_features_); }

 private:
  static constexpr size_t kSlotsAhead = 16;  // at least half of them are empty

  [[nodiscard]] size_t home(uint32_t feature) const {
    return (static_cast<uint64_t>(feature * 0x9E3779B1u) * slots_.size()) >> 32;
  }
  // Where the feature is, or the empty slot where it would be.
  [[nodiscard]] size_t place_of(uint32_t feature) const {
    size_t s = home(feature);
    while (slots_[s].banks && slots_[s].feature != feature) s = s + 1 == slots_.size() ? 0 : s + 1;
    return s;
  }
  [[nodiscard]] GroupLines lines_of(const Slot& slot, float value) const {
    if (!slot.room) return {const_cast<float*>(slot.lone), value, slot.lane, 0};
    float* const lines = arena_.at(slot.block);
    for (int i = 0; i < slot.room; ++i) __builtin_prefetch(lines + kBankLanes * i);
    return {lines, value, slot.banks, slot.room};
  }
  void prefetch_lines(const Slot& slot) const {
    if (!slot.room) return;
    const float* const lines = arena_.at(slot.block);
    for (int i = 0; i < 2 * slot.room; ++i) __builtin_prefetch(lines + kBankLanes * i);
  }

  // The index will not have to grow for this row: pointers into it hold.
  template <class Index>
  void make_room(Row<Index> row) {
    if (2 * (n_features_ + static_cast<size_t>(row.count)) <= slots_.size()) return;
    size_t n = n_features_;
    for (int64_t k = 0; k < row.count; ++k) n += !knows(static_cast<uint32_t>(row.index[k]));
    reserve(n);
  }
  [[nodiscard]] size_t slots_that_fit() const;
  void resize_index(size_t n_slots);
  Slot& slot_for(uint32_t feature);
  void meet(Slot& slot, uint32_t feature, uint16_t banks, int lane);
  void set_lone(Slot& slot, int lane, float weight, float square);
  void set_banks(Slot& slot, uint16_t banks);
  void clear(Slot& slot);

  LineArena& arena_;
  SlotVector slots_;
  size_t n_features_ = 0;
  int64_t line_bytes_ = 0;
  CacheLineVector<float> bias_;
};

}  // namespace sapwood
