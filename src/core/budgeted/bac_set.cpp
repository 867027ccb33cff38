#include "budgeted/bac_set.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "trees/predict.h"

namespace sapwood {

namespace {

constexpr int64_t kRowsATask = 256;
constexpr int64_t kRowMuchLonger = 8;  // a row so many times longer than the columns is searched, not swept

// One workspace for each thread, made when it has something to do.
class Workspaces {
 public:
  explicit Workspaces(int n_threads) : made_(static_cast<size_t>(n_threads)) {}
  BacWorkspace& of(int thread) {
    auto& workspace = made_[static_cast<size_t>(thread)];
    if (!workspace) workspace = std::make_unique<BacWorkspace>();
    return *workspace;
  }

 private:
  std::vector<std::unique_ptr<BacWorkspace>> made_;
};

template <class Index, class Found>
void find_columns(std::span<const int32_t> columns, Row<Index> row, Found found) {
  const Index *at = row.index, *const end = row.index + row.count;
  const bool search = row.count > kRowMuchLonger * static_cast<int64_t>(columns.size());
  size_t place = 0;
  while (place < columns.size() && at != end) {
    const auto column = static_cast<Index>(columns[place]);
    if (*at == column) {
      found(place++, row.value[at++ - row.index]);
    } else if (*at > column) {
      place = static_cast<size_t>(std::lower_bound(columns.begin() + static_cast<std::ptrdiff_t>(place), columns.end(),
                                                   static_cast<int32_t>(*at)) - columns.begin());
    } else if (search) {
      at = std::lower_bound(at, end, column);
    } else {
      ++at;
    }
  }
}

template <class Index>
void decide_row(const BacSetView& set, Row<Index> row, bool normalize, double* f) {
  const float scale = normalize ? unit_scale(row) : 1.0f;
  std::copy(set.offsets.begin(), set.offsets.end(), f);
  find_columns(set.columns, row, [&](size_t place, float value) {
    const double x = scale * value;
    for (int64_t k = set.column_begin[place]; k < set.column_begin[place + 1]; ++k) f[set.bac[k]] += set.weights[k] * x;
  });
  for (size_t b = 0; b < set.offsets.size(); ++b) {
    if (std::isnan(f[b])) f[b] = 0.0;  // from huge weights of both signs
  }
}

// How much likelier the positive side is, as a logarithm: the loss says so, log(p / (1 - p)) = loss(-f) - loss(f).
double log_odds(Loss loss, double f) {
  if (loss == Loss::logistic) return f;
  const double size = std::abs(f);
  return std::copysign(size <= 1 ? 4 * size : (1 + size) * (1 + size), f);
}

double log_probability(double log_odds) { return -std::log1p(std::exp(-std::abs(log_odds))) + std::min(0.0, log_odds); }

// The labels' log probabilities, down the tree of groups.
void add_up_groups(const BacSetView& set, const double* f, std::vector<double>& of_bac, std::vector<double>& of_label) {
  of_bac[0] = 0.0;
  for (size_t b = 0; b < of_bac.size(); ++b) {  // parents before children
    const double odds = log_odds(set.loss, f[b]);
    for (const int side : {0, 1}) {
      const int32_t child = set.children[2 * b + static_cast<size_t>(side)];
      const double p = of_bac[b] + log_probability(side ? odds : -odds);
      if (child >= 0) of_bac[static_cast<size_t>(child)] = p;
      else of_label[static_cast<size_t>(~child)] = p;
    }
  }
}

template <class Rows, class ForRow>
void for_each_row(const Rows& X, int n_threads, Monitor& monitor, ForRow for_row) {
  parallel_for((X.n_rows + kRowsATask - 1) / kRowsATask, n_threads, monitor, [&](int64_t task, int thread) {
    for (int64_t i = task * kRowsATask; i < std::min(X.n_rows, (task + 1) * kRowsATask); ++i) for_row(i, thread);
  });
}

}  // namespace

template <class Rows>
BacSet train_one_against_all(const Rows& X, const LabelSets& labels, const float* row_scale, const float* row_weight,
                             const BacOptions& options, int n_threads, Monitor& monitor) {
  std::vector<int32_t> rows;
  for (int64_t i = 0; i < labels.n_rows; ++i) {
    if (!row_weight || row_weight[i] > 0) rows.push_back(static_cast<int32_t>(i));
  }
  const auto signs_of = [&](int32_t label) {
    std::vector<int8_t> signs(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      const int32_t *const first = labels.labels + labels.indptr[rows[i]], *const last = labels.labels + labels.indptr[rows[i] + 1];
      signs[i] = std::find(first, last, label) != last ? 1 : -1;
    }
    return signs;
  };
  BacSet set;
  set.bacs.resize(static_cast<size_t>(labels.n_labels));
  Workspaces workspaces(n_threads);
  monitor.total = labels.n_labels;
  parallel_for(labels.n_labels, n_threads, monitor, [&](int64_t task, int thread) {
    const std::vector<int8_t> signs = signs_of(static_cast<int32_t>(task));
    BacProblem problem{rows, signs};
    problem.row_scale = row_scale;
    problem.row_weight = row_weight;
    set.bacs[static_cast<size_t>(task)] = train_bac(X, problem, options, workspaces.of(thread), monitor);
    ++monitor.done;
  });
  return set;
}

template <class Rows>
BacSet train_groups(const Rows& X, const LabelSets& labels, const TreeShape& shape, const float* row_scale,
                    const float* row_weight, const BacOptions& options, int n_threads, Monitor& monitor) {
  std::vector<int32_t> rank(static_cast<size_t>(labels.n_labels), -1);
  for (size_t place = 0; place < shape.order.size(); ++place) rank[static_cast<size_t>(shape.order[place])] = static_cast<int32_t>(place);
  BacSet set;
  std::vector<int32_t> nodes, number(shape.nodes.size(), -1);  // inner nodes of the shape, and their places
  for (size_t v = 0; v < shape.nodes.size(); ++v) {
    if (shape.nodes[v].children.size() < 2) continue;
    number[v] = static_cast<int32_t>(nodes.size());
    nodes.push_back(static_cast<int32_t>(v));
  }
  for (const int32_t v : nodes) {
    for (const int32_t child : shape.nodes[static_cast<size_t>(v)].children) {
      const ShapeNode& below = shape.nodes[static_cast<size_t>(child)];
      set.children.push_back(below.children.size() < 2 ? below.children[0] : number[static_cast<size_t>(child)]);
    }
  }
  set.bacs.resize(nodes.size());
  Workspaces workspaces(n_threads);
  monitor.total = static_cast<int64_t>(nodes.size());
  parallel_for(static_cast<int64_t>(nodes.size()), n_threads, monitor, [&](int64_t task, int thread) {
    const ShapeNode& node = shape.nodes[static_cast<size_t>(nodes[static_cast<size_t>(task)])];
    const int64_t middle = shape.nodes[static_cast<size_t>(node.children[1])].begin;
    std::vector<int32_t> rows;
    std::vector<int8_t> signs;
    for (int64_t i = 0; i < labels.n_rows; ++i) {
      if (labels.indptr[i] == labels.indptr[i + 1] || (row_weight && row_weight[i] == 0)) continue;
      const int32_t place = rank[static_cast<size_t>(labels.labels[labels.indptr[i]])];
      if (place < node.begin || place >= node.end) continue;
      rows.push_back(static_cast<int32_t>(i));
      signs.push_back(place >= middle ? 1 : -1);
    }
    BacProblem problem{rows, signs};
    problem.row_scale = row_scale;
    problem.row_weight = row_weight;
    set.bacs[static_cast<size_t>(task)] = train_bac(X, problem, options, workspaces.of(thread), monitor);
    ++monitor.done;
  });
  return set;
}

template <class Rows>
void predict_top(const BacSetView& set, const Rows& X, bool normalize, int32_t k, int n_threads, int32_t* labels,
                 float* scores, Monitor& monitor) {
  struct Work {
    std::vector<double> decisions, of_bac, of_label;
    std::vector<int32_t> order;
  };
  std::vector<Work> work(static_cast<size_t>(std::max(n_threads, 1)));
  const bool groups = !set.children.empty();
  for_each_row(X, n_threads, monitor, [&](int64_t i, int thread) {
    Work& w = work[static_cast<size_t>(thread)];
    w.decisions.resize(set.offsets.size());
    w.of_bac.resize(set.offsets.size());
    w.of_label.resize(static_cast<size_t>(set.n_labels));
    w.order.resize(static_cast<size_t>(set.n_labels));
    decide_row(set, X.row(i), normalize, w.decisions.data());
    if (groups) add_up_groups(set, w.decisions.data(), w.of_bac, w.of_label);
    const std::vector<double>& value = groups ? w.of_label : w.decisions;
    std::iota(w.order.begin(), w.order.end(), 0);
    std::partial_sort(w.order.begin(), w.order.begin() + k, w.order.end(), [&](int32_t a, int32_t b) {
      const double of_a = value[static_cast<size_t>(a)], of_b = value[static_cast<size_t>(b)];
      return of_a != of_b ? of_a > of_b : a < b;
    });
    for (int32_t place = 0; place < k; ++place) {
      const int32_t label = w.order[static_cast<size_t>(place)];
      const double of_label = value[static_cast<size_t>(label)];
      labels[i * k + place] = label;
      scores[i * k + place] = static_cast<float>(std::exp(groups ? of_label : log_probability(log_odds(set.loss, of_label))));
    }
  });
}

template <class Rows>
void decide(const BacSetView& set, const Rows& X, bool normalize, int n_threads, double* decisions, Monitor& monitor) {
  const auto n = static_cast<int64_t>(set.offsets.size());
  for_each_row(X, n_threads, monitor, [&](int64_t i, int) {
    decide_row(set, X.row(i), normalize, decisions + i * n);
  });
}

#define SAPWOOD_FOR(Rows)                                                                                              \
  template BacSet train_one_against_all(const Rows&, const LabelSets&, const float*, const float*, const BacOptions&,  \
                                        int, Monitor&);                                                                \
  template BacSet train_groups(const Rows&, const LabelSets&, const TreeShape&, const float*, const float*,            \
                               const BacOptions&, int, Monitor&);                                                      \
  template void predict_top(const BacSetView&, const Rows&, bool, int32_t, int, int32_t*, float*, Monitor&);           \
  template void decide(const BacSetView&, const Rows&, bool, int, double*, Monitor&);

SAPWOOD_FOR(CsrRows<int32_t>)
SAPWOOD_FOR(CsrRows<int64_t>)
SAPWOOD_FOR(DenseRows)
#undef SAPWOOD_FOR

}  // namespace sapwood
