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
  group.mix_lanes(lanes, shares, std::vector<GrowingGroup::Heir>{{5, 0}, {6, 0}});
  const GrowingGroup::Slot after = group.add(5, 0);
  CHECK(after.banks == 3);
  CHECK(group.weights(after, 0)[2] == 6 && group.weights(after, 1)[4] == 2);
  CHECK(group.weights(after, 0)[GrowingGroup::to_squares(after) + 2] == 3 && group.weights(after, 1)[GrowingGroup::to_squares(after) + 4] == 2);
  group.reset_lane(2);
  CHECK(group.weights(after, 0)[2] == 0 && group.bias()[2] == kFirstGroupBias);
}

TEST(a_feature_met_once_has_a_lone_weight) {
  LineArena arena;
  GrowingGroup group(arena);
  const std::array<uint32_t, 2> index{7, 9};
  const std::array<float, 2> value{1, 2};
  const Row<uint32_t> row{index.data(), value.data(), 2};
  std::array<uint16_t, kGroupBanks> right{};
  right[2] = 8;
  std::array<GroupLines, 2> found;
  CHECK(group.find_or_add(row, 1.0f, right.data(), found.data()) == 2);
  CHECK(found[1].room == 0 && found[1].banks == 35 && found[1].value == 2);
  found[1].lines[0] = 5;
  const int64_t alone = group.memory();
  right = {1};
  CHECK(group.find_or_add(row, 1.0f, right.data(), found.data()) == 2);
  CHECK(found[1].room == 2 && found[1].banks == 5 && found[1].lines[kBankLanes + 3] == 5);
  CHECK(group.memory() == alone + 4 * static_cast<int64_t>(kOnlineLine * sizeof(float)));
}

TEST(a_lone_weight_goes_to_its_heir) {
  LineArena arena;
  GrowingGroup group(arena);
  for (uint32_t f = 0; f < 3; ++f) group.put(f, 4, 1.0f + static_cast<float>(f), 2.0f);
  const std::vector<int> lanes{4, 17};
  const std::vector<float> shares{1, 0, 1, 0};
  using Heir = GrowingGroup::Heir;
  group.mix_lanes(lanes, shares, std::vector<Heir>{{0, 1}, {1, Heir::kSeveral}, {2, Heir::kNone}});
  group.each_slot([&](const GrowingGroup::Slot& slot) {
    if (slot.feature == 0) CHECK(slot.is_lone() && slot.lane == 17 && slot.lone[0] == 1);
    if (slot.feature == 1) CHECK(!slot.is_lone() && group.weights(slot, 0)[4] == 2 && group.weights(slot, 1)[1] == 2);
    if (slot.feature == 2) CHECK(slot.is_lone() && slot.lane == 4);
  });
  group.move_lane(17, 5);
  group.each_slot([&](const GrowingGroup::Slot& slot) {
    if (slot.feature == 0) CHECK(slot.is_lone() && slot.lane == 5);
    if (slot.feature == 1) CHECK(group.weights(slot, 0)[5] == 2 && group.weights(slot, 1)[1] == 0);
  });
}
