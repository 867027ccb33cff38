// In which order labels should stand in banks of 16, so that lists of labels that are asked for together meet few banks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sapwood {

// Labels asked for together, each once, and how often they are.
struct LabelList {
  std::vector<int32_t> labels;
  int64_t times;
};

// All labels of the lists, each once.
[[nodiscard]] std::vector<int32_t> bank_order(std::span<const LabelList> lists);

}  // namespace sapwood
