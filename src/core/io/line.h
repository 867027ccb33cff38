#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/rows.h"

namespace sapwood::io {

[[nodiscard]] constexpr bool is_blank(char c) noexcept { return c == ' ' || c == '\t' || c == '\r'; }

/// One line of a text and how far it has been read. A newline ends it, so scanning needs no bounds.
class Line {
 public:
  /// A comment begins with comment_sign; '\n' if the format has no comments.
  Line(const char* text, std::int64_t number, char comment_sign) noexcept
      : begin_(text), at_(text), number_(number), comment_sign_(comment_sign) {}

  void skip_blanks() noexcept {
    while (is_blank(*at_)) ++at_;
  }
  [[nodiscard]] bool at_end() const noexcept { return is_end(*at_); }
  [[nodiscard]] const char* at() const noexcept { return at_; }

  /// Reads `digits` of at most limit; what names it in an error ("a feature index").
  std::int64_t read_integer(std::int64_t limit, const char* what);
  double read_real(const char* what);
  /// Reads a run of `qid:digits` if it is there.
  void skip_query_id();

  /// Appends the rest of the line, `index:value ...`, as a row with ascending indices.
  void read_features(FeatureRows& rows);
  /// Appends `label,label...`, all below n_labels, as a row of ascending labels without repeats. The row is empty if
  /// a blank, the end or a pair with a colon comes instead.
  void read_labels(LabelRows& rows, std::int64_t n_labels);

  /// Fails unless a blank or the end comes next.
  void expect_separator(const char* after_what) const {
    if (!is_blank(*at_) && !at_end()) [[unlikely]] fail_separator(after_what);
  }
  [[noreturn]] void fail(const char* where, const std::string& message) const;
  /// Fails with "expected what, found" and what is there.
  [[noreturn]] void fail_expecting(const char* where, const char* what) const;
  /// Where the features have the index for the nth time.
  [[nodiscard]] const char* find_feature(std::int64_t index, int nth) const noexcept;
  [[nodiscard]] std::int64_t column(const char* where) const noexcept { return where - begin_ + 1; }
  [[nodiscard]] std::int64_t number() const noexcept { return number_; }

 private:
  [[nodiscard]] bool is_end(char c) const noexcept { return c == '\n' || c == comment_sign_; }
  [[nodiscard]] bool begins_with_pair() const noexcept;
  void read_label_list(LabelRows& rows, std::int64_t n_labels);
  [[noreturn]] void fail_integer(std::int64_t limit, const char* what) const;
  [[noreturn]] void fail_separator(const char* what) const;
  [[noreturn]] void fail_repeated(std::int64_t index) const;
  void sort_features(FeatureRows& rows, std::size_t first) const;

  const char* begin_;
  const char* at_;
  const char* features_ = nullptr;
  std::int64_t number_;
  char comment_sign_;
};

}  // namespace sapwood::io
