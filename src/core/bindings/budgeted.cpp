#include "bindings/budgeted.h"

#include <nanobind/stl/optional.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>

#include "bindings/bind.h"
#include "bindings/interruptible.h"
#include "bindings/rows_view.h"
#include "budgeted/bac_set.h"

namespace sapwood::bindings {

namespace {

nb::dict to_dict(BacSolution&& found) {
  const size_t n_columns = found.columns.size(), n_folds = found.offset.size();
  nb::list planes;
  for (std::vector<int32_t>& plane : found.planes) planes.append(to_numpy(std::move(plane)));
  nb::dict out;
  out["columns"] = to_numpy(std::move(found.columns));
  out["weights"] = to_numpy(std::move(found.weights), {n_columns, n_folds});
  out["offset"] = to_numpy(std::move(found.offset));
  out["planes"] = planes;
  out["plane_norms"] = to_numpy(std::move(found.plane_norms));
  out["objective"] = to_numpy(std::move(found.objective));
  out["bound"] = to_numpy(std::move(found.bound));
  out["steps"] = found.steps;
  return out;
}

// One problem over all rows: what the parity tests compare with the reference, fold by fold.
nb::dict train_one_bac(const RowsView& X, const Array<int8_t>& signs, const nb::dict& options_named,
                       std::optional<Array<float>> row_scale, std::optional<Array<float>> row_weight,
                       std::optional<Array<uint8_t>> fold, int32_t n_folds, const nb::object& progress) {
  const auto n = static_cast<size_t>(X.n_rows());
  const BacOptions options = bac_options(options_named);
  if (signs.shape(0) != n) throw nb::value_error("X and the signs differ in length");
  for (size_t i = 0; i < n; ++i) {
    if (signs(i) != 1 && signs(i) != -1) throw nb::value_error("signs must be -1 or +1");
  }
  if (n_folds < 1 || n_folds > 255) throw nb::value_error("there may be 1 to 255 folds");
  if (X.n_rows() > INT32_MAX || X.n_columns() >= INT32_MAX) throw nb::value_error("more than 2^31 - 2 rows or columns are not supported");
  std::vector<int32_t> rows(n);
  std::iota(rows.begin(), rows.end(), 0);
  BacProblem problem{rows, {signs.data(), n}};
  problem.row_scale = data_or_null(row_scale, n, "row_scale");
  problem.row_weight = data_or_null(row_weight, n, "row_weight");
  problem.fold = data_or_null(fold, n, "fold");
  problem.n_folds = n_folds;
  BacSolution found;
  run_interruptible(progress, [&](Monitor& monitor) {
    BacWorkspace workspace;
    X.visit([&](const auto& view) { found = train_bac(view, problem, options, workspace, monitor); });
  });
  return to_dict(std::move(found));
}

// Two labels: the second is the positive one.
TreeShape pair_of_labels() { return {{0, 1}, {{0, 2, {1, 2}}, {0, 1, {~0}}, {1, 2, {~1}}}}; }

// Trains the classifiers of all labels, or of all groups of labels, and gives them as the arrays of a BacSet.
nb::dict train_bac_set(const RowsView& X, const Array<int64_t>& label_indptr, const Array<int32_t>& label_codes, int32_t n_labels,
                       std::optional<Array<float>> row_weight, bool groups, const nb::dict& options_named, bool normalize,
                       uint64_t seed, int n_threads, const nb::object& progress) {
  const BacOptions options = bac_options(options_named);
  BacSet set;
  run_interruptible(progress, [&](Monitor& monitor) {
    const TrainingSet given(X, label_indptr, label_codes, n_labels, row_weight, normalize);
    X.visit([&](const auto& rows) {
      if (!groups) {
        set = train_one_against_all(rows, given.labels, given.scale(), given.row_weight, options, n_threads, monitor);
        return;
      }
      const TreeShape shape = n_labels == 2 ? pair_of_labels() : cluster_labels(rows, given.scale(), LabelRows(given.all_labels), {2, 1, true, seed}, n_threads, monitor);
      set = train_groups(rows, given.labels, shape, given.scale(), given.row_weight, options, n_threads, monitor);
    });
  });
  std::vector<int64_t> begin{0};
  std::vector<int32_t> columns, n_planes;
  std::vector<double> weights, offsets, objective, bound;
  for (const BacSolution& bac : set.bacs) {
    columns.insert(columns.end(), bac.columns.begin(), bac.columns.end());
    weights.insert(weights.end(), bac.weights.begin(), bac.weights.end());
    begin.push_back(static_cast<int64_t>(columns.size()));
    offsets.push_back(bac.offset[0]);
    objective.push_back(bac.objective.back());
    bound.push_back(bac.bound.back());
    n_planes.push_back(static_cast<int32_t>(bac.planes.size()));
  }
  nb::dict out;
  out["begin"] = to_numpy(std::move(begin));
  out["columns"] = to_numpy(std::move(columns));
  out["weights"] = to_numpy(std::move(weights));
  out["offsets"] = to_numpy(std::move(offsets));
  out["children"] = to_numpy(std::move(set.children));
  out["objective"] = to_numpy(std::move(objective));
  out["bound"] = to_numpy(std::move(bound));
  out["n_planes"] = to_numpy(std::move(n_planes));
  return out;
}

// Trained classifiers, turned over for prediction. Owns what it reads.
class BacSetModel {
 public:
  BacSetModel(const nb::dict& arrays, int32_t n_labels, int64_t n_columns, const std::string& loss)
      : n_labels_(n_labels), loss_(loss_named(loss)) {
    nb::list owners;
    const auto begin = model_array<int64_t>(arrays, "begin", owners);
    const auto columns = model_array<int32_t>(arrays, "columns", owners);
    const auto weights = model_array<double>(arrays, "weights", owners);
    const auto offsets = model_array<double>(arrays, "offsets", owners);
    const auto children = model_array<int32_t>(arrays, "children", owners);
    check(begin, columns, weights, offsets, n_columns);
    check_children(children, offsets.size());
    offsets_.assign(offsets.begin(), offsets.end());
    children_.assign(children.begin(), children.end());
    turn_over(begin, columns, weights);
  }

