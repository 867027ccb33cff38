#include "trees/coding_shape.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <queue>
#include <span>

namespace sapwood {

namespace {

using Set = std::span<const int32_t>;

uint64_t hash_of(Set set) {
  uint64_t h = 0x9E3779B97F4A7C15ull + set.size();
  for (const int32_t label : set) {
    h = (h ^ static_cast<uint32_t>(label)) * 0xBF58476D1CE4E5B9ull;
    h ^= h >> 29;
  }
  return h;
}

// Gives equal sets one number each, in order of appearance.
class Numbering {
 public:
  Numbering(const LabelSets& sets, size_t most)
      : sets_(sets), slots_(std::bit_ceil(2 * most + 1), -1), mask_(slots_.size() - 1) {}

  int32_t number(int64_t row) {
    const Set set = of(row);
    for (size_t slot = hash_of(set) & mask_;; slot = (slot + 1) & mask_) {
      if (slots_[slot] < 0) {
        slots_[slot] = static_cast<int32_t>(first_.size());
        first_.push_back(row);
      }
      if (std::ranges::equal(set, of(first_[static_cast<size_t>(slots_[slot])]))) return slots_[slot];
    }
  }
  [[nodiscard]] Set of(int64_t row) const {
    return {sets_.labels + sets_.indptr[row], static_cast<size_t>(sets_.indptr[row + 1] - sets_.indptr[row])};
  }
  [[nodiscard]] const std::vector<int64_t>& first_rows() const { return first_; }

 private:
  const LabelSets& sets_;
  std::vector<int32_t> slots_;
  size_t mask_;
  std::vector<int64_t> first_;  // by number: a row that has the set
};

void add_leaf(CodingShape& shape, const DistinctSets& sets, int32_t set, double mass) {
  const auto from = [&](int32_t s) { return sets.labels.begin() + sets.begin[static_cast<size_t>(s)]; };
  shape.leaf_labels.insert(shape.leaf_labels.end(), from(set), from(set + 1));
  shape.leaf_begin.push_back(static_cast<int64_t>(shape.leaf_labels.size()));
  shape.leaf_mass.push_back(mass);
}

int32_t last_leaf(const CodingShape& shape) { return static_cast<int32_t>(shape.leaf_mass.size()) - 1; }

void add_rows(CodingShape& shape, const DistinctSets& sets, int32_t set) {
  shape.order.insert(shape.order.end(), sets.rows.begin() + sets.row_begin[static_cast<size_t>(set)],
                     sets.rows.begin() + sets.row_begin[static_cast<size_t>(set) + 1]);
}

// Grows an annotation tree: every node is a range of label sets, which its question parts in two.
class AnnotationGrower {
 public:
  AnnotationGrower(const DistinctSets& sets, bool balanced, int64_t min_examples)
      : sets_(sets), balanced_(balanced), min_examples_(min_examples), order_(static_cast<size_t>(sets.size())), rank_(order_.size()),
        mass_(static_cast<size_t>(sets.n_labels)), count_(mass_.size()), rank_of_(mass_.size(), -1), marked_(mass_.size(), -1) {
    std::iota(order_.begin(), order_.end(), 0);
  }

  CodingShape grow() {
    struct Waiting {
      size_t begin, end;
      int64_t first_row;
      int64_t slot;  // where its number belongs: in children, or -1 for the root
    };
    CodingShape shape;
    std::vector<Waiting> stack{{0, order_.size(), 0, -1}};  // a chain of q labels is q deep: no recursion
    while (!stack.empty()) {
      const Waiting w = stack.back();
      stack.pop_back();
      const int64_t n = rows_in(w.begin, w.end);
      const size_t middle = n < min_examples_ ? w.begin : part(w.begin, w.end, shape);
      int32_t& place = w.slot < 0 ? shape.root : shape.children[static_cast<size_t>(w.slot)];
      if (middle == w.begin) {
        close(w.begin, w.end, shape);
        place = ~last_leaf(shape);
        continue;
      }
      const auto node = static_cast<int64_t>(shape.nodes.size());
      const int64_t first_no = w.first_row + rows_in(w.begin, middle);
      place = static_cast<int32_t>(node);
      shape.nodes.push_back({w.first_row, first_no, w.first_row + n});
      shape.children.insert(shape.children.end(), 2, 0);
      shape.question_begin.push_back(static_cast<int64_t>(shape.question.size()));
      stack.push_back({middle, w.end, first_no, 2 * node + 1});
      stack.push_back({w.begin, middle, w.first_row, 2 * node});
    }
    return shape;
  }

