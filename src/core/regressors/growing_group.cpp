#include "regressors/growing_group.h"

#include <algorithm>
#include <cmath>

namespace sapwood {

namespace {

constexpr size_t kFirstSlots = 16;
constexpr int64_t kLineBytes = kOnlineLine * sizeof(float);

float largest(const float* line) {
  float most = 0;
  for (int l = 0; l < kBankLanes; ++l) most = std::max(most, std::abs(line[l]));
  return most;
}

}  // namespace

GrowingGroup::GrowingGroup() : slots_(kFirstSlots, Slot{0, 0, 0, 0}), bias_(kGroupBanks * kOnlineLine) {
  for (int lane = 0; lane < kGroupBanks * kBankLanes; ++lane) reset_lane(lane);
}

int32_t GrowingGroup::take_block(int room) {
  auto& given_back = free_[static_cast<size_t>(std::countr_zero(static_cast<unsigned>(room)))];
  if (!given_back.empty()) {
    const int32_t block = given_back.back();
    given_back.pop_back();
    return block;
  }
  if (pool_lines_ + room > pool_room_) {
    pool_room_ = std::max(pool_lines_ + room, pool_room_ + pool_room_ / 2 + 8);
    AlignedArray<float> pool(static_cast<size_t>(pool_room_ * kOnlineLine));
    std::copy_n(pool_.get(), pool_lines_ * kOnlineLine, pool.get());
    pool_ = std::move(pool);
  }
  const auto block = static_cast<int32_t>(pool_lines_);
  pool_lines_ += room;
  return block;
}

void GrowingGroup::widen_index() {
  std::vector<Slot> old(2 * slots_.size(), Slot{0, 0, 0, 0});
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.room) slots_[place_of(slot.feature)] = slot;
  }
}

const GrowingGroup::Slot& GrowingGroup::add(uint32_t feature, uint16_t banks) {
  size_t s = place_of(feature);
  if (!slots_[s].room) {
    if (2 * (n_features_ + 1) > slots_.size()) {
      widen_index();
      s = place_of(feature);
    }
    ++n_features_;
  }
  const Slot old = slots_[s];
  Slot slot{feature, 0, static_cast<uint16_t>(old.banks | banks), 0};
  slot.room = static_cast<uint16_t>(std::bit_ceil(static_cast<unsigned>(std::popcount(slot.banks))));
  const bool moves = slot.room != old.room;
  slot.block = moves ? take_block(slot.room) : old.block;
  // From the last line to the first: within one block every line moves up or stays.
  for (int b = kGroupBanks - 1; b >= 0; --b) {
    if (!(slot.banks >> b & 1)) continue;
    float* const to = weights(slot, b);
    if (old.banks >> b & 1) {
      const float* const from = weights(old, b);
      std::copy_n(from, kBankLanes, to);
      std::copy_n(from + to_squares(old), kBankLanes, to + to_squares(slot));
    } else {
      std::fill_n(to, kBankLanes, 0.0f);
      std::fill_n(to + to_squares(slot), kBankLanes, kFirstGroupSquare);
    }
  }
  if (old.room && moves) free_[static_cast<size_t>(std::countr_zero(static_cast<unsigned>(old.room)))].push_back(old.block);
  line_bytes_ += kLineBytes * (slot.room - old.room);
  return slots_[s] = slot;
}

template <class Change>
void GrowingGroup::each_slot(Change change) const {
  for (const Slot& slot : slots_) {
    if (slot.room) change(slot);
  }
}

void GrowingGroup::reset_lane(int lane) {
  const int bank = lane / kBankLanes, at = lane % kBankLanes;
  bias_[static_cast<size_t>(kOnlineLine * bank + at)] = kFirstGroupBias;
  bias_[static_cast<size_t>(kOnlineLine * bank + kBankLanes + at)] = kFirstGroupSquare;
  each_slot([&](const Slot& slot) {
    if (!(slot.banks >> bank & 1)) return;
    float* const line = weights(slot, bank) + at;
    *line = 0.0f;
    line[to_squares(slot)] = kFirstGroupSquare;
  });
}

void GrowingGroup::copy_lane(int from, int to) {
  reset_lane(to);
  join_lane(from, to);
  const auto place = [](int lane) { return static_cast<size_t>(kOnlineLine * (lane / kBankLanes) + lane % kBankLanes); };
  for (const size_t part : {size_t{0}, size_t{kBankLanes}}) bias_[place(to) + part] = bias_[place(from) + part];
}

void GrowingGroup::join_lane(int from, int into) {
  const int from_bank = from / kBankLanes, into_bank = into / kBankLanes;
  const auto join = [](float x, float& y) {
    if (y == 0 || x > y) y = x;
  };
  std::vector<uint32_t> missing;  // adding lines would move what we walk over
  const auto join_slot = [&](const Slot& slot) {
    const float* const x = weights(slot, from_bank) + from % kBankLanes;
    float* const y = weights(slot, into_bank) + into % kBankLanes;
    if (*x == 0) return;
    join(*x, *y);
    y[to_squares(slot)] = std::max(y[to_squares(slot)], x[to_squares(slot)]);
  };
  each_slot([&](const Slot& slot) {
    if (!(slot.banks >> from_bank & 1)) return;
    if (slot.banks >> into_bank & 1) return join_slot(slot);
    if (weights(slot, from_bank)[from % kBankLanes] != 0) missing.push_back(slot.feature);
  });
  for (const uint32_t feature : missing) join_slot(add(feature, static_cast<uint16_t>(1u << into_bank)));
  for (const int part : {0, kBankLanes}) {
    float* const bias = bias_.data() + part;
    float& y = bias[kOnlineLine * into_bank + into % kBankLanes];
    y = std::max(y, bias[kOnlineLine * from_bank + from % kBankLanes]);
  }
}

void GrowingGroup::largest_weights(std::vector<float>& out) const {
  each_slot([&](const Slot& slot) {
    for (int b = 0; b < kGroupBanks; ++b) {
      if (slot.banks >> b & 1) out.push_back(largest(weights(slot, b)));
    }
  });
}

int64_t GrowingGroup::drop_lines(float below) {
  GrowingGroup kept;
  int64_t dropped = 0;
  each_slot([&](const Slot& slot) {
    uint16_t banks = 0;
    for (int b = 0; b < kGroupBanks; ++b) {
      if (!(slot.banks >> b & 1)) continue;
      const bool keep = largest(weights(slot, b)) >= below;
      if (keep) banks |= static_cast<uint16_t>(1u << b);
      dropped += !keep;
    }
    if (!banks) return;
    const Slot& to = kept.add(slot.feature, banks);
    for (int b = 0; b < kGroupBanks; ++b) {
      if (!(banks >> b & 1)) continue;
      std::copy_n(weights(slot, b), kBankLanes, kept.weights(to, b));
      std::copy_n(weights(slot, b) + to_squares(slot), kBankLanes, kept.weights(to, b) + to_squares(to));
    }
  });
  kept.bias_ = bias_;
  if (dropped) *this = std::move(kept);
  return dropped;
}

}  // namespace sapwood