  nb::tuple top(const RowsView& X, int32_t k, bool normalize, int n_threads) const {
    if (k < 1 || k > n_labels_) throw nb::value_error("k is out of range");
    const auto n = static_cast<size_t>(X.n_rows()), width = static_cast<size_t>(k);
    std::vector<int32_t> labels(n * width);
    std::vector<float> scores(n * width);
    answer(n, [&](Monitor& monitor) {
      X.visit([&](const auto& rows) { predict_top(view(), rows, normalize, k, n_threads, labels.data(), scores.data(), monitor); });
    });
    return nb::make_tuple(to_numpy(std::move(labels), {n, width}), to_numpy(std::move(scores), {n, width}));
  }

  nb::object decisions(const RowsView& X, bool normalize, int n_threads) const {
    const auto n = static_cast<size_t>(X.n_rows()), width = offsets_.size();
    std::vector<double> decisions(n * width);
    answer(n, [&](Monitor& monitor) {
      X.visit([&](const auto& rows) { decide(view(), rows, normalize, n_threads, decisions.data(), monitor); });
    });
    return to_numpy(std::move(decisions), {n, width});
  }

 private:
  static void require(bool ok) {
    if (!ok) throw nb::value_error("the model is damaged: its classifiers do not fit together");
  }

  static void check(std::span<const int64_t> begin, std::span<const int32_t> columns, std::span<const double> weights,
                    std::span<const double> offsets, int64_t n_columns) {
    const size_t n = offsets.size();
    require(n >= 1 && n < INT32_MAX && begin.size() == n + 1 && begin[0] == 0 && begin[n] == static_cast<int64_t>(columns.size()));
    require(weights.size() == columns.size());
    for (size_t b = 0; b < n; ++b) require(begin[b] <= begin[b + 1]);
    for (const int32_t column : columns) require(column >= 0 && column < n_columns);
  }

