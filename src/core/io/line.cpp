#include "io/line.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

#include "io/number_text.h"
#include "io/parse_error.h"

namespace sapwood::io {
namespace {

constexpr std::size_t max_shown = 24;

[[nodiscard]] bool is_printable(char c) { return c > ' ' && c <= '~'; }

/// What a reader of the file sees at p, for an error message.
std::string describe(const char* p) {
  if (*p == '\n') return "the end of the line";
  if (is_blank(*p)) return "a blank";
  if (!is_printable(*p)) {
    std::array<char, 16> text{};
    std::snprintf(text.data(), text.size(), "byte 0x%02X", static_cast<unsigned>(static_cast<unsigned char>(*p)));
    return text.data();
  }
  const char* end = p;
  while (is_printable(*end) && static_cast<std::size_t>(end - p) < max_shown) ++end;
  return "'" + std::string(p, end) + (is_printable(*end) ? "...'" : "'");
}

}  // namespace

void Line::fail(const char* where, const std::string& message) const {
  throw ParseError(number_, column(where), message);
}

void Line::fail_expecting(const char* where, const char* what) const {
  fail(where, std::string("expected ") + what + ", found " + describe(where));
}

void Line::fail_integer(std::int64_t limit, const char* what) const {
  if (!is_digit(*at_)) fail_expecting(at_, what);
  fail_expecting(at_, (std::string(what) + " of at most " + std::to_string(limit)).c_str());
}

void Line::fail_separator(const char* what) const {
  fail_expecting(at_, (std::string("a blank after ") + what).c_str());
}

std::int64_t Line::read_integer(std::int64_t limit, const char* what) {
  const char* const start = at_;
  std::uint64_t value = 0;
  const char* const end = scan_digits(start, value);
  const bool is_in_range = end - start <= max_digits && value <= static_cast<std::uint64_t>(limit);
  if (end == start || !is_in_range) [[unlikely]] fail_integer(limit, what);
  at_ = end;
  return static_cast<std::int64_t>(value);
}

double Line::read_real(const char* what) {
  const Decimal number = scan_decimal(at_);
  if (number.end == nullptr) fail_expecting(at_, what);
  const auto value = to_double(number);
  if (!value) fail_expecting(at_, (std::string(what) + " within the range of a float64").c_str());
  at_ = number.end;
  return *value;
}

void Line::skip_query_id() {
  if (std::strncmp(at_, "qid:", 4) != 0) return;
  at_ += 4;
  if (*at_ == '-') ++at_;
  read_integer(std::numeric_limits<std::int64_t>::max(), "a query id");
  expect_separator("the query id");
}

void Line::read_features(FeatureRows& rows) {
  const std::size_t first = rows.indices.size();
  std::int64_t previous = -1;
  bool is_ascending = true;
  features_ = at_;
  for (skip_blanks(); !at_end(); skip_blanks()) {
    const std::int64_t index = read_integer(max_index, "a non-negative feature index");
    if (*at_ != ':') [[unlikely]] fail_expecting(at_, "':' after a feature index");
    const Decimal number = scan_decimal(++at_);
    if (number.end == nullptr) [[unlikely]] fail_expecting(at_, "a finite number");
    const auto value = to_float(number);
    if (!value) [[unlikely]] fail_expecting(at_, "a number within the range of a float32");
    at_ = number.end;
    expect_separator("the value");
    is_ascending &= index > previous;
    previous = index;
    rows.indices.push_back(static_cast<std::int32_t>(index));
    rows.values.push_back(*value);
  }
  if (!is_ascending) sort_features(rows, first);
  rows.indptr.push_back(static_cast<std::int64_t>(rows.indices.size()));
}

void Line::sort_features(FeatureRows& rows, std::size_t first) const {
  std::vector<std::pair<std::int32_t, float>> row;
  row.reserve(rows.indices.size() - first);
  for (std::size_t i = first; i < rows.indices.size(); ++i) row.emplace_back(rows.indices[i], rows.values[i]);
  std::sort(row.begin(), row.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i > 0 && row[i].first == row[i - 1].first) fail_repeated(row[i].first);
    rows.indices[first + i] = row[i].first;
    rows.values[first + i] = row[i].second;
  }
}

void Line::fail_repeated(std::int64_t index) const {
  fail(find_feature(index, 2), "feature index " + std::to_string(index) + " appears twice in the row");
}

const char* Line::find_feature(std::int64_t index, int nth) const noexcept {
  for (const char* p = features_; !is_end(*p);) {
    while (is_blank(*p)) ++p;
    std::uint64_t value = 0;
    const char* const start = p;
    p = scan_digits(p, value);
    if (p != start && value == static_cast<std::uint64_t>(index) && --nth == 0) return start;
    while (!is_blank(*p) && !is_end(*p)) ++p;
  }
  return features_;
}

bool Line::begins_with_pair() const noexcept {
  const char* p = at_;
  while (!is_blank(*p) && !is_end(*p) && *p != ':' && *p != ',') ++p;
  return *p == ':';
}

void Line::read_labels(LabelRows& rows, std::int64_t n_labels) {
  const auto first = static_cast<std::ptrdiff_t>(rows.indices.size());
  if (!is_blank(*at_) && !at_end() && !begins_with_pair()) read_label_list(rows, n_labels);
  const auto row = rows.indices.begin() + first;
  if (std::adjacent_find(row, rows.indices.end(), std::greater_equal<>()) != rows.indices.end()) {
    std::sort(row, rows.indices.end());
    rows.indices.erase(std::unique(row, rows.indices.end()), rows.indices.end());
  }
  rows.indptr.push_back(static_cast<std::int64_t>(rows.indices.size()));
}

void Line::read_label_list(LabelRows& rows, std::int64_t n_labels) {
  for (;; ++at_) {
    const char* const start = at_;
    const std::int64_t label = read_integer(max_index, "a non-negative label");
    if (label >= n_labels) {
      fail(start, "label " + std::to_string(label) + " is beyond the " + std::to_string(n_labels) +
                      " labels of the header");
    }
    rows.indices.push_back(static_cast<std::int32_t>(label));
    if (*at_ != ',') break;
  }
  expect_separator("the labels");
}

}  // namespace sapwood::io
