#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <stdexcept>
#include <vector>

#include "check.h"
#include "forests.h"
#include "instruction_sets.h"
#include "regressors/half.h"
#include "regressors/packer.h"

using namespace sapwood;

namespace {

constexpr int64_t kFeatures = 300;

// What a bank is packed from.
struct Dense {
  std::vector<float> weights;      // (features + 1) x 16
  std::vector<int32_t> features;   // of the problem's lines, or empty
  uint16_t lanes;

  [[nodiscard]] float weight(int32_t feature, int lane, float prune) const {
    int64_t line = feature;
    if (!features.empty()) {
      const auto found = std::find(features.begin(), features.end(), feature);
      if (found == features.end()) return 0;
      line = found - features.begin();
    }
    if (!(lanes >> lane & 1) || line >= n_lines()) return 0;
    const float w = weights[static_cast<size_t>(16 * line + lane)];
    return std::fabs(w) >= prune ? w : 0;
  }
  [[nodiscard]] int64_t n_lines() const { return static_cast<int64_t>(weights.size() / 16) - 1; }
};

Dense random_bank(std::mt19937& random, double density, bool renumbered) {
  std::uniform_real_distribution<double> uniform(0, 1);
  std::normal_distribution<float> normal;
  Dense bank{{}, {}, static_cast<uint16_t>(random())};
  if (uniform(random) < 0.2) bank.lanes = 0xFFFF;
  if (renumbered) {
    for (int32_t f = 0; f < kFeatures; ++f) {
      if (uniform(random) < 0.5) bank.features.push_back(f * 1000003 % 2147483646);  // any number that a column may have
    }
    std::shuffle(bank.features.begin(), bank.features.end(), random);
  }
  const int64_t n_lines = renumbered ? static_cast<int64_t>(bank.features.size()) : kFeatures;
  bank.weights.assign(static_cast<size_t>(16 * (n_lines + 1)), 0.0f);
  for (float& w : bank.weights) w = uniform(random) < density ? normal(random) : 0.0f;
  return bank;
}

BankLines pack(const Dense& bank, float prune, bool half) {
  return pack_bank(bank.weights.data(), bank.n_lines(), bank.features, bank.lanes, prune, half);
}

}  // namespace

TEST(what_is_packed_is_found_again) {
  std::mt19937 random(1);
  for (const bool half : {true, false}) {
    for (const bool renumbered : {false, true}) {
      for (const size_t n_banks : {1, 2, 5, 15, 16}) {
        for (const double density : {0.0, 0.02, 0.5, 1.0}) {
          const float prune = 0.3f;
          std::vector<Dense> dense;
          std::vector<BankLines> lines;
          for (size_t b = 0; b < n_banks; ++b) {
            dense.push_back(random_bank(random, b == 3 ? 0.0 : density, renumbered));  // the fourth is empty
            lines.push_back(pack(dense.back(), prune, half));
          }
          ForestArrays arrays = one_node(lines, half);
          const PackedForest forest = view(arrays, 16 * static_cast<int32_t>(n_banks), half);
          check_whole(forest, arrays);
          for (int32_t f = 0; f < kFeatures + 5; ++f) {
            const int32_t feature = renumbered ? static_cast<int32_t>(f * 1000003ll % 2147483646) : f;
            const std::vector<float> got = scores_of(kernels(), forest, 0, {{feature, 1.0f}});
            for (size_t b = 0; b < n_banks; ++b) {
              for (int l = 0; l < 16; ++l) {
                const float weight = dense[b].weight(feature, l, prune);
                const float kept = half ? from_half(to_half(weight)) : weight;
                const float bias = dense[b].weights[static_cast<size_t>(16 * dense[b].n_lines() + l)];
                CHECK(got[16 * b + static_cast<size_t>(l)] == bias + kept);
              }
            }
          }
        }
      }
    }
  }
}

TEST(pruning_keeps_what_is_as_large_as_the_threshold) {
  std::vector<float> weights(32, 0.0f);
  weights[0] = 0.5f, weights[1] = -0.5f, weights[2] = 0.49f, weights[3] = 0.0f;
  weights[4] = std::nanf("");
  CHECK(pack_bank(weights.data(), 1, {}, 0xFFFF, 0.5f, true).lanes == std::vector<uint16_t>{0b011});
  CHECK(pack_bank(weights.data(), 1, {}, 0xFFFF, 0.0f, true).lanes == std::vector<uint16_t>{0b111});
  CHECK(pack_bank(weights.data(), 1, {}, 0b010, 0.5f, true).lanes == std::vector<uint16_t>{0b010});
  CHECK(pack_bank(weights.data(), 1, {}, 0b100, 0.5f, true).lanes.empty());
}

