// Trees of sparse linear classifiers over arrays that Python holds: its own, or mapped from a file.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bindings/interruptible.h"
#include "bindings/rows_view.h"
#include "trees/coding_tree.h"
#include "trees/linear_trees.h"
#include "trees/predict.h"

namespace sapwood::bindings {

inline nb::dict to_dict(LinearTreeArrays&& a) {
  nb::dict out;
  out["roots"] = to_numpy(std::move(a.roots));
  out["children"] = to_numpy(std::move(a.children));
  out["node_begin"] = to_numpy(std::move(a.node_begin));
  out["features"] = to_numpy(std::move(a.features));
  out["weights"] = to_numpy(std::move(a.weights));
  out["bias"] = to_numpy(std::move(a.bias));
  out["leaf_begin"] = to_numpy(std::move(a.leaf_begin));
  out["leaf_labels"] = to_numpy(std::move(a.leaf_labels));
  out["leaf_scores"] = to_numpy(std::move(a.leaf_scores));
  return out;
}

class Trees {
 public:
  Trees(const nb::dict& arrays, int32_t n_labels, int64_t n_features) {
    const auto get = [&]<class T>(const char* name, size_t& size) {
      const nb::object held = arrays[name];
      Array<T> array;
      if (!nb::try_cast(held, array, false)) {
        throw nb::value_error(("the model is damaged: its array '" + std::string(name) + "' is of another kind").c_str());
      }
      owners_.append(array);
      size = array.shape(0);
      return array.data();
    };
    size_t roots, children, node_begin, features, weights, bias, leaf_begin, leaf_labels, leaf_scores;
    trees_.roots = get.template operator()<int32_t>("roots", roots);
    trees_.children = get.template operator()<int32_t>("children", children);
    trees_.node_begin = get.template operator()<int64_t>("node_begin", node_begin);
    trees_.features = get.template operator()<int32_t>("features", features);
    trees_.weights = get.template operator()<float>("weights", weights);
    trees_.bias = get.template operator()<float>("bias", bias);
    trees_.leaf_begin = get.template operator()<int64_t>("leaf_begin", leaf_begin);
    trees_.leaf_labels = get.template operator()<int32_t>("leaf_labels", leaf_labels);
    trees_.leaf_scores = get.template operator()<float>("leaf_scores", leaf_scores);
    if (children != 2 * bias || node_begin != bias + 1 || features != weights || leaf_begin == 0 || roots > INT32_MAX ||
        children > INT32_MAX || leaf_begin > INT32_MAX || (leaf_scores != 0 && leaf_scores != leaf_labels)) {
      throw nb::value_error("the model is damaged: its arrays do not fit together");
    }
    if (leaf_scores == 0) trees_.leaf_scores = nullptr;
    trees_.n_trees = static_cast<int32_t>(roots);
    trees_.n_nodes = static_cast<int32_t>(bias);
    trees_.n_leaves = static_cast<int32_t>(leaf_begin) - 1;
    trees_.n_labels = n_labels;
    trees_.n_features = n_features;
    try {
      const nb::gil_scoped_release no_gil;
      check_trees(trees_, static_cast<int64_t>(weights), static_cast<int64_t>(leaf_labels));
    } catch (const std::invalid_argument& e) {
      throw nb::value_error(e.what());
    }
  }

  nb::object leaves(const RowsView& X, bool normalize, int n_threads) const {
    check(X);
    const auto n = static_cast<size_t>(X.n_rows()), width = static_cast<size_t>(trees_.n_trees);
    std::vector<int32_t> out(n * width);
    answer(n, [&](Monitor& monitor) {
      X.visit([&](const auto& rows) { find_leaves(trees_, rows, normalize, n_threads, out.data(), monitor); });
    });
    return to_numpy(std::move(out), {n, width});
  }

  nb::tuple top_by_mean(const RowsView& X, int32_t k, const Array<int32_t>& others, bool normalize, int n_threads) const {
    for (size_t i = 0; i < others.shape(0); ++i) {
      if (others(i) < 0 || others(i) >= trees_.n_labels) throw nb::value_error("a label code is out of range");
    }
    return top(X, k, [&](const auto& rows, TopAnswers answers, Monitor& monitor) {
      sapwood::top_by_mean(trees_, rows, normalize, others.data(), static_cast<int64_t>(others.shape(0)), n_threads, answers, monitor);
    });
  }

  nb::tuple top_by_search(const RowsView& X, int32_t k, int32_t beam, float slope, bool normalize, int n_threads) const {
    return top(X, k, [&](const auto& rows, TopAnswers answers, Monitor& monitor) {
      sapwood::top_by_search(trees_, rows, normalize, beam, slope, n_threads, answers, monitor);
    });
  }

  nb::tuple sets_by_search(const RowsView& X, int32_t beam, float slope, bool normalize, int n_threads) const {
    check(X);
    if (beam < 1) throw nb::value_error("beam must be at least 1");
    Reached found;
    answer(static_cast<size_t>(X.n_rows()), [&](Monitor& monitor) {
      X.visit([&](const auto& rows) { found = sapwood::sets_by_search(trees_, rows, normalize, beam, slope, n_threads, monitor); });
    });
    return nb::make_tuple(to_numpy(std::move(found.labels)), to_numpy(std::move(found.indptr)));
  }

  double node_score(const RowsView& X, int64_t row, int32_t node, bool normalize) const {
    check(X);
    if (node < 0 || node >= trees_.n_nodes || row < 0 || row >= X.n_rows()) throw nb::index_error("no such node or row");
    return X.visit([&]<class Rows>(const Rows& rows) {
      RowValues<Rows> values(rows.n_columns);
      values.set(rows.row(row));
      return sapwood::node_score(trees_, node, values, normalize ? unit_scale(rows.row(row)) : 1.0f);
    });
  }

 private:
  void check(const RowsView& X) const {
    if (X.n_columns() != trees_.n_features) throw nb::value_error("X has another number of columns than the model");
  }

  template <class Find>
  nb::tuple top(const RowsView& X, int32_t k, Find find) const {
    check(X);
    if (k < 1 || k > trees_.n_labels) throw nb::value_error("k is out of range");
    const auto n = static_cast<size_t>(X.n_rows()), width = static_cast<size_t>(k);
    std::vector<int32_t> labels(n * width);
    std::vector<float> scores(n * width);
    answer(n, [&](Monitor& monitor) {
      X.visit([&](const auto& rows) { find(rows, TopAnswers{labels.data(), scores.data(), k}, monitor); });
    });
    return nb::make_tuple(to_numpy(std::move(labels), {n, width}), to_numpy(std::move(scores), {n, width}));
  }

  LinearTrees trees_{};
  nb::list owners_;
};

}  // namespace sapwood::bindings
