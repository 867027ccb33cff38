#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace sapwood::io {

/// Compressed sparse rows that somebody else owns.
struct FeatureView {
  std::span<const float> values;
  std::span<const std::int32_t> indices;
  std::span<const std::int64_t> indptr;
};

struct LabelView {
  std::span<const std::int32_t> indices;
  std::span<const std::int64_t> indptr;
};

/// Appends rows from `row` on to text until it holds block_size bytes; returns the row to go on with.
/// Throws std::invalid_argument if the rows do not lie within the arrays. `base` is added to feature indices.
std::int64_t write_rows(std::string& text, std::span<const double> targets, const FeatureView& features,
                        std::int64_t row, std::int64_t base);
std::int64_t write_rows(std::string& text, const LabelView& labels, const FeatureView& features, std::int64_t row,
                        std::int64_t base);

}  // namespace sapwood::io
