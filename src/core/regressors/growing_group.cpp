#include "regressors/growing_group.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sapwood {

namespace {

constexpr size_t kFirstSlots = 16;
constexpr size_t kFeaturesAhead = 16;  // whose slots are fetched while others are worked on: at half the way, their lines
constexpr int64_t kLineBytes = kOnlineLine * sizeof(float);

void copy_line(const float* from, float* to) {
  std::array<float, kBankLanes> line;  // the lines may overlap: without it, a call of memmove
  std::memcpy(line.data(), from, sizeof line);
  std::memcpy(to, line.data(), sizeof line);
}

float largest(const float* line) {
  float most = 0;
  for (int l = 0; l < kBankLanes; ++l) most = std::max(most, std::abs(line[l]));
  return most;
}

}  // namespace

GrowingGroup::GrowingGroup(LineArena& arena) : arena_(arena), slots_(kFirstSlots, Slot{}), bias_(kGroupBanks * kOnlineLine) {
  for (int lane = 0; lane < kGroupBanks * kBankLanes; ++lane) reset_lane(lane);
}

GrowingGroup::~GrowingGroup() {
  for (const Slot& slot : slots_) {
    if (slot.room) arena_.give_back(slot.block, slot.room);
  }
}

size_t GrowingGroup::slots_that_fit() const { return std::max(kFirstSlots, std::bit_ceil(2 * n_features_)); }

void GrowingGroup::reserve(size_t n_features) {
  const size_t n_slots = std::bit_ceil(2 * n_features);
  if (n_slots > slots_.size()) resize_index(n_slots);
}

void GrowingGroup::fit_index() {
  if (slots_that_fit() < slots_.size()) resize_index(slots_that_fit());
}

void GrowingGroup::resize_index(size_t n_slots) {
  SlotVector old(n_slots, Slot{});
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.banks) slots_[place_of(slot.feature)] = slot;
  }
}

// The feature's slot, or an empty one for it; room for another feature is made before.
GrowingGroup::Slot& GrowingGroup::slot_for(uint32_t feature) {
  if (2 * (n_features_ + 1) > slots_.size() && !knows(feature)) resize_index(2 * slots_.size());
  Slot& slot = slots_[place_of(feature)];
  slot.feature = feature;
  return slot;
}

const GrowingGroup::Slot& GrowingGroup::add(uint32_t feature, uint16_t banks) {
  Slot& slot = slot_for(feature);
  set_banks(slot, slot.banks | banks);
  return slot;
}

void GrowingGroup::put(uint32_t feature, int lane, float weight, float square) {
  Slot& slot = slot_for(feature);
  if (!slot.banks || (slot.is_lone() && slot.lane == lane)) return set_lone(slot, lane, weight, square);
  const int bank = lane / kBankLanes;
  set_banks(slot, static_cast<uint16_t>(slot.banks | 1u << bank));
  float* const at = weights(slot, bank) + lane % kBankLanes;
  *at = weight;
  at[to_squares(slot)] = square;
}

// A feature occurs with lanes of these banks, or with one lane alone.
void GrowingGroup::meet(Slot& slot, uint32_t feature, uint16_t banks, int lane) {
  slot.feature = feature;
  if (!slot.banks && lane >= 0) return set_lone(slot, lane, 0.0f, kFirstGroupSquare);
  set_banks(slot, slot.banks | banks);
}

void GrowingGroup::set_lone(Slot& slot, int lane, float weight, float square) {
  n_features_ += !slot.banks;
  slot.banks = static_cast<uint16_t>(1u << (lane / kBankLanes));
  slot.room = 0;
  slot.lane = static_cast<uint8_t>(lane);
  slot.lone[0] = weight;
  slot.lone[1] = square;
}

// Empties a slot. Until the index is made anew, others may not be found.
void GrowingGroup::clear(Slot& slot) {
  if (slot.room) arena_.give_back(slot.block, slot.room);
  line_bytes_ -= kLineBytes * slot.room;
  n_features_ -= slot.banks != 0;
  slot = Slot{};
}

