// The decisions of an online tree in their order, as src/sapwood/reference/records.py has them: for tests to compare.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace sapwood {

struct TreeEvent {
  enum class Kind : int32_t { route, target, split, swap, stop, candidates, grow };
  int64_t example;
  Kind kind;
  std::vector<int32_t> nodes, labels;
  std::vector<double> numbers;
};

class Trace {
 public:
  void start() { wanted_ = true; }
  void next_example() { ++example_; }
  void add(TreeEvent::Kind kind, std::initializer_list<int32_t> nodes, std::initializer_list<double> numbers = {},
           std::initializer_list<int32_t> labels = {}) {
    if (wanted_) events_.push_back({example_, kind, nodes, labels, numbers});
  }
  // The same where the lists are long: only to be called if wanted(), as they cost memory.
  void add_lists(TreeEvent::Kind kind, std::vector<int32_t> nodes, std::vector<double> numbers, std::vector<int32_t> labels) {
    events_.push_back({example_, kind, std::move(nodes), std::move(labels), std::move(numbers)});
  }
  [[nodiscard]] bool wanted() const { return wanted_; }
  [[nodiscard]] const std::vector<TreeEvent>& events() const { return events_; }

 private:
  bool wanted_ = false;
  int64_t example_ = -1;
  std::vector<TreeEvent> events_;
};

}  // namespace sapwood