 private:
  [[nodiscard]] Set labels(int32_t set) const {
    const int64_t first = sets_.begin[static_cast<size_t>(set)];
    return {sets_.labels.data() + first, static_cast<size_t>(sets_.begin[static_cast<size_t>(set) + 1] - first)};
  }
  [[nodiscard]] std::span<int32_t> range(size_t begin, size_t end) { return std::span(order_).subspan(begin, end - begin); }
  [[nodiscard]] double mass_of(int32_t set) const { return sets_.mass[static_cast<size_t>(set)]; }
  [[nodiscard]] bool carries(int32_t set, int32_t label) const { return std::ranges::binary_search(labels(set), label); }

  [[nodiscard]] int64_t rows_in(size_t begin, size_t end) {
    int64_t n = 0;
    for (const int32_t set : range(begin, end)) n += sets_.n_rows(set);
    return n;
  }

  void close(size_t begin, size_t end, CodingShape& shape) {
    double mass = 0;
    int32_t best = order_[begin];
    for (const int32_t set : range(begin, end)) {
      mass += mass_of(set);
      if (mass_of(set) > mass_of(best) || (mass_of(set) == mass_of(best) && set < best)) best = set;
      add_rows(shape, sets_, set);
    }
    add_leaf(shape, sets_, best, mass);
  }

  // Adds a question to the shape and orders the sets: those that answer yes come first. Where these end, or `begin` if
  // there is nothing left to ask.
  size_t part(size_t begin, size_t end, CodingShape& shape) {
    if (end - begin < 2) return begin;
    const auto here = range(begin, end);
    working_.clear();
    double total = 0;
    for (const int32_t set : here) {
      total += mass_of(set);
      for (const int32_t label : labels(set)) {
        const auto l = static_cast<size_t>(label);
        if (count_[l]++ == 0) working_.push_back(label);
        mass_[l] += mass_of(set);
      }
    }
    const std::vector<int32_t> met = working_;
    // W_g = G_g - Zero_g - One_g; a label that was decided above is in one of the two.
    std::erase_if(working_, [&](int32_t label) { return count_[static_cast<size_t>(label)] == static_cast<int64_t>(here.size()); });
    const size_t first_literal = shape.question.size();
    balanced_ ? ask_balanced(here, total, shape.question) : ask_frequent(shape.question);
    for (const int32_t label : met) {
      mass_[static_cast<size_t>(label)] = 0;
      count_[static_cast<size_t>(label)] = 0;
    }
    // rank_: whether the answer is yes
    const std::span<const int32_t> literals = std::span(shape.question).subspan(first_literal);
    if (!balanced_) {
      for (const int32_t set : here) rank_[static_cast<size_t>(set)] = carries(set, literals[0]) ? 0 : 1;
    }
    const auto limit = static_cast<int32_t>(literals.size());
    const auto middle = std::stable_partition(here.begin(), here.end(), [&](int32_t set) { return rank_[static_cast<size_t>(set)] < limit; });
    return begin + static_cast<size_t>(middle - here.begin());
  }

  // Algorithm 4, line 3: the most frequent working label, the smallest of ties.
  void ask_frequent(std::vector<int32_t>& question) const {
    question.push_back(*std::ranges::max_element(working_, [&](int32_t a, int32_t b) {
      const double x = mass_[static_cast<size_t>(a)], y = mass_[static_cast<size_t>(b)];
      return x < y || (x == y && a > b);
    }));
  }

