// A bank that learns online: a hash from feature to a line of 16 weights and their 16 squared gradients.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "aligned.h"
#include "regressors/kernels.h"

namespace sapwood {

class GrowingBank {
 public:
  GrowingBank();

  // found[k]: the line of feature k of the row, or -1.
  template <class Index>
  void find(Row<Index> row, int32_t* found) const {
    for (int64_t k = 0; k < row.count; ++k) __builtin_prefetch(&slots_[home(static_cast<uint32_t>(row.index[k]))]);
    for (int64_t k = 0; k < row.count; ++k) {
      found[k] = line_of(static_cast<uint32_t>(row.index[k]));
      if (found[k] >= 0) __builtin_prefetch(line(found[k]));
    }
  }

  // The same, and lines that are not there are made.
  template <class Index>
  void find_or_add(Row<Index> row, int32_t* found) {
    for (int64_t k = 0; k < row.count; ++k) {
      const auto feature = static_cast<uint32_t>(row.index[k]);
      found[k] = line_of(feature);
      if (found[k] < 0) found[k] = add(feature);
    }
  }

  // Sets one lane of a line, which is made if it is not there; for what was learned elsewhere.
  void set(uint32_t feature, int lane, float weight, float square);
  void set_bias(int lane, float weight, float square);

  [[nodiscard]] float* lines() { return lines_.get(); }
  [[nodiscard]] const float* lines() const { return lines_.get(); }
  [[nodiscard]] int64_t n_lines() const { return n_lines_; }

  // The features of lines 1 and on; line 0 is the bias.
  [[nodiscard]] const std::vector<uint32_t>& features() const { return features_; }

  // Takes back what lines() and features() gave; false if a feature stands twice.
  [[nodiscard]] bool restore(std::span<const uint32_t> features, const float* lines);

 private:
  struct Slot {
    uint32_t feature;
    int32_t line;  // 0: an empty slot (line 0 is the bias, which no feature has)
  };

  [[nodiscard]] size_t home(uint32_t feature) const {
    return (static_cast<uint64_t>(feature * 0x9E3779B1u) * slots_.size()) >> 32;
  }
  [[nodiscard]] int32_t line_of(uint32_t feature) const {
    for (size_t s = home(feature); slots_[s].line; s = s + 1 == slots_.size() ? 0 : s + 1) {
      if (slots_[s].feature == feature) return slots_[s].line;
    }
    return -1;
  }
  [[nodiscard]] const float* line(int32_t i) const { return lines_.get() + kOnlineLine * i; }
  int32_t add(uint32_t feature);
  void place(uint32_t feature, int32_t line);
  void reserve(int64_t n_lines);

  std::vector<Slot> slots_;
  std::vector<uint32_t> features_;
  AlignedArray<float> lines_;
  int64_t n_lines_ = 0;
  int64_t room_ = 0;
};

}  // namespace sapwood
