#include "io/row_writer.h"

#include <array>
#include <cmath>
#include <stdexcept>

#include "io/number_text.h"

namespace sapwood::io {
namespace {

constexpr std::size_t block_size = std::size_t{1} << 20;

template <class Number>
void append(std::string& text, Number value) {
  std::array<char, max_number_length> digits;
  text.append(digits.data(), write_number(digits.data(), value));
}

struct Range {
  std::size_t begin;
  std::size_t end;
};

/// Where a row lies, checked: users can build sparse matrices whose parts do not fit together.
Range row_range(std::span<const std::int64_t> indptr, std::int64_t row, std::size_t n_stored) {
  const std::int64_t begin = indptr[static_cast<std::size_t>(row)];
  const std::int64_t end = indptr[static_cast<std::size_t>(row) + 1];
  if (begin < 0 || end < begin || static_cast<std::size_t>(end) > n_stored) {
    throw std::invalid_argument("row " + std::to_string(row) + " of the sparse matrix lies outside its arrays");
  }
  return {static_cast<std::size_t>(begin), static_cast<std::size_t>(end)};
}

void append_target(std::string& text, double target) {
  constexpr double all_integers_exact = 9007199254740992.0;  // 2^53
  if (std::abs(target) <= all_integers_exact && target == std::floor(target)) {
    append(text, static_cast<std::int64_t>(target));
  } else {
    append(text, target);
  }
}

void append_labels(std::string& text, const LabelView& labels, std::int64_t row) {
  const auto [begin, end] = row_range(labels.indptr, row, labels.indices.size());
  for (std::size_t i = begin; i < end; ++i) {
    if (i > begin) text.push_back(',');
    append(text, std::int64_t{labels.indices[i]});
  }
  if (begin == end) text.push_back(' ');  // says that what follows is not a label, also where nothing follows
}

void append_features(std::string& text, const FeatureView& features, std::int64_t row, std::int64_t base) {
  const auto [begin, end] = row_range(features.indptr, row, features.indices.size());
  for (std::size_t i = begin; i < end; ++i) {
    if (text.back() != ' ') text.push_back(' ');
    append(text, features.indices[i] + base);
    text.push_back(':');
    append(text, features.values[i]);
  }
  text.push_back('\n');
}

template <class AppendLabel>
std::int64_t write_block(std::string& text, const FeatureView& features, std::int64_t row, std::int64_t base,
                         AppendLabel&& append_label) {
  const auto n_rows = static_cast<std::int64_t>(features.indptr.size()) - 1;
  if (row < 0 || features.values.size() != features.indices.size()) {
    throw std::invalid_argument("the parts of the sparse matrix do not fit together");
  }
  for (; row < n_rows && text.size() < block_size; ++row) {
    append_label(row);
    append_features(text, features, row, base);
  }
  return row;
}

}  // namespace

std::int64_t write_rows(std::string& text, std::span<const double> targets, const FeatureView& features,
                        std::int64_t row, std::int64_t base) {
  if (targets.size() + 1 != features.indptr.size()) throw std::invalid_argument("one target per row is needed");
  return write_block(text, features, row, base, [&](std::int64_t i) {
    append_target(text, targets[static_cast<std::size_t>(i)]);
  });
}

std::int64_t write_rows(std::string& text, const LabelView& labels, const FeatureView& features, std::int64_t row,
                        std::int64_t base) {
  if (labels.indptr.size() != features.indptr.size()) throw std::invalid_argument("one label row per row is needed");
  return write_block(text, features, row, base, [&](std::int64_t i) { append_labels(text, labels, i); });
}

}  // namespace sapwood::io
