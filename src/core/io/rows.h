#pragma once

#include <cstdint>
#include <vector>

namespace sapwood::io {

inline constexpr std::int64_t max_index = (std::int64_t{1} << 31) - 2;  // so that the width is an int32 too

/// Compressed sparse rows: row i is [indptr[i], indptr[i + 1]) of indices and values.
struct FeatureRows {
  std::vector<float> values;
  std::vector<std::int32_t> indices;
  std::vector<std::int64_t> indptr{0};
};

/// The labels of each row, as compressed sparse rows whose values are all one.
struct LabelRows {
  std::vector<std::int32_t> indices;
  std::vector<std::int64_t> indptr{0};
};

}  // namespace sapwood::io
