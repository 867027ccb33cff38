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
  // A block must not lie across two chunks: what is left of one goes to smaller blocks.
  const auto room_in_chunk = [&] {
    const auto i = static_cast<uint32_t>(lines_taken_) + kFirstChunk;
    return static_cast<int64_t>(uint32_t{1} << std::bit_width(i)) - i;
  };
  for (int64_t left = room_in_chunk(); left < room; left = room_in_chunk()) {
    const int64_t part = std::bit_floor(static_cast<uint64_t>(left));
    free_[static_cast<size_t>(std::countr_zero(static_cast<uint64_t>(part)))].push_back(static_cast<int32_t>(lines_taken_));
    lines_taken_ += part;
  }
  const auto block = static_cast<int32_t>(lines_taken_);
  lines_taken_ += room;
  while (static_cast<int64_t>(kFirstChunk) * ((int64_t{1} << chunks_.size()) - 1) < lines_taken_) {
    chunks_.push_back(std::make_unique<AlignedArray<float>>(static_cast<size_t>(kFirstChunk << chunks_.size()) * kOnlineLine));
  }
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
  const std::array lanes{from, to};
  const std::array<float, 4> shares{1, 0, 1, 0};
  mix_lanes(lanes, shares);
}

void GrowingGroup::mix_lanes(std::span<const int> lanes, std::span<const float> shares) {
  uint16_t banks = 0;
  for (const int lane : lanes) banks |= static_cast<uint16_t>(1u << (lane / kBankLanes));
  std::vector<uint32_t> features;  // adding lines would move what we walk over
  each_slot([&](const Slot& slot) {
    if (slot.banks & banks) features.push_back(slot.feature);
  });
  std::vector<float> before(lanes.size());
  const auto mix = [&](auto value_of) {
    for (size_t j = 0; j < lanes.size(); ++j) before[j] = value_of(lanes[j]);
    for (size_t i = 0; i < lanes.size(); ++i) {
      float sum = 0;
      for (size_t j = 0; j < lanes.size(); ++j) {
        const float share = shares[i * lanes.size() + j];
        if (share != 0) sum += share * before[j];
      }
      value_of(lanes[i]) = sum;
    }
  };
  for (const uint32_t feature : features) {
    const Slot slot = add(feature, banks);
    for (const int64_t part : {int64_t{0}, to_squares(slot)}) {
      mix([&](int lane) -> float& { return weights(slot, lane / kBankLanes)[part + lane % kBankLanes]; });
    }
  }
  for (const int part : {0, kBankLanes}) {
    mix([&](int lane) -> float& { return bias_[static_cast<size_t>(kOnlineLine * (lane / kBankLanes) + part + lane % kBankLanes)]; });
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
