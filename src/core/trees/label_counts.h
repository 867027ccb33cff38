// How much weight of each label a node has seen, and what follows from it: the heaviest labels, recall, entropy.
// Everything costs O(1) or O(log F) an example, however many labels the node has met.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "threads/gate.h"

namespace sapwood {

struct LabelCount {
  double count;
  int32_t label;
};

// Candidates stand in this order: the heaviest first, ties to the lower code.
[[nodiscard]] inline bool comes_before(const LabelCount& a, const LabelCount& b) {
  return a.count != b.count ? a.count > b.count : a.label < b.label;
}

// phi(a + w) - phi(a) for phi(a) = a ln a, without its cancellation.
[[nodiscard]] double phi_increase(double a, double w);

class LabelCounts {
 public:
  // Counts an example. `size` is F, the number of candidates as of now; it never shrinks from one call to the next.
  void add(int32_t label, double weight, int32_t size);

  [[nodiscard]] double count(int32_t label) const;
  [[nodiscard]] double total() const { return load_shared(total_); }
  [[nodiscard]] int32_t n_labels() const { return n_labels_; }

  // The heaviest labels, as many as `size` said last.
  [[nodiscard]] std::span<const LabelCount> top() const { return top_; }

  // Fills up the heaviest labels after F has grown.
  void widen(int32_t size);

  // Equation (1): the share of the heaviest labels, and its lower bound; minus infinity where nothing has been seen.
  [[nodiscard]] double recall() const;
  [[nodiscard]] double recall_bound(double lambda) const;

  // H in nats.
  [[nodiscard]] double entropy() const;

  // (n + w) H' - n H: what one more example of the label adds to the total entropy.
  [[nodiscard]] double cost(int32_t label, double weight) const;

  // For several threads. Under a lock: whether add() would leave memory where it is; add_shared(), which does, also
  // makes ready what cost_shared() reads. Without: count(), total(), cost_shared(). All else is to be done alone.
  [[nodiscard]] bool has_room(int32_t label) const { return find(label) || 4 * static_cast<size_t>(n_labels_ + 1) <= 3 * map_.size(); }
  void add_shared(int32_t label, double weight, int32_t size);
  [[nodiscard]] double cost_shared(int32_t label, double weight) const;

  // All labels and counts in the order of the map, and back; then widen. False if a label stands twice or a count is not
  // positive.
  [[nodiscard]] std::vector<LabelCount> all() const;
  [[nodiscard]] bool restore(std::span<const LabelCount> counts, double total, double sum_phi);
  [[nodiscard]] double sum_phi() const { return sum_phi_; }

  void prefetch(int32_t label) const {
    if (!map_.empty()) __builtin_prefetch(&map_[home(label)]);
  }

 private:
  [[nodiscard]] size_t home(int32_t label) const {
    return static_cast<uint32_t>(label) * 0x9E3779B1u >> shift_;
  }
  [[nodiscard]] const LabelCount* find(int32_t label) const;
  LabelCount& find_or_add(int32_t label);
  void grow();
  void raise(double old_count, const LabelCount& now, int32_t size);
  void resum();

  std::vector<LabelCount> map_;  // open addressing; a count of 0 marks an empty slot
  std::vector<LabelCount> top_;
  double total_ = 0;
  double sum_phi_ = 0;  // sum of phi(c)
  double mass_ = 0;     // of the heaviest labels, summed from the heaviest down
  mutable double asked_weight_ = 0, asked_increase_ = 0;  // the last phi_increase(total, weight)
  int32_t n_labels_ = 0;
  int32_t shift_ = 32;
  bool is_exact_ = true;  // all weights are multiples of 2^-10: sums round nowhere, so their order is free
};

}  // namespace sapwood