// Gives a slot lines for these banks, one at least, and no others; what it had in them is kept. The slot may be empty.
void GrowingGroup::set_banks(Slot& at, uint16_t banks) {
  const Slot old = at;
  const uint16_t had = old.room ? old.banks : uint16_t{0};
  Slot slot = old;
  slot.banks = banks;
  slot.room = static_cast<uint8_t>(std::bit_ceil(static_cast<unsigned>(std::popcount(banks))));
  const bool moves = slot.room != old.room;
  if (moves) slot.block = arena_.take(slot.room);
  const auto move_line = [&](int b) {
    if (!(banks >> b & 1)) return;
    float* const to = weights(slot, b);
    if (had >> b & 1) {
      const float* const from = weights(old, b);
      copy_line(from, to);
      copy_line(from + to_squares(old), to + to_squares(slot));
    } else {
      std::fill_n(to, kBankLanes, 0.0f);
      std::fill_n(to + to_squares(slot), kBankLanes, kFirstGroupSquare);
    }
  };
  // Within one block no line may be overwritten before it is moved: up from the last to the first, or down.
  if (banks & ~had) {
    for (int b = kGroupBanks - 1; b >= 0; --b) move_line(b);
  } else {
    for (int b = 0; b < kGroupBanks; ++b) move_line(b);
  }
  if (old.is_lone()) {
    float* const weight = weights(slot, old.lane / kBankLanes) + old.lane % kBankLanes;
    *weight = old.lone[0];
    weight[to_squares(slot)] = old.lone[1];
  }
  if (moves && old.room) arena_.give_back(old.block, old.room);
  n_features_ += !old.banks;
  line_bytes_ += kLineBytes * (slot.room - old.room);
  at = slot;
}

void GrowingGroup::reset_lane(int lane) {
  const int bank = lane / kBankLanes, at = lane % kBankLanes;
  bias_[static_cast<size_t>(kOnlineLine * bank + at)] = kFirstGroupBias;
  bias_[static_cast<size_t>(kOnlineLine * bank + kBankLanes + at)] = kFirstGroupSquare;
  for (Slot& slot : slots_) {
    if (!(slot.banks >> bank & 1)) continue;
    if (slot.is_lone()) {
      if (slot.lane == lane) set_lone(slot, lane, 0.0f, kFirstGroupSquare);
      continue;
    }
    float* const line = weights(slot, bank) + at;
    *line = 0.0f;
    line[to_squares(slot)] = kFirstGroupSquare;
  }
}

void GrowingGroup::move_lane(int from, int to) {
  reset_lane(to);
  const int bank = from / kBankLanes, at = from % kBankLanes;
  for (Slot& slot : slots_) {
    if (!(slot.banks >> bank & 1)) continue;
    if (slot.is_lone()) {
      if (slot.lane == from) set_lone(slot, to, slot.lone[0], slot.lone[1]);
      continue;
    }
    const float* const line = weights(slot, bank) + at;
    const float weight = *line, square = line[to_squares(slot)];
    if ((slot.banks >> (to / kBankLanes) & 1) || std::abs(weight) > kNegligibleWeight) put(slot.feature, to, weight, square);
  }
  for (const int half : {0, kBankLanes}) {
    bias_[static_cast<size_t>(kOnlineLine * (to / kBankLanes) + half + to % kBankLanes)] =
        bias_[static_cast<size_t>(kOnlineLine * bank + half + at)];
  }
  reset_lane(from);
}

void GrowingGroup::mix_lanes(std::span<const int> lanes, std::span<const float> shares, std::span<const Heir> features) {
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
    if (k + kFeaturesAhead < features.size()) __builtin_prefetch(&slots_[home(features[k + kFeaturesAhead].feature)]);
    if (k + kFeaturesAhead / 2 < features.size()) prefetch_lines(slots_[place_of(features[k + kFeaturesAhead / 2].feature)]);
    Slot& slot = slots_[place_of(features[k].feature)];
    if (!(slot.banks & banks)) continue;
    if (slot.is_lone()) {
      if (std::find(lanes.begin(), lanes.end(), slot.lane) == lanes.end() || features[k].number == Heir::kNone) continue;
      if (features[k].number >= 0) {
        set_lone(slot, lanes[static_cast<size_t>(features[k].number)], slot.lone[0], slot.lone[1]);
        continue;
      }
      set_banks(slot, slot.banks);
    }
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
    if (wanted & ~slot.banks) set_banks(slot, slot.banks | wanted);
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
    if (slot.is_lone()) return out.push_back(std::abs(slot.lone[0]));
    for (int b = 0; b < kGroupBanks; ++b) {
      if (slot.banks >> b & 1) out.push_back(largest(weights(slot, b)));
    }
  });
}

int64_t GrowingGroup::drop_lines(float below) {
  int64_t dropped = 0;
  for (Slot& slot : slots_) {
    uint16_t kept = 0;
    for (int b = 0; b < kGroupBanks; ++b) {
      if (!(slot.banks >> b & 1)) continue;
      const float size = slot.is_lone() ? std::abs(slot.lone[0]) : largest(weights(slot, b));
      if (size >= below) kept |= static_cast<uint16_t>(1u << b);
    }
    if (kept == slot.banks) continue;
    dropped += std::popcount(slot.banks) - std::popcount(kept);
    if (kept) set_banks(slot, kept);
    else clear(slot);
  }
  if (dropped) resize_index(slots_that_fit());  // without the slots that are empty now
  return dropped;
}

}  // namespace sapwood
