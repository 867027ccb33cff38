#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>

namespace sapwood::io {

/// A number as it is written: (-1)^negative * mantissa * 10^exponent.
struct Decimal {
  std::uint64_t mantissa = 0;  // wrapped around, and not to be used, if there are more than max_digits
  std::int64_t n_digits = 0;
  std::int64_t exponent = 0;
  bool negative = false;
  const char* begin = nullptr;  // after the sign
  const char* end = nullptr;
};

inline constexpr std::int64_t max_digits = 19;         // 10^19 - 1 < 2^64
inline constexpr std::int64_t max_exact_exponent = 22;  // 10^22 is the last power of ten that a double holds
inline constexpr std::array<double, 23> powers_of_ten = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                         1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                         1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

[[nodiscard]] constexpr bool is_digit(char c) noexcept { return static_cast<unsigned char>(c - '0') < 10; }

inline const char* scan_digits(const char* p, std::uint64_t& value) noexcept {
  for (; is_digit(*p); ++p) value = value * 10 + static_cast<std::uint64_t>(*p - '0');
  return p;
}

/// Reads `[eE][+-]digits`; returns nullptr if the digits are missing.
inline const char* scan_exponent(const char* p, std::int64_t& exponent) noexcept {
  constexpr std::int64_t beyond_any_double = 1'000'000'000'000;
  ++p;
  const bool negative = *p == '-';
  if (*p == '-' || *p == '+') ++p;
  if (!is_digit(*p)) return nullptr;
  std::int64_t value = 0;
  for (; is_digit(*p); ++p) {
    if (value < beyond_any_double) value = value * 10 + (*p - '0');
  }
  exponent += negative ? -value : value;
  return p;
}

/// Reads the longest number at p, which some character that is part of no number must end.
/// Without one there, `end` of the result is nullptr.
inline Decimal scan_decimal(const char* p) noexcept {
  Decimal number;
  number.negative = *p == '-';
  if (*p == '-' || *p == '+') ++p;
  number.begin = p;
  p = scan_digits(p, number.mantissa);
  number.n_digits = p - number.begin;
  if (*p == '.') {
    const char* const fraction = ++p;
    p = scan_digits(p, number.mantissa);
    number.exponent = fraction - p;
    number.n_digits += p - fraction;
  }
  if (number.n_digits == 0) return number;
  number.end = *p == 'e' || *p == 'E' ? scan_exponent(p, number.exponent) : p;
  return number;
}

/// The general conversions, correctly rounded; nothing if the number is too large for the type.
[[nodiscard]] std::optional<float> to_float_slowly(const Decimal& number);
[[nodiscard]] std::optional<double> to_double_slowly(const Decimal& number);

[[nodiscard]] inline double scale(double mantissa, std::int64_t exponent) noexcept {
  return exponent < 0 ? mantissa / powers_of_ten[static_cast<std::size_t>(-exponent)]
                      : mantissa * powers_of_ten[static_cast<std::size_t>(exponent)];
}

[[nodiscard]] inline bool has_exact_power(const Decimal& number) noexcept {
  return number.exponent >= -max_exact_exponent && number.exponent <= max_exact_exponent;
}

/// Whether a double that is off by at most two units in the last place rounds to the same normal float as the
/// number it stands for: it must not lie next to the midpoint of two floats, where the low 29 bits are 1 then 0s.
[[nodiscard]] inline bool rounds_safely(double value) noexcept {
  constexpr std::int64_t midpoint = std::int64_t{1} << 28;
  const auto low_bits = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(value) & ((1U << 29) - 1));
  const bool is_normal = value >= std::numeric_limits<float>::min() && value < 1e38;
  return is_normal && (low_bits < midpoint - 4 || low_bits > midpoint + 4);
}

[[nodiscard]] inline std::optional<float> to_float(const Decimal& number) {
  if (number.n_digits <= max_digits && has_exact_power(number)) [[likely]] {
    const double magnitude = scale(static_cast<double>(number.mantissa), number.exponent);
    if (rounds_safely(magnitude) || number.mantissa == 0) [[likely]] {
      return static_cast<float>(number.negative ? -magnitude : magnitude);
    }
  }
  return to_float_slowly(number);
}

[[nodiscard]] inline std::optional<double> to_double(const Decimal& number) {
  if (number.n_digits <= 15 && has_exact_power(number)) {  // both factors exact, so one rounding
    const double magnitude = scale(static_cast<double>(number.mantissa), number.exponent);
    return number.negative ? -magnitude : magnitude;
  }
  return to_double_slowly(number);
}

inline constexpr std::size_t max_number_length = 32;

/// Writes the shortest text that reads back as the same number, at most max_number_length bytes; returns its end.
char* write_number(char* out, float value);
char* write_number(char* out, double value);
char* write_number(char* out, std::int64_t value);

}  // namespace sapwood::io
