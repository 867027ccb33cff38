#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "io/line.h"

namespace sapwood::io {

struct Position {
  std::int64_t line;
  std::int64_t column;
};

/// Turns blocks of any size into lines. Only a line that straddles blocks is copied.
class LineReader {
 public:
  explicit LineReader(char comment_sign) noexcept : comment_sign_(comment_sign) {}

  /// Calls on_line(Line&) for each line that the block completes.
  template <class OnLine>
  void feed(std::string_view block, OnLine&& on_line) {
    if (!partial_.empty()) {
      const std::size_t taken = complete_partial(block, on_line);
      block.remove_prefix(taken);
    }
    const std::size_t whole = block.rfind('\n') + 1;  // 0 if there is none
    read_lines(block.substr(0, whole), on_line);
    partial_.append(block.substr(whole));
  }

  /// The last line of a file need not end with a newline.
  template <class OnLine>
  void finish(OnLine&& on_line) {
    if (!partial_.empty()) complete_partial("\n", on_line);
  }

  /// Where the text fed so far ends.
  [[nodiscard]] Position position() const noexcept {
    return {n_lines_ + 1, static_cast<std::int64_t>(partial_.size()) + 1};
  }

 private:
  /// Returns how much of the block belongs to the partial line.
  template <class OnLine>
  std::size_t complete_partial(std::string_view block, OnLine&& on_line) {
    const std::size_t newline = block.find('\n');
    if (newline == block.npos) {
      partial_.append(block);
      return block.size();
    }
    partial_.append(block.substr(0, newline + 1));
    read_lines(partial_, on_line);
    partial_.clear();
    return newline + 1;
  }

  template <class OnLine>
  void read_lines(std::string_view text, OnLine&& on_line) {
    const char* const end = text.data() + text.size();
    for (const char* p = text.data(); p != end;) {
      Line line(p, ++n_lines_, comment_sign_);
      on_line(line);
      const auto rest = static_cast<std::size_t>(end - line.at());
      p = static_cast<const char*>(std::memchr(line.at(), '\n', rest)) + 1;
    }
  }

  std::string partial_;
  std::int64_t n_lines_ = 0;
  char comment_sign_;
};

}  // namespace sapwood::io
