// Rows that are kept until they are learned once more, first in, first out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rows.h"

namespace sapwood {

class RowQueue {
 public:
  // All rows one after the other, as a file holds them; the pointers are one longer than there are rows.
  struct Arrays {
    std::vector<int64_t> indptr{0}, label_indptr{0};
    std::vector<uint32_t> features;
    std::vector<float> values;
    std::vector<int32_t> labels;
    std::vector<float> weight;      // importance of the row
    std::vector<int64_t> learned;  // its number in the stream, ascending
  };

  // Values are multiplied by scale; zeros say nothing and are left out.
  template <class Index>
  void push(Row<Index> row, float scale, std::span<const int32_t> labels, float weight, int64_t learned) {
    for (int64_t k = 0; k < row.count; ++k) {
      if (row.value[k] == 0) continue;
      all_.features.push_back(static_cast<uint32_t>(row.index[k]));
      all_.values.push_back(row.value[k] * scale);
    }
    all_.labels.insert(all_.labels.end(), labels.begin(), labels.end());
    all_.indptr.push_back(static_cast<int64_t>(all_.features.size()));
    all_.label_indptr.push_back(static_cast<int64_t>(all_.labels.size()));
    all_.weight.push_back(weight);
    all_.learned.push_back(learned);
  }

  [[nodiscard]] bool empty() const { return first_ == all_.weight.size(); }
  [[nodiscard]] int64_t entries() const { return all_.indptr.back() - all_.indptr[first_]; }

  // The first in the queue. What is told holds until the next push or pop.
  [[nodiscard]] Row<uint32_t> row() const {
    const int64_t from = all_.indptr[first_];
    return {all_.features.data() + from, all_.values.data() + from, all_.indptr[first_ + 1] - from};
  }
  [[nodiscard]] std::span<const int32_t> labels() const {
    return std::span(all_.labels).subspan(static_cast<size_t>(all_.label_indptr[first_]),
                                          static_cast<size_t>(all_.label_indptr[first_ + 1] - all_.label_indptr[first_]));
  }
  [[nodiscard]] float weight() const { return all_.weight[first_]; }
  [[nodiscard]] int64_t learned() const { return all_.learned[first_]; }

  void pop();

  [[nodiscard]] Arrays arrays() const;
  void restore(Arrays arrays) {
    all_ = std::move(arrays);
    first_ = 0;
  }

 private:
  Arrays all_;
  size_t first_ = 0;  // rows before it are gone; their room is given back when they are half of all
};

}  // namespace sapwood
