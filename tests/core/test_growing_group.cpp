#include "regressors/growing_group.h"

#include <map>
#include <random>
#include <vector>

#include "check.h"

using namespace sapwood;

namespace {

using Line = std::pair<uint32_t, int>;  // feature, bank

// A group whose lines hold their own number, beside a map that says the same.
struct Numbered {
  LineArena arena;
  GrowingGroup group{arena};
  std::map<Line, float> expected;

  void add(uint32_t feature, uint16_t banks) {
    const GrowingGroup::Slot slot = group.add(feature, banks);
    for (int b = 0; b < kGroupBanks; ++b) {
      if (!(banks >> b & 1) || expected.count({feature, b})) continue;
      const auto number = static_cast<float>(expected.size() + 1);
      expected[{feature, b}] = number;
      group.weights(slot, b)[3] = number;
      group.weights(slot, b)[GrowingGroup::to_squares(slot) + 3] = 2 * number;
    }
  }

  void check() const {
    size_t lines = 0;
    for (const GrowingGroup::Slot& slot : group.slots()) {
      if (!slot.room) continue;
      for (int b = 0; b < kGroupBanks; ++b) {
        if (!(slot.banks >> b & 1)) continue;
        const float number = expected.at({slot.feature, b});
        CHECK(group.weights(slot, b)[3] == number);
        CHECK(group.weights(slot, b)[GrowingGroup::to_squares(slot) + 3] == 2 * number);
        CHECK(group.weights(slot, b)[4] == 0);
        ++lines;
      }
    }
    CHECK(lines == expected.size());
  }
};

}  // namespace

TEST(a_growing_group_keeps_its_lines) {
  std::mt19937 random(1);
  Numbered numbered;
  for (int i = 0; i < 5000; ++i) {
    numbered.add(random() % 300 * 7919, static_cast<uint16_t>(1u << random() % 16 | 1u << random() % 16));
  }
  numbered.check();
}

TEST(a_growing_group_drops_its_smallest_lines) {
  Numbered numbered;
  for (uint32_t f = 0; f < 200; ++f) numbered.add(f, static_cast<uint16_t>(1u << f % 16 | 1u << f % 7));
  const int64_t before = numbered.group.memory();
  std::vector<float> largest;
  numbered.group.largest_weights(largest);
  CHECK(largest.size() == numbered.expected.size());
  CHECK(numbered.group.drop_lines(100.0f) == 99);
  std::erase_if(numbered.expected, [](const auto& line) { return line.second < 100; });
  numbered.check();
  CHECK(numbered.group.memory() < before);
}

TEST(lanes_mix) {
  LineArena arena;
  GrowingGroup group(arena);
  const GrowingGroup::Slot slot = group.add(5, 1);
  group.weights(slot, 0)[2] = 8;
  group.weights(slot, 0)[GrowingGroup::to_squares(slot) + 2] = 3.5f;
  const std::vector<int> lanes{2, 20};
  const std::vector<float> shares{0.75f, 0.25f, 0.25f, 0.75f};
  group.mix_lanes(lanes, shares, std::vector<uint32_t>{5, 6});
  const GrowingGroup::Slot after = group.add(5, 0);
  CHECK(after.banks == 3);
  CHECK(group.weights(after, 0)[2] == 6 && group.weights(after, 1)[4] == 2);
  CHECK(group.weights(after, 0)[GrowingGroup::to_squares(after) + 2] == 3 && group.weights(after, 1)[GrowingGroup::to_squares(after) + 4] == 2);
  group.reset_lane(2);
  CHECK(group.weights(after, 0)[2] == 0 && group.bias()[2] == kFirstGroupBias);
}