  // The prefix of literals, the most frequent first, whose coverage is nearest to half.
  void ask_balanced(std::span<const int32_t> here, double total, std::vector<int32_t>& question) {
    struct Literal {
      double held_by;
      int32_t label;
      bool carries;
    };
    std::vector<Literal> literals;
    for (const int32_t label : working_) {
      const double mass = mass_[static_cast<size_t>(label)];
      const bool is_carried = 2 * mass <= total;
      literals.push_back({is_carried ? mass : total - mass, label, is_carried});
    }
    std::ranges::sort(literals, [](const Literal& a, const Literal& b) {
      return a.held_by > b.held_by || (a.held_by == b.held_by && a.label < b.label);
    });
    const auto n = static_cast<int32_t>(literals.size());
    std::vector<int32_t> lacks;  // ranks: a set's labels are about so many at the most, as most sets carry each
    for (int32_t k = 0; k < n; ++k) {
      if (literals[static_cast<size_t>(k)].carries) {
        rank_of_[static_cast<size_t>(literals[static_cast<size_t>(k)].label)] = k;
      } else {
        lacks.push_back(k);
      }
    }
    std::vector<double> gained(literals.size());      // by literal: mass of the sets for which it is the first to hold
    std::vector<int64_t> gained_sets(literals.size());
    for (const int32_t set : here) {
      int32_t first = n;
      for (const int32_t label : labels(set)) {
        marked_[static_cast<size_t>(label)] = set;
        const int32_t k = rank_of_[static_cast<size_t>(label)];
        if (k >= 0 && k < first) first = k;
      }
      for (const int32_t k : lacks) {
        if (k > first) break;
        if (marked_[static_cast<size_t>(literals[static_cast<size_t>(k)].label)] != set) first = k;
      }
      rank_[static_cast<size_t>(set)] = first;
      if (first == n) continue;
      gained[static_cast<size_t>(first)] += mass_of(set);
      ++gained_sets[static_cast<size_t>(first)];
    }
    for (const Literal& literal : literals) rank_of_[static_cast<size_t>(literal.label)] = -1;
    double coverage = 0, best = 2 * total;
    int64_t covered = 0;
    size_t size = 0;
    for (size_t k = 0; k < literals.size(); ++k) {
      coverage += gained[k];
      covered += gained_sets[k];
      if (covered == static_cast<int64_t>(here.size())) break;  // a question must split
      if (std::abs(2 * coverage - total) < best) {
        best = std::abs(2 * coverage - total);
        size = k + 1;
      }
    }
    for (size_t k = 0; k < size; ++k) question.push_back(literals[k].carries ? literals[k].label : ~literals[k].label);
  }

