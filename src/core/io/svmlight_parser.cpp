#include "io/svmlight_parser.h"

#include <algorithm>
#include <string>
#include <utility>

#include "io/parse_error.h"

namespace sapwood::io {
namespace {

std::string beyond(std::int64_t index, std::int64_t n_features) {
  return "feature index " + std::to_string(index) + " is beyond n_features=" + std::to_string(n_features);
}

}  // namespace

SvmlightParser::SvmlightParser(SvmlightOptions options) : options_(options) {}

void SvmlightParser::feed(std::string_view block) {
  lines_.feed(block, [this](Line& line) { read_row(line); });
}

void SvmlightParser::read_row(Line& line) {
  line.skip_blanks();
  if (line.at_end()) return;
  if (options_.multilabel) {
    line.read_labels(data_.labels, max_index + 1);
  } else {
    read_target(line);
  }
  line.skip_blanks();
  line.skip_query_id();
  line.read_features(data_.features);
  check_range(line);
}

void SvmlightParser::read_target(Line& line) {
  const char* const start = line.at();
  data_.targets.push_back(line.read_real("a finite label"));
  if (*line.at() == ',') line.fail(line.at(), "the row has several labels: read the file with multilabel=True");
  if (*line.at() == ':') line.fail(start, "the row has no label: it begins with a feature");
  line.expect_separator("the label");
}

/// The row's indices ascend, so its first and last speak for all.
void SvmlightParser::check_range(const Line& line) {
  const auto& [values, indices, indptr] = data_.features;
  if (indptr[indptr.size() - 2] == indptr.back()) return;
  const std::int64_t first = indices[static_cast<std::size_t>(indptr[indptr.size() - 2])];
  const std::int64_t last = indices.back();
  lowest_ = std::min(lowest_, first);
  highest_ = std::max(highest_, last);
  if (first == 0 && options_.base == IndexBase::one) {
    line.fail(line.find_feature(0, 1), "feature index 0 where indices begin at 1: read the file with zero_based=True");
  }
  if (!options_.n_features) return;
  const std::int64_t n_features = *options_.n_features;
  if (last > n_features || (last == n_features && options_.base == IndexBase::zero)) {
    line.fail(line.find_feature(last, 1), beyond(last, n_features));
  }
  if (last == n_features && !needs_base_one_) {
    needs_base_one_ = {line.number(), line.column(line.find_feature(last, 1))};
  }
}

IndexBase SvmlightParser::settled_base() const {
  if (options_.base != IndexBase::automatic) return options_.base;
  if (lowest_ > 0) return IndexBase::one;
  if (needs_base_one_) {
    throw ParseError(needs_base_one_->line, needs_base_one_->column,
                     beyond(*options_.n_features, *options_.n_features) + ", as the file has a feature 0");
  }
  return IndexBase::zero;
}

SvmlightData SvmlightParser::finish() {
  lines_.finish([this](Line& line) { read_row(line); });
  if (data_.features.indptr.size() == 1) {
    const auto [line, column] = position();
    throw ParseError(line, column, "the file has no rows");
  }
  if (settled_base() == IndexBase::one) {
    for (auto& index : data_.features.indices) --index;
    --highest_;
  }
  const auto& labels = data_.labels.indices;
  data_.n_features = options_.n_features.value_or(std::max<std::int64_t>(highest_, -1) + 1);
  data_.n_labels = labels.empty() ? 0 : *std::max_element(labels.begin(), labels.end()) + std::int64_t{1};
  return std::exchange(data_, {});  // what is left is valid, not moved from
}

}  // namespace sapwood::io
