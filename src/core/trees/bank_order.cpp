#include "trees/bank_order.h"

#include <algorithm>
#include <numeric>

namespace sapwood {

namespace {

constexpr int kLanes = 16;
constexpr size_t kMostLists = 32;  // of a label, the busiest: a label may stand in all

// Banks are filled one after the other: with the label asked for most often that is left, then again and again with the
// label that most often stands beside one that is there.
class Filler {
 public:
  explicit Filler(std::span<const LabelList> lists) : lists_(lists), busiest_(lists.size()), met_(lists.size(), -1) {
    std::iota(busiest_.begin(), busiest_.end(), size_t{0});
    std::stable_sort(busiest_.begin(), busiest_.end(), [&](size_t a, size_t b) { return lists[a].times > lists[b].times; });
    for (const size_t list : busiest_) {
      for (const int32_t label : lists[list].labels) know(label, list);
    }
    std::stable_sort(seeds_.begin(), seeds_.end(), [&](int32_t a, int32_t b) { return at(a).times > at(b).times; });
  }

  std::vector<int32_t> fill() {
    for (const int32_t seed : seeds_) {
      if (at(seed).is_placed) continue;
      ++bank_;
      beside_.clear();
      int32_t next = seed;
      for (int lane = 0; lane < kLanes && next >= 0; ++lane) {
        place(next);
        next = closest();
      }
    }
    return std::move(order_);
  }

 private:
  struct Label {
    std::vector<size_t> lists;
    int64_t times = 0;
    int64_t beside = 0;  // how often it is asked for with a label of the bank at hand
    int32_t bank = -1;   // that `beside` is about
    bool is_placed = false;
  };

  Label& at(int32_t label) { return labels_[static_cast<size_t>(label)]; }

  void know(int32_t label, size_t list) {
    if (static_cast<size_t>(label) >= labels_.size()) labels_.resize(static_cast<size_t>(label) + 1);
    if (at(label).lists.empty()) seeds_.push_back(label);
    at(label).times += lists_[list].times;
    if (at(label).lists.size() < kMostLists) at(label).lists.push_back(list);
  }

  void place(int32_t label) {
    at(label).is_placed = true;
    order_.push_back(label);
    for (const size_t list : at(label).lists) {
      if (met_[list] == bank_) continue;
      met_[list] = bank_;
      for (const int32_t other : lists_[list].labels) {
        if (at(other).is_placed) continue;
        if (at(other).bank != bank_) {
          at(other).bank = bank_;
          at(other).beside = 0;
          beside_.push_back(other);
        }
        at(other).beside += lists_[list].times;
      }
    }
  }

  // -1: no label that is left stands beside one of the bank.
  int32_t closest() {
    std::erase_if(beside_, [&](int32_t label) { return at(label).is_placed; });
    const auto best = std::max_element(beside_.begin(), beside_.end(), [&](int32_t a, int32_t b) {
      return at(a).beside != at(b).beside ? at(a).beside < at(b).beside : a > b;
    });
    return best == beside_.end() ? -1 : *best;
  }

  std::span<const LabelList> lists_;
  std::vector<size_t> busiest_;
  std::vector<int32_t> met_;  // by list: the bank that met it last
  std::vector<Label> labels_;
  std::vector<int32_t> seeds_, beside_, order_;
  int32_t bank_ = -1;
};

}  // namespace

std::vector<int32_t> bank_order(std::span<const LabelList> lists) { return Filler(lists).fill(); }

}  // namespace sapwood