  // One-against-all has a classifier for each label; in groups each bac and each label hangs below one bac that comes before.
  void check_children(std::span<const int32_t> children, size_t n_bacs) const {
    const auto n_labels = static_cast<size_t>(std::max(n_labels_, 0));
    if (children.empty()) return require(n_bacs == n_labels);
    require(n_labels == n_bacs + 1 && children.size() == 2 * n_bacs);
    std::vector<char> label_seen(n_labels), bac_seen(n_bacs);
    for (size_t at = 0; at < children.size(); ++at) {
      const int32_t child = children[at];
      const auto place = static_cast<size_t>(child >= 0 ? child : ~child);
      require(child >= 0 ? place > at / 2 && place < n_bacs : place < n_labels);
      char& seen = child >= 0 ? bac_seen[place] : label_seen[place];
      require(!seen);
      seen = 1;
    }
  }

  void turn_over(std::span<const int64_t> begin, std::span<const int32_t> columns, std::span<const double> weights) {
    std::vector<int64_t> order(columns.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return columns[static_cast<size_t>(a)] < columns[static_cast<size_t>(b)]; });
    std::vector<int32_t> bac_of(columns.size());
    for (size_t b = 0; b + 1 < begin.size(); ++b) {
      std::fill(bac_of.begin() + begin[b], bac_of.begin() + begin[b + 1], static_cast<int32_t>(b));
    }
    for (const int64_t entry : order) {
      const auto at = static_cast<size_t>(entry);
      if (columns_.empty() || columns_.back() != columns[at]) {
        columns_.push_back(columns[at]);
        column_begin_.push_back(static_cast<int64_t>(bac_.size()));
      }
      bac_.push_back(bac_of[at]);
      weights_.push_back(weights[at]);
    }
    column_begin_.push_back(static_cast<int64_t>(bac_.size()));
  }

  [[nodiscard]] BacSetView view() const {
    return {columns_, column_begin_, bac_.data(), weights_.data(), offsets_, children_, n_labels_, loss_};
  }

  int32_t n_labels_;
  Loss loss_;
  std::vector<int32_t> columns_, bac_, children_;
  std::vector<int64_t> column_begin_;
  std::vector<double> weights_, offsets_;
};

}  // namespace

void bind_budgeted(nb::module_& m) {
  m.def("train_bac_set", &train_bac_set, nb::arg("X"), nb::arg("label_indptr"), nb::arg("labels"), nb::kw_only(), nb::arg("n_labels"),
        nb::arg("row_weight").none(), nb::arg("groups"), nb::arg("options"), nb::arg("normalize"), nb::arg("seed"),
        nb::arg("n_threads"), nb::arg("progress").none(), "Train the classifiers of a BacSet; returns its arrays.");
  nb::class_<BacSetModel>(m, "BacSet", "Budget-aware classifiers that tell labels apart, read only.")
      .def(nb::init<const nb::dict&, int32_t, int64_t, const std::string&>(), nb::arg("arrays"), nb::kw_only(), nb::arg("n_labels"),
           nb::arg("n_columns"), nb::arg("loss"))
      .def("top", &BacSetModel::top, nb::arg("X"), nb::kw_only(), nb::arg("k"), nb::arg("normalize"), nb::arg("n_threads"),
           "The k best labels of each row: codes and scores, best first.")
      .def("decisions", &BacSetModel::decisions, nb::arg("X"), nb::kw_only(), nb::arg("normalize"), nb::arg("n_threads"),
           "f(x) of every classifier for each row.");
  m.def("train_bac", &train_one_bac, nb::arg("X"), nb::arg("signs"), nb::arg("options"), nb::kw_only(),
        nb::arg("row_scale").none() = nb::none(), nb::arg("row_weight").none() = nb::none(), nb::arg("fold").none() = nb::none(),
        nb::arg("n_folds") = 1, nb::arg("progress").none() = nb::none(),
        "Train one budget-aware classifier, or one for each fold with the same features.");
}

}  // namespace sapwood::bindings
