// Trained trees over arrays that Python holds: its own, or mapped from a file.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "bindings/interruptible.h"
#include "bindings/rows_view.h"
#include "bindings/targets.h"
#include "regressors/packer.h"
#include "trees/predict.h"

namespace sapwood::bindings {

class Forest {
 public:
  Forest(const nb::dict& arrays, int32_t n_labels, bool half, const std::string& loss) {
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
    size_t trees, node_groups, node_labels, group_banks, group_buckets, group_pool, keys, lines, pool, bias, targets;
    forest_.roots = get.template operator()<int32_t>("roots", trees);
    forest_.node_groups = get.template operator()<int32_t>("node_groups", node_groups);
    forest_.node_labels = get.template operator()<int32_t>("node_labels", node_labels);
    forest_.group_banks = get.template operator()<int32_t>("group_banks", group_banks);
    forest_.group_buckets = get.template operator()<int64_t>("group_buckets", group_buckets);
    forest_.group_pool = get.template operator()<int64_t>("group_pool", group_pool);
    forest_.keys = get.template operator()<uint32_t>("keys", keys);
    forest_.lines = get.template operator()<uint32_t>("lines", lines);
    forest_.pool = get.template operator()<uint16_t>("pool", pool);
    forest_.bias = get.template operator()<float>("bias", bias);
    forest_.targets = get.template operator()<int32_t>("targets", targets);
    if (node_groups != node_labels + 1 || group_banks == 0 || group_buckets != group_banks || group_pool != group_banks ||
        keys != lines || keys % 16 || bias != targets || bias % 16 || std::max({bias, node_groups, group_banks}) > INT32_MAX) {
      throw nb::value_error("the model is damaged: its arrays do not fit together");
    }
    forest_.n_trees = static_cast<int32_t>(trees);
    forest_.n_nodes = static_cast<int32_t>(node_labels);
    forest_.n_groups = static_cast<int32_t>(group_banks) - 1;
    forest_.n_banks = static_cast<int32_t>(bias / 16);
    forest_.n_labels = n_labels;
    forest_.half = half;
    forest_.loss = loss_named(loss);
    try {
      const nb::gil_scoped_release no_gil;
      check_forest(forest_, static_cast<int64_t>(keys / 16), static_cast<int64_t>(pool));
    } catch (const std::invalid_argument& e) {
      throw nb::value_error(e.what());
    }
    std::vector<char> is_root(node_labels);
    for (int32_t t = 0; t < forest_.n_trees; ++t) is_root[static_cast<size_t>(forest_.roots[t])] = 1;
    forest_.fewest_labels = n_labels;
    for (int32_t v = 0; v < forest_.n_nodes; ++v) {
      if (!is_root[static_cast<size_t>(v)]) forest_.fewest_labels = std::min(forest_.fewest_labels, forest_.node_labels[v]);
    }
  }

  nb::tuple top(const RowsView& X, int32_t k, int32_t beam, float min_beam_share, bool normalize, int n_threads) const {
    if (k < 1 || k > forest_.n_labels) throw nb::value_error("k is out of range");
    const auto n = static_cast<size_t>(X.n_rows());
    const auto width = static_cast<size_t>(k);
    std::vector<int32_t> labels(n * width);
    std::vector<float> scores(n * width);
    const PredictOptions options{std::min(beam, forest_.n_nodes), k, min_beam_share, normalize, n_threads};
    const auto predict = [&](Monitor& monitor) {
      X.visit([&](const auto& rows) { predict_top(forest_, rows, options, labels.data(), scores.data(), monitor); });
    };
    answer(n, predict);
    return nb::make_tuple(to_numpy(std::move(labels), {n, width}), to_numpy(std::move(scores), {n, width}));
  }

  // The labels that a row comes to through children that all say yes, as CSR.
  nb::tuple reached(const RowsView& X, bool normalize, int n_threads) const {
    Reached found;
    answer(static_cast<size_t>(X.n_rows()), [&](Monitor& monitor) {
      X.visit([&](const auto& rows) { found = descend_by_threshold(forest_, rows, normalize, n_threads, monitor); });
    });
    return nb::make_tuple(to_numpy(std::move(found.labels)), to_numpy(std::move(found.indptr)));
  }

  // Raw scores of the children of a node, and what they are: node numbers, or ~label.
  nb::tuple node_scores(const RowsView& X, int64_t row, int32_t node, bool normalize) const {
    if (node < 0 || node >= forest_.n_nodes || row < 0 || row >= X.n_rows()) throw nb::index_error("no such node or row");
    const int32_t first = forest_.group_banks[forest_.node_groups[node]];
    const int32_t last = forest_.group_banks[forest_.node_groups[node + 1]];
    std::vector<float> scores(static_cast<size_t>(last - first) * 16);
    X.visit([&](const auto& rows) { score_node(forest_, rows, row, node, normalize, scores.data()); });
    std::vector<int32_t> children;
    std::vector<float> child_scores;
    for (size_t i = 0; i < scores.size(); ++i) {
      const int32_t target = forest_.targets[static_cast<size_t>(first) * 16 + i];
      if (target == kNoTarget) continue;
      children.push_back(target);
      child_scores.push_back(scores[i]);
    }
    return nb::make_tuple(to_numpy(std::move(children)), to_numpy(std::move(child_scores)));
  }

  [[nodiscard]] const PackedForest& packed() const { return forest_; }

 private:
  PackedForest forest_{};
  nb::list owners_;
};

}  // namespace sapwood::bindings
