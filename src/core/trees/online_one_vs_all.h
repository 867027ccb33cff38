// One-against-all that learns online: one growing bank for every 16 labels, in the order of their codes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "regressors/growing_bank.h"
#include "regressors/packed_forest.h"
#include "solvers/random.h"
#include "threads/parallel.h"
#include "trees/progressive.h"

namespace sapwood {

class OnlineOneVsAll {
 public:
  struct Options {
    Loss loss;
    float step;
    bool normalize;
    int32_t negatives;  // labels to learn from as negatives for each example, or 0 for all
  };

  OnlineOneVsAll(const Options& options, uint64_t seed) : options_(options), random_(seed) {}

  // Learns the rows in order. The first `n_known` labels count as known from the start, others once they have occurred.
  // With `predict_first` each row is predicted before it is learned, and progressive() tells how that went.
  // A bank holds only features that have occurred with one of its labels: what speaks against a label and never for a
  // neighbour is left to its bias.
  template <class Rows>
  void learn(const Rows& X, const int64_t* label_indptr, const int32_t* labels, int32_t n_known,
             const float* row_weight, bool predict_first, Monitor& monitor);

  // labels, scores: rows x top, best first.
  template <class Rows>
  void predict_top(const Rows& X, int32_t top, int n_threads, int32_t* labels, float* scores, Monitor& monitor) const;

  // The raw score of one label for one row.
  template <class Rows>
  [[nodiscard]] float label_score(const Rows& X, int64_t row, int32_t label) const;

  [[nodiscard]] int32_t n_labels() const { return n_labels_; }
  [[nodiscard]] std::vector<GrowingBank>& banks() { return banks_; }
  [[nodiscard]] const std::vector<GrowingBank>& banks() const { return banks_; }
  [[nodiscard]] uint64_t random_state() const { return random_.state(); }
  [[nodiscard]] Progressive& progressive() { return progressive_; }
  [[nodiscard]] const Progressive& progressive() const { return progressive_; }
  void grow(int32_t n_labels);

  // Takes the weights that a forest of one root learned in a batch, to learn on from there.
  void take(const PackedForest& forest);

 private:
  template <class Index>
  int32_t learn_row(Row<Index> row, std::span<const int32_t> labels, float weight, bool predict_first);
  void grow_to(std::span<const int32_t> labels);
  void choose_lanes(std::span<const int32_t> labels);

  Options options_;
  Random random_;
  Progressive progressive_;
  std::vector<GrowingBank> banks_;
  int32_t n_labels_ = 0;
  // by bank, for the row at hand
  std::vector<uint16_t> positive_, lanes_;
  std::vector<int32_t> found_;
};

}  // namespace sapwood
