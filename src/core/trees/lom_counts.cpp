#include "trees/lom_counts.h"

#include <algorithm>

namespace sapwood {

void LomCounts::grow() {
  std::vector<LomCount> old(slots_.empty() ? 2 : 2 * slots_.size());
  old.swap(slots_);
  store_shared(first_slot_, reinterpret_cast<uintptr_t>(slots_.data()));
  store_shared(n_slots_, slots_.size());
  for (const LomCount& slot : old) {
    if (slot.label >= 0) slots_[find(slot.label)] = slot;
  }
}

std::vector<LomCount> LomCounts::sorted() const {
  std::vector<LomCount> all;
  std::copy_if(slots_.begin(), slots_.end(), std::back_inserter(all), [](const LomCount& slot) { return slot.label >= 0; });
  std::sort(all.begin(), all.end(), [](const LomCount& a, const LomCount& b) { return a.label < b.label; });
  return all;
}

}  // namespace sapwood