TEST(a_group_without_lines_gives_the_bias) {
  const std::vector<float> weights(16, 2.5f);
  const std::vector<BankLines> lines{pack_bank(weights.data(), 0, {}, 0xFFFF, 0.0f, true)};
  ForestArrays arrays = one_node(lines, true);
  const PackedForest forest = view(arrays, 16, true);
  check_whole(forest, arrays);
  for (const float score : scores_of(kernels(), forest, 0, {{0, 1.0f}, {7, 3.0f}})) CHECK(score == 2.5f);
}

TEST(instruction_sets_score_alike) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  for (const bool half : {true, false}) {
    std::vector<BankLines> lines;
    for (int b = 0; b < 16; ++b) lines.push_back(pack(random_bank(random, 0.3, false), 0.1f, half));
    ForestArrays arrays = one_node(lines, half);
    const PackedForest forest = view(arrays, 256, half);
    for (const int64_t n : {0, 1, 63, 64, 65, 200}) {
      std::vector<std::pair<int32_t, float>> row;
      for (int64_t k = 0; k < n; ++k) row.emplace_back(static_cast<int32_t>(k * 3 / 2), normal(random));
      const std::vector<float> expected = scores_of(baseline::kTable, forest, 0, row);
      for_each_kernels([&](const Kernels& table) {
        const std::vector<float> got = scores_of(table, forest, 0, row);
        for (size_t i = 0; i < got.size(); ++i) CHECK(std::fabs(got[i] - expected[i]) < 1e-4f);
        const std::vector<float> wide = scores_of<int64_t>(table, forest, 0, row);
        CHECK(wide == got);
      });
    }
  }
}

TEST(the_check_sees_every_way_out_of_the_arrays) {
  std::mt19937 random(3);
  std::vector<BankLines> lines;
  for (int b = 0; b < 3; ++b) lines.push_back(pack(random_bank(random, 0.3, false), 0.1f, true));
  const ForestArrays sound = one_node(lines, true);
  const auto refuses = [&](const std::function<void(ForestArrays&, PackedForest&)>& spoil) {
    ForestArrays arrays = sound;
    PackedForest forest = view(arrays, 48, true);
    spoil(arrays, forest);
    CHECK_THROWS(check_whole(forest, arrays), std::invalid_argument);
  };
  {
    ForestArrays arrays = sound;
    check_whole(view(arrays, 48, true), arrays);
  }
  refuses([](auto& a, auto&) { a.roots[0] = 1; });
  refuses([](auto& a, auto&) { a.roots[0] = -1; });
  refuses([](auto& a, auto&) { a.node_groups[0] = 1; });
  refuses([](auto& a, auto&) { a.node_groups[1] = 2; });
  refuses([](auto& a, auto&) { a.node_labels[0] = 0; });
  refuses([](auto& a, auto&) { a.node_labels[0] = 49; });
  refuses([](auto& a, auto&) { a.group_banks[1] = 4; });
  refuses([](auto& a, auto&) { a.group_buckets[1] += 1; });
  refuses([](auto& a, auto&) { a.group_pool[1] += 1; });
  refuses([](auto& a, auto&) { a.group_pool[0] = -1; });
  refuses([](auto& a, auto&) { a.targets[0] = ~48; });
  refuses([](auto& a, auto&) { a.targets[0] = 0; });
  refuses([](auto& a, auto&) { a.targets[5] = kNoTarget; });
  refuses([](auto& a, auto&) { a.targets[5] = 7; });
  refuses([](auto& a, auto&) { a.lines[static_cast<size_t>(std::find_if(a.keys.begin(), a.keys.end(), [](uint32_t k) { return k != kNoKey; }) - a.keys.begin())] = ~0u; });
  refuses([](auto& a, auto&) { a.pool[0] = 0xFFFF; });                     // names banks that are not there
  refuses([](auto& a, auto&) { std::fill(a.pool.begin(), a.pool.end(), uint16_t{7}); a.pool[a.pool.size() - 34] = 0xFFFF; std::fill(a.lines.begin(), a.lines.end(), static_cast<uint32_t>(a.pool.size() - 35)); });
  refuses([](auto&, auto& f) { f.n_trees = 0; });
  refuses([](auto&, auto& f) { f.n_labels = 0; });
}

TEST(weights_beyond_a_half_stay_finite) {
  std::vector<float> weights(32, 0.0f);
  weights[0] = 1e30f, weights[1] = -1e30f, weights[2] = 65519.0f;
  const BankLines lines = pack_bank(weights.data(), 1, {}, 0xFFFF, 0.0f, true);
  CHECK((lines.weights == std::vector<uint16_t>{0x7BFF, 0xFBFF, 0x7BFF}));
}
