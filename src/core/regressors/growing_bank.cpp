#include "regressors/growing_bank.h"

#include <algorithm>

namespace sapwood {

namespace {

constexpr size_t kFirstSlots = 16;

}  // namespace

GrowingBank::GrowingBank() : slots_(kFirstSlots, Slot{0, 0}) {
  reserve(1);
  n_lines_ = 1;
}

void GrowingBank::reserve(int64_t n_lines) {
  if (n_lines <= room_) return;
  const int64_t room = std::max<int64_t>(n_lines, room_ + room_ / 2 + 8);
  AlignedArray<float> lines(static_cast<size_t>(room * kOnlineLine));
  std::copy_n(lines_.get(), n_lines_ * kOnlineLine, lines.get());
  for (float* line = lines.get() + n_lines_ * kOnlineLine; line < lines.get() + room * kOnlineLine; line += kOnlineLine) {
    std::fill_n(line, kBankLanes, 0.0f);
    std::fill_n(line + kBankLanes, kBankLanes, kFirstSquare);
  }
  lines_ = std::move(lines);
  room_ = room;
}

void GrowingBank::place(uint32_t feature, int32_t line) {
  size_t s = home(feature);
  while (slots_[s].line) s = s + 1 == slots_.size() ? 0 : s + 1;
  slots_[s] = {feature, line};
}

int32_t GrowingBank::add(uint32_t feature) {
  if (2 * (features_.size() + 1) > slots_.size()) {
    slots_.assign(2 * slots_.size(), Slot{0, 0});
    for (size_t i = 0; i < features_.size(); ++i) place(features_[i], static_cast<int32_t>(i) + 1);
  }
  reserve(n_lines_ + 1);
  const auto line = static_cast<int32_t>(n_lines_++);
  features_.push_back(feature);
  place(feature, line);
  return line;
}

void GrowingBank::set(uint32_t feature, int lane, float weight, float square) {
  int32_t i = line_of(feature);
  if (i < 0) i = add(feature);
  lines_.get()[kOnlineLine * i + lane] = weight;
  lines_.get()[kOnlineLine * i + kBankLanes + lane] = square;
}

void GrowingBank::set_bias(int lane, float weight, float square) {
  lines_.get()[lane] = weight;
  lines_.get()[kBankLanes + lane] = square;
}

bool GrowingBank::restore(std::span<const uint32_t> features, const float* lines) {
  reserve(static_cast<int64_t>(features.size()) + 1);
  for (const uint32_t feature : features) {
    if (line_of(feature) >= 0) return false;
    add(feature);
  }
  std::copy_n(lines, n_lines_ * kOnlineLine, lines_.get());
  return true;
}

}  // namespace sapwood
