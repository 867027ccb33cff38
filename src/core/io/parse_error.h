#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace sapwood::io {

/// What is wrong with a text and where; lines and columns count from 1, columns in bytes.
class ParseError : public std::runtime_error {
 public:
  ParseError(std::int64_t line, std::int64_t column, const std::string& message)
      : std::runtime_error(message), line_(line), column_(column) {}

  [[nodiscard]] std::int64_t line() const noexcept { return line_; }
  [[nodiscard]] std::int64_t column() const noexcept { return column_; }

 private:
  std::int64_t line_;
  std::int64_t column_;
};

}  // namespace sapwood::io
