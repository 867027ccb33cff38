#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "check.h"
#include "regressors/half.h"

using namespace sapwood;

namespace {

constexpr uint16_t kInfinity = 0x7C00;

// IEEE 754 binary16 by the book.
double value_of(uint16_t half) {
  const int exponent = (half >> 10) & 31, mantissa = half & 1023;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return half & 0x8000 ? -magnitude : magnitude;
}

bool is_finite(uint16_t half) { return (half & 0x7FFF) < kInfinity; }

// The half nearest to x, ties to even, by trying the neighbours of the answer.
bool is_nearest(float x, uint16_t half) {
  const auto magnitude = static_cast<uint16_t>(half & 0x7FFF);
  if (std::signbit(x) != ((half & 0x8000) != 0)) return false;
  const double target = std::fabs(static_cast<double>(x));
  const auto distance = [&](int h) {
    const double value = h >= kInfinity ? 65536.0 : value_of(static_cast<uint16_t>(h));  // where infinity would stand
    return std::fabs(value - target);
  };
  for (const int other : {magnitude - 1, magnitude + 1}) {
    if (other < 0 || other > kInfinity) continue;
    if (distance(other) < distance(magnitude)) return false;
    if (distance(other) == distance(magnitude) && (magnitude & 1)) return false;
  }
  return true;
}

}  // namespace

TEST(every_half_is_read_by_the_book) {
  for (uint32_t h = 0; h < 65536; ++h) {
    const auto half = static_cast<uint16_t>(h);
    if (!is_finite(half)) continue;
    const float x = from_half(half);
    CHECK(x == value_of(half));
    CHECK(std::signbit(x) == ((half & 0x8000) != 0));
  }
}

TEST(every_half_comes_back) {
  for (uint32_t h = 0; h < 65536; ++h) {
    const auto half = static_cast<uint16_t>(h);
    if (is_finite(half)) CHECK(to_half(from_half(half)) == half);
  }
}

TEST(floats_round_to_the_nearest_half) {
  std::mt19937 random(1);
  std::uniform_int_distribution<uint32_t> bits;
  for (int i = 0; i < 300000; ++i) {
    const auto x = std::bit_cast<float>(bits(random));
    if (std::isnan(x)) continue;
    if (std::fabs(x) < 65520.0f) {
      CHECK(is_nearest(x, to_half(x)));
    } else {
      CHECK((to_half(x) & 0x7FFF) == kInfinity);
    }
  }
  // Floats that a half can nearly hold are few among all: meet every exponent, and ties.
  for (uint32_t h = 0; h < kInfinity; ++h) {
    const double low = value_of(static_cast<uint16_t>(h)), high = h + 1 < kInfinity ? value_of(static_cast<uint16_t>(h + 1)) : 65536;
    for (const double share : {0.25, 0.5, 0.75}) {
      const auto x = static_cast<float>(low + share * (high - low));
      const float around[] = {std::nextafter(x, 0.0f), x, std::nextafter(x, 1e9f)};
      for (const float y : around) {
        CHECK(is_nearest(y, to_half(y)));
        CHECK(to_half(-y) == (to_half(y) | 0x8000));
      }
    }
  }
}

TEST(what_no_half_holds) {
  CHECK(to_half(std::numeric_limits<float>::infinity()) == kInfinity);
  CHECK(to_half(-std::numeric_limits<float>::infinity()) == (kInfinity | 0x8000));
  CHECK((to_half(std::numeric_limits<float>::quiet_NaN()) & 0x7FFF) > kInfinity);
  CHECK(to_half(65519.996f) == 0x7BFF);
  CHECK(to_half(65520.0f) == kInfinity);
  CHECK(to_half(0x1p-25f) == 0);
  CHECK(to_half(std::nextafter(0x1p-25f, 1.0f)) == 1);
}
