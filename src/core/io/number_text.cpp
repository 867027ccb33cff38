#include "io/number_text.h"

#include <charconv>
#include <cmath>
#include <type_traits>

#ifndef __cpp_lib_to_chars  // libc++ before 20, and macOS before 13.3, have charconv for integers only
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <string>
#ifdef __APPLE__
#include <xlocale.h>
#else
#include <locale.h>
#endif
#endif

namespace sapwood::io {
namespace {

#ifdef __cpp_lib_to_chars

/// The nearest value to the text; infinity or zero if it is out of range on either side.
template <class Real>
Real nearest(const Decimal& number, bool is_large) {
  Real value = 0;
  const auto [end, error] = std::from_chars(number.begin, number.end, value);
  if (error == std::errc::result_out_of_range) return is_large ? std::numeric_limits<Real>::infinity() : Real{0};
  return value;
}

template <class Real>
char* write_shortest(char* out, Real value) {
  return std::to_chars(out, out + max_number_length, value).ptr;
}

#else

locale_t c_locale() {
  static const locale_t locale = newlocale(LC_ALL_MASK, "C", nullptr);
  return locale;
}

template <class Real>
Real parse_in_c_locale(const char* text) {
  if constexpr (std::is_same_v<Real, float>) return strtof_l(text, nullptr, c_locale());
  return static_cast<Real>(strtod_l(text, nullptr, c_locale()));
}

template <class Real>
Real nearest(const Decimal& number, bool /*is_large*/) {
  return parse_in_c_locale<Real>(std::string(number.begin, number.end).c_str());
}

template <class Real>
char* write_shortest(char* out, Real value) {
  const locale_t caller = uselocale(c_locale());
  int length = 0;
  for (int precision = 1; precision <= std::numeric_limits<Real>::max_digits10; ++precision) {
    length = std::snprintf(out, max_number_length, "%.*g", precision, static_cast<double>(value));
    if (parse_in_c_locale<Real>(out) == value) break;
  }
  uselocale(caller);
  return out + length;
}

#endif

/// Whether the number is 1 or more. Zeros may lead, so the mantissa's first digit that counts must be found.
bool is_large(const Decimal& number) {
  std::int64_t power = number.exponent + number.n_digits;
  for (const char* p = number.begin; p != number.end && (*p == '0' || *p == '.'); ++p) power -= *p == '0';
  return power > 0;
}

template <class Real>
std::optional<Real> convert(const Decimal& number) {
  const Real magnitude = nearest<Real>(number, is_large(number));
  if (std::isinf(magnitude)) return std::nullopt;
  return number.negative ? -magnitude : magnitude;
}

}  // namespace

std::optional<float> to_float_slowly(const Decimal& number) { return convert<float>(number); }
std::optional<double> to_double_slowly(const Decimal& number) { return convert<double>(number); }

char* write_number(char* out, float value) { return write_shortest(out, value); }
char* write_number(char* out, double value) { return write_shortest(out, value); }
char* write_number(char* out, std::int64_t value) {
  return std::to_chars(out, out + max_number_length, value).ptr;
}

}  // namespace sapwood::io
