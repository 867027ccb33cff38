// The label regressors of a Recall Tree, of which any few are scored together and learn together.
//
// Sparse rows: sixteen labels to a bank; which labels share one changes no answer, only how many banks a row meets.
// Dense rows: one row of weights for each label; banks hold the path features alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "regressors/lane_store.h"
#include "regressors/online_row.h"
#include "solvers/rule.h"
#include "threads/gate.h"

namespace sapwood {

class LabelRegressors {
 public:
  // What one thread needs to score a row.
  struct Work {
    std::vector<int32_t> features;
    std::vector<int32_t> banks;              // that the labels asked for live in
    std::vector<uint64_t> met;               // by bank: when it was met last, and its place in `banks`
    uint32_t time = 0;
    std::vector<int32_t> lines;              // banks x features
    std::vector<int32_t> lane;               // by label asked for: 16 x its bank's place in `banks`, and the lane
    CacheLineVector<float> lanes, pushes;    // banks x 16
    std::vector<float> scores;               // by label asked for
    std::vector<char> learning;              // by bank
    Gate::Pass* pass = nullptr;              // of a thread that learns while others do
  };

  LabelRegressors(const Rule& rule, bool dense, int64_t n_columns);

  // A label gets a regressor without weights.
  void add(int32_t label);
  [[nodiscard]] bool knows(int32_t label) const {
    return static_cast<size_t>(label) < places_.size() && places_[static_cast<size_t>(label)] >= 0;
  }

  // Puts labels that are scored together into the same banks: the order says which stand beside each other, each label
  // once; those not named follow. No answer changes.
  void arrange(std::span<const int32_t> order);

  // work.scores: what the regressors of the labels say of the row.
  void score(std::span<const int32_t> labels, const OnlineRow& row, Work& work) const;
  // Asks for what score() will look at first.
  template <class Index>
  void prefetch(Row<Index> row) const {
    if (!dense_) store_.prefetch(row);
  }
  // One step of the labels scored last: the first towards +1 that is `right`, all others towards -1. False, and nothing
  // is learned, if memory would have to move while other threads learn: then to be scored and learned alone.
  [[nodiscard]] bool learn(std::span<const int32_t> labels, int32_t right, double weight, const OnlineRow& row, Work& work);
  // Whether several threads will learn from here on.
  void set_shared(bool is_shared) { store_.set_shared(is_shared); }

  // All that has been learned.
  template <template <class> class List>
  struct Arrays {
    List<int32_t> places;          // by label: 16 x its bank + its lane, or -1
    List<uint64_t> keys;           // of each line (lane_store.h)
    List<int32_t> banks;           // of each line
    List<float> weights, squares;  // of each line 16; sgd: no squares
    List<float> dense_weights, dense_squares;  // dense: a row for each place taken, in their order
  };
  template <class T>
  using Owned = std::vector<T>;
  template <class T>
  using View = std::span<const T>;
  [[nodiscard]] Arrays<Owned> arrays() const;
  // Takes them back; false if they do not fit together. Must be as new.
  [[nodiscard]] bool restore(const Arrays<View>& arrays);

  [[nodiscard]] int64_t size() const { return n_placed_; }
  [[nodiscard]] size_t bytes() const;
  [[nodiscard]] const LaneStore& store() const { return store_; }
  [[nodiscard]] int32_t place(int32_t label) const { return places_[static_cast<size_t>(label)]; }
  [[nodiscard]] const Rule& rule() const { return rule_; }

 private:
  void meet_banks(std::span<const int32_t> labels, Work& work) const;
  [[nodiscard]] std::vector<int32_t> labels_by_place() const;
  void score_lanes(std::span<const int32_t> labels, const OnlineRow& row, Work& work) const;
  void set_pushes(std::span<const int32_t> labels, int32_t right, double weight, Work& work) const;
  [[nodiscard]] bool make_lines(const OnlineRow& row, Work& work);
  void step_dense(std::span<const int32_t> labels, const OnlineRow& row, const Work& work);
  void step_banks(const OnlineRow& row, const Work& work);

  Rule rule_;
  bool dense_;
  int64_t row_floats_;  // dense: of one regressor
  LaneStore store_;
  Spinlock adding_;  // of lines
  std::vector<int32_t> places_;  // by label: 16 x its bank + its lane, or -1
  int32_t n_placed_ = 0;
  std::vector<AlignedArray<float>> weights_, squares_;  // dense, by label
};

}  // namespace sapwood
