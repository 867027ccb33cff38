#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "check.h"
#include "instruction_sets.h"
#include "regressors/half.h"
#include "regressors/packed_forest.h"

using namespace sapwood;

namespace {

using Sixteen = std::array<float, 16>;

// Calls f with random lanes many times.
template <class F>
void many(float low, float high, F f) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(low, high);
  for (int i = 0; i < 2000; ++i) {
    Sixteen x;
    for (float& lane : x) lane = uniform(random);
    f(x);
  }
}

bool near(double got, double expected, double relative) {
  return std::fabs(got - expected) <= relative * std::fabs(expected) + std::numeric_limits<float>::denorm_min();
}

}  // namespace

TEST(exp_is_right_to_a_few_units) {
  for_each_lanes_table([](const LanesTable& t) {
    many(-86.9f, 87.9f, [&](const Sixteen& x) {
      Sixteen y;
      t.exp(x.data(), y.data());
      for (size_t l = 0; l < 16; ++l) CHECK(near(y[l], std::exp(static_cast<double>(x[l])), 4e-7));
    });
    const float wild = std::numeric_limits<float>::infinity();
    const Sixteen x{0, -0.0f, 1, -1, wild, -wild, 1e30f, -1e30f, 88, 89, -87, -88, -200, 200, 1e-30f, std::nanf("")};
    Sixteen y;
    t.exp(x.data(), y.data());
    for (const float lane : y) CHECK(std::isnormal(lane) && lane > 0);
    CHECK(y[0] == 1 && y[1] == 1);
    CHECK(y[4] == y[8] && y[6] == y[8] && y[9] == y[8]);
    CHECK(y[5] == y[10] && y[7] == y[10] && y[11] == y[10]);
  });
}

TEST(log1p_on_the_unit_interval) {
  for_each_lanes_table([](const LanesTable& t) {
    many(0.0f, 1.0f, [&](const Sixteen& x) {
      Sixteen y;
      t.log1p_unit(x.data(), y.data());
      for (size_t l = 0; l < 16; ++l) CHECK(near(y[l], std::log1p(static_cast<double>(x[l])), 1e-6));
    });
    const Sixteen x{0, 1, 1e-30f, 1e-38f, 0.5f};
    Sixteen y;
    t.log1p_unit(x.data(), y.data());
    for (size_t l = 0; l < 5; ++l) CHECK(near(y[l], std::log1p(static_cast<double>(x[l])), 1e-6));
  });
}

TEST(plain_arithmetic) {
  for_each_lanes_table([](const LanesTable& t) {
    many(-1000.0f, 1000.0f, [&](const Sixteen& x) {
      Sixteen y, z, out;
      for (size_t l = 0; l < 16; ++l) y[l] = x[(l + 1) % 16];
      for (size_t l = 0; l < 16; ++l) z[l] = l % 3 ? x[(l + 5) % 16] : x[l];
      t.abs(x.data(), out.data());
      for (size_t l = 0; l < 16; ++l) CHECK(out[l] == std::fabs(x[l]));
      t.max(x.data(), y.data(), out.data());
      for (size_t l = 0; l < 16; ++l) CHECK(out[l] == std::fmax(x[l], y[l]));
      t.min(x.data(), y.data(), out.data());
      for (size_t l = 0; l < 16; ++l) CHECK(out[l] == std::fmin(x[l], y[l]));
      t.round(x.data(), out.data());
      for (size_t l = 0; l < 16; ++l) CHECK(out[l] == std::nearbyint(x[l]));
      t.fma(x.data(), y.data(), z.data(), out.data());
      for (size_t l = 0; l < 16; ++l) {
        const double exact = static_cast<double>(x[l]) * y[l] + z[l];
        CHECK(std::fabs(out[l] - exact) <= 2e-7 * (std::fabs(static_cast<double>(x[l]) * y[l]) + std::fabs(exact)));
      }
      t.divide(x.data(), y.data(), out.data());
      for (size_t l = 0; l < 16; ++l) CHECK(out[l] == x[l] / y[l]);
      uint16_t greater = 0, equal = 0;
      for (size_t l = 0; l < 16; ++l) greater |= static_cast<uint16_t>((x[l] > z[l]) << l);
      for (size_t l = 0; l < 16; ++l) equal |= static_cast<uint16_t>((x[l] == z[l]) << l);
      CHECK(t.greater(x.data(), z.data()) == greater);
      CHECK(t.equal(x.data(), z.data()) == equal);
    });
    many(1e-6f, 1e6f, [&](const Sixteen& x) {
      Sixteen out;
      t.sqrt(x.data(), out.data());
      for (size_t l = 0; l < 16; ++l) CHECK(out[l] == std::sqrt(x[l]));
      t.rsqrt(x.data(), out.data());
      for (size_t l = 0; l < 16; ++l) CHECK(near(out[l], 1 / std::sqrt(static_cast<double>(x[l])), 1e-6));
    });
  });
}

