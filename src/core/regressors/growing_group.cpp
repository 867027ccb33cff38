#include "regressors/growing_group.h"

#include <algorithm>
#include <cmath>

namespace sapwood {

namespace {

constexpr size_t kFirstSlots = 16;
constexpr size_t kAhead = 16;  // features that are fetched while others are worked on
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

void GrowingGroup::reserve(int64_t n_features) {
  const size_t n_slots = std::bit_ceil(2 * static_cast<size_t>(n_features));
  if (n_slots > slots_.size()) resize_index(n_slots);
}

void GrowingGroup::fit_index() {
  const size_t n_slots = std::max(kFirstSlots, std::bit_ceil(2 * n_features_));
  if (n_slots < slots_.size()) resize_index(n_slots);
}

void GrowingGroup::resize_index(size_t n_slots) {
  std::vector<Slot> old(n_slots, Slot{0, 0, 0, 0});
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.room) slots_[place_of(slot.feature)] = slot;
  }
}

const GrowingGroup::Slot& GrowingGroup::add(uint32_t feature, uint16_t banks) {
  size_t s = place_of(feature);
  if (!slots_[s].room) {
    if (2 * (n_features_ + 1) > slots_.size()) {
      resize_index(2 * slots_.size());
      s = place_of(feature);
    }
    ++n_features_;
    slots_[s].feature = feature;
  }
  extend(slots_[s], banks);
  return slots_[s];
}

// Gives a slot, which may be an empty one, lines for these banks too.
void GrowingGroup::extend(Slot& at, uint16_t banks) {
  const Slot old = at;
  Slot slot{old.feature, 0, static_cast<uint16_t>(old.banks | banks), 0};
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
  at = slot;
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
  std::vector<uint32_t> features;
  each_slot([&](const Slot& slot) { features.push_back(slot.feature); });
  mix_lanes(lanes, shares, features);
}

void GrowingGroup::mix_lanes(std::span<const int> lanes, std::span<const float> shares, std::span<const uint32_t> features) {
  uint16_t banks = 0;
  for (const int lane : lanes) banks |= static_cast<uint16_t>(1u << (lane / kBankLanes));
  const size_t n = lanes.size();
  std::vector<float> by_source(n * n);  // what each lane gives: columns of the shares
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) by_source[j * n + i] = shares[i * n + j];
  }
  const auto mix = [&](const std::vector<float>& old, std::vector<float>& mixed) {
    std::fill(mixed.begin(), mixed.end(), 0.0f);
    for (size_t j = 0; j < n; ++j) {
      if (old[j] == 0) continue;
      for (size_t i = 0; i < n; ++i) mixed[i] += by_source[j * n + i] * old[j];
    }
  };
  std::vector<float> weight(n), square(n), mixed_weight(n), mixed_square(n);
  for (size_t k = 0; k < features.size(); ++k) {
    if (k + kAhead < features.size()) __builtin_prefetch(&slots_[home(features[k + kAhead])]);
    Slot& slot = slots_[place_of(features[k])];
    if (!slot.room || !(slot.banks & banks)) continue;
    const auto has_line = [&](size_t i) { return (slot.banks >> (lanes[i] / kBankLanes) & 1) != 0; };
    const auto place = [&](size_t i) { return weights(slot, lanes[i] / kBankLanes) + lanes[i] % kBankLanes; };
    for (size_t i = 0; i < n; ++i) {
      weight[i] = has_line(i) ? *place(i) : 0.0f;
      square[i] = has_line(i) ? place(i)[to_squares(slot)] : kFirstGroupSquare;
    }
    mix(weight, mixed_weight);
    mix(square, mixed_square);
    uint16_t wanted = 0;
    for (size_t i = 0; i < n; ++i) {
      if (std::abs(mixed_weight[i]) > kNegligibleWeight) wanted |= static_cast<uint16_t>(1u << (lanes[i] / kBankLanes));
    }
    if (wanted & ~slot.banks) extend(slot, wanted);
    for (size_t i = 0; i < n; ++i) {
      if (!has_line(i)) continue;
      *place(i) = mixed_weight[i];
      place(i)[to_squares(slot)] = mixed_square[i];
    }
  }
  const auto bias = [&](size_t i) { return &bias_[static_cast<size_t>(kOnlineLine * (lanes[i] / kBankLanes) + lanes[i] % kBankLanes)]; };
  for (const int part : {0, kBankLanes}) {
    for (size_t i = 0; i < n; ++i) weight[i] = bias(i)[part];
    mix(weight, mixed_weight);
    for (size_t i = 0; i < n; ++i) bias(i)[part] = mixed_weight[i];
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
  kept.reserve(n_features());
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