  const DistinctSets& sets_;
  bool balanced_;
  int64_t min_examples_;
  std::vector<int32_t> order_;    // sets, so that those of a node stand together
  std::vector<int32_t> rank_;     // by set: its first literal that holds
  std::vector<double> mass_;      // by label
  std::vector<int64_t> count_;    // by label: sets that have it
  std::vector<int32_t> rank_of_;  // by label: its literal "carries", or -1
  std::vector<int32_t> marked_;   // by label: the last set met that has it
  std::vector<int32_t> working_;
};

}  // namespace

DistinctSets distinct_sets(const LabelSets& sets, const float* row_weight) {
  DistinctSets out;
  out.n_labels = sets.n_labels;
  out.set_of_row.assign(static_cast<size_t>(sets.n_rows), -1);
  Numbering numbering(sets, static_cast<size_t>(sets.n_rows));
  for (int64_t i = 0; i < sets.n_rows; ++i) {
    if (!row_weight || row_weight[i] > 0) out.set_of_row[static_cast<size_t>(i)] = numbering.number(i);
  }
  const std::vector<int64_t>& first = numbering.first_rows();
  std::vector<int32_t> sorted(first.size()), place(first.size());
  std::iota(sorted.begin(), sorted.end(), 0);
  std::ranges::sort(sorted, [&](int32_t a, int32_t b) {
    return std::ranges::lexicographical_compare(numbering.of(first[static_cast<size_t>(a)]), numbering.of(first[static_cast<size_t>(b)]));
  });
  out.begin.push_back(0);
  for (size_t k = 0; k < sorted.size(); ++k) {
    place[static_cast<size_t>(sorted[k])] = static_cast<int32_t>(k);
    const Set set = numbering.of(first[static_cast<size_t>(sorted[k])]);
    out.labels.insert(out.labels.end(), set.begin(), set.end());
    out.begin.push_back(static_cast<int64_t>(out.labels.size()));
  }
  out.mass.assign(first.size(), 0.0);
  out.row_begin.assign(first.size() + 1, 0);
  for (int64_t i = 0; i < sets.n_rows; ++i) {
    int32_t& set = out.set_of_row[static_cast<size_t>(i)];
    if (set < 0) continue;
    set = place[static_cast<size_t>(set)];
    out.mass[static_cast<size_t>(set)] += row_weight ? static_cast<double>(row_weight[i]) : 1.0;
    ++out.row_begin[static_cast<size_t>(set) + 1];
  }
  std::partial_sum(out.row_begin.begin(), out.row_begin.end(), out.row_begin.begin());
  out.rows.resize(static_cast<size_t>(out.row_begin.back()));
  std::vector<int64_t> next(out.row_begin.begin(), out.row_begin.end() - 1);
  for (int64_t i = 0; i < sets.n_rows; ++i) {
    const int32_t set = out.set_of_row[static_cast<size_t>(i)];
    if (set >= 0) out.rows[static_cast<size_t>(next[static_cast<size_t>(set)]++)] = static_cast<int32_t>(i);
  }
  return out;
}

CodingShape powerset_shape(const DistinctSets& sets) {
  // Lines 1 to 8: merges; merge k is number n + k, children are merges or sets.
  const int32_t n = sets.size();
  using Entry = std::pair<double, int32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  std::vector<int64_t> n_rows;
  for (int32_t s = 0; s < n; ++s) {
    queue.push({sets.mass[static_cast<size_t>(s)], s});
    n_rows.push_back(sets.n_rows(s));
  }
  std::vector<std::pair<int32_t, int32_t>> merges;
  while (queue.size() > 1) {
    const auto [p_i, s_i] = queue.top();
    queue.pop();
    const auto [p_j, s_j] = queue.top();
    queue.pop();
    queue.push({p_i + p_j, static_cast<int32_t>(n_rows.size())});
    merges.emplace_back(s_i, s_j);
    n_rows.push_back(n_rows[static_cast<size_t>(s_i)] + n_rows[static_cast<size_t>(s_j)]);
  }

  struct Waiting {
    int32_t number;
    int64_t first_row;
    int64_t slot;  // where its number belongs: in children, or -1 for the root
  };
  CodingShape shape;
  std::vector<Waiting> stack{{static_cast<int32_t>(n_rows.size()) - 1, 0, -1}};
  while (!stack.empty()) {
    const Waiting w = stack.back();
    stack.pop_back();
    int32_t& place = w.slot < 0 ? shape.root : shape.children[static_cast<size_t>(w.slot)];
    if (w.number < n) {
      add_rows(shape, sets, w.number);
      add_leaf(shape, sets, w.number, sets.mass[static_cast<size_t>(w.number)]);
      place = ~last_leaf(shape);
      continue;
    }
    const auto [yes, no] = merges[static_cast<size_t>(w.number - n)];
    const auto node = static_cast<int64_t>(shape.nodes.size());
    const int64_t middle = w.first_row + n_rows[static_cast<size_t>(yes)];
    place = static_cast<int32_t>(node);
    shape.nodes.push_back({w.first_row, middle, w.first_row + n_rows[static_cast<size_t>(w.number)]});
    shape.children.insert(shape.children.end(), 2, 0);
    stack.push_back({no, middle, 2 * node + 1});
    stack.push_back({yes, w.first_row, 2 * node});
  }
  return shape;
}

CodingShape annotation_shape(const DistinctSets& sets, bool balanced, int64_t min_examples) {
  return AnnotationGrower(sets, balanced, min_examples).grow();
}

}  // namespace sapwood