TEST(not_a_number_is_neither_greater_nor_equal_and_the_second_operand_stands) {
  for_each_lanes_table([](const LanesTable& t) {
    Sixteen nan, one, out;
    nan.fill(std::nanf(""));
    one.fill(1);
    CHECK(t.greater(nan.data(), one.data()) == 0 && t.greater(one.data(), nan.data()) == 0);
    CHECK(t.equal(nan.data(), nan.data()) == 0);
    t.max(nan.data(), one.data(), out.data());
    CHECK(out == one);
    t.min(nan.data(), one.data(), out.data());
    CHECK(out == one);
  });
}

TEST(select_takes_every_mask) {
  for_each_lanes_table([](const LanesTable& t) {
    Sixteen yes, no, out;
    for (size_t l = 0; l < 16; ++l) yes[l] = static_cast<float>(l), no[l] = -1;
    for (uint32_t mask = 0; mask < 65536; ++mask) {
      t.select(static_cast<uint16_t>(mask), yes.data(), no.data(), out.data());
      for (size_t l = 0; l < 16; ++l) CHECK(out[l] == (mask >> l & 1 ? yes[l] : no[l]));
      CHECK(t.popcount(static_cast<uint16_t>(mask)) == __builtin_popcount(mask));
    }
  });
}

TEST(expand_puts_packed_weights_into_the_set_lanes) {
  for_each_lanes_table([](const LanesTable& t) {
    for (uint32_t set = 0; set < 65536; ++set) {
      const auto n = static_cast<size_t>(__builtin_popcount(set));
      // As long as it may reach and no longer, at an address that is not aligned.
      std::vector<char> halves(kExpandReach + 2), floats(kExpandReach + 2);
      for (size_t i = 0; i < n; ++i) {
        const auto x = static_cast<float>(i + 1) * (i % 2 ? -0.25f : 3.0f);
        const uint16_t half = to_half(x);
        std::memcpy(halves.data() + 2 + 2 * i, &half, 2);
        std::memcpy(floats.data() + 2 + 4 * i, &x, 4);
      }
      Sixteen from_halves, from_floats;
      t.expand_half(halves.data() + 2, static_cast<uint16_t>(set), from_halves.data());
      t.expand_float(floats.data() + 2, static_cast<uint16_t>(set), from_floats.data());
      size_t i = 0;
      for (size_t l = 0; l < 16; ++l) {
        float expected = 0;
        if (set >> l & 1) {
          expected = static_cast<float>(i + 1) * (i % 2 ? -0.25f : 3.0f);
          ++i;
        }
        CHECK(from_halves[l] == expected);
        CHECK(from_floats[l] == expected);
      }
    }
  });
}

TEST(every_finite_half_expands_to_its_value) {
  for_each_lanes_table([](const LanesTable& t) {
    std::array<uint16_t, 32> packed{};
    for (uint32_t h = 0; h < 65536; ++h) {
      if ((h & 0x7FFF) >= 0x7C00) continue;
      packed[0] = static_cast<uint16_t>(h);
      Sixteen out;
      t.expand_half(packed.data(), 1 << 5, out.data());
      CHECK(out[5] == from_half(packed[0]));
      CHECK(out[4] == 0 && out[6] == 0);
    }
  });
}

TEST(find_key_finds_the_slot) {
  for_each_lanes_table([](const LanesTable& t) {
    alignas(64) std::array<uint32_t, 16> keys;
    for (uint32_t i = 0; i < 16; ++i) keys[i] = 1000 * i + 7;
    for (uint32_t i = 0; i < 16; ++i) CHECK(t.find_key(keys.data(), 1000 * i + 7) == static_cast<int>(i));
    CHECK(t.find_key(keys.data(), 8) == -1);
    keys.fill(kNoKey);
    CHECK(t.find_key(keys.data(), 0) == -1);
    keys[15] = 0x80000000u;
    CHECK(t.find_key(keys.data(), 0x80000000u) == 15);
    // numpy aligns its arrays to 16 bytes: a model's index may begin anywhere.
    std::vector<uint32_t> anywhere(33, 5);
    for (size_t shift = 0; shift < 16; ++shift) {
      anywhere[shift + 9] = 6;
      CHECK(t.find_key(anywhere.data() + shift, 6) == 9);
      anywhere[shift + 9] = 5;
    }
  });
}
