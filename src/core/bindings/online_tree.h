// What the online trees have in common on their way to Python. A Tree is LomTree, BalancedTree or one of their kind.
#pragma once

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings/interruptible.h"
#include "bindings/rows_view.h"
#include "bindings/targets.h"
#include "regressors/online_regressors.h"
#include "trees/online_stream.h"
#include "trees/trace.h"

namespace sapwood::bindings {

[[noreturn]] inline void damaged(const char* what) {
  throw nb::value_error(("the model is damaged: " + std::string(what)).c_str());
}

// An array of a model file, of just this kind.
template <class T>
std::span<const T> array_of(const nb::dict& arrays, const char* name) {
  const nb::object held = arrays[name];
  Array<T> array;
  if (!nb::try_cast(held, array, false)) damaged(("its array '" + std::string(name) + "' is of another kind").c_str());
  return {array.data(), array.shape(0)};
}

template <class T>
std::vector<T> copy_of(const nb::dict& arrays, const char* name) {
  const std::span<const T> array = array_of<T>(arrays, name);
  return {array.begin(), array.end()};
}

inline OnlineLoss online_loss_named(const std::string& name) {
  if (name == "squared") return OnlineLoss::squared;
  if (name == "logistic") return OnlineLoss::logistic;
  if (name == "absolute") return OnlineLoss::absolute;
  throw nb::value_error("loss must be 'squared', 'logistic' or 'absolute'");
}

inline Rule rule_of(const std::string& loss, const std::string& method, float step, float initial, double tolerance = 0) {
  if (method != "adagrad" && method != "sgd") throw nb::value_error("method must be 'adagrad' or 'sgd'");
  if (!(step > 0) || !(initial > 0)) throw nb::value_error("step and initial must be positive");
  return {online_loss_named(loss), method == "adagrad", step, initial, tolerance};
}

inline void put_routers(nb::dict& out, const OnlineRegressors& routers) {
  auto a = routers.arrays();
  out["router_banks"] = to_numpy(std::move(a.banks));
  out["router_lanes"] = to_numpy(std::move(a.lanes));
  out["bank_lines"] = to_numpy(std::move(a.bank_lines));
  out["bank_keys"] = to_numpy(std::move(a.keys));
  out["weights"] = to_numpy(std::move(a.weights));
  out["squares"] = to_numpy(std::move(a.squares));
}

inline OnlineRegressors::Arrays<OnlineRegressors::View> routers_of(const nb::dict& arrays) {
  return {array_of<int32_t>(arrays, "router_banks"), array_of<int32_t>(arrays, "router_lanes"),
          array_of<int64_t>(arrays, "bank_lines"),   array_of<uint64_t>(arrays, "bank_keys"),
          array_of<float>(arrays, "weights"),        array_of<float>(arrays, "squares")};
}

// Labels of rows, one each, all below n_labels.
inline const int32_t* one_label_a_row(const Array<int32_t>& labels, int64_t n_rows, int32_t n_labels) {
  if (static_cast<int64_t>(labels.shape(0)) != n_rows) throw nb::value_error("X and the labels differ in length");
  for (size_t i = 0; i < labels.shape(0); ++i) {
    if (labels(i) < 0 || labels(i) >= n_labels) throw nb::value_error("a label code is out of range");
  }
  return labels.data();
}

inline nb::list events_of(const Trace& trace) {
  static constexpr const char* kKinds[] = {"route", "target", "split", "swap", "stop", "candidates", "grow"};
  const auto tuple_of = [](const auto& values) {
    nb::list list;
    for (const auto value : values) list.append(value);
    return nb::tuple(list);
  };
  nb::list events;
  for (const TreeEvent& e : trace.events()) {
    events.append(nb::make_tuple(e.example, kKinds[static_cast<int>(e.kind)], tuple_of(e.nodes), tuple_of(e.labels), tuple_of(e.numbers)));
  }
  return events;
}

template <class Tree>
class OnlineTree {
 public:
  template <class... Arguments>
  explicit OnlineTree(int64_t n_columns, Arguments&&... arguments)
      : model_(std::forward<Arguments>(arguments)...), n_columns_(n_columns) {
    if (n_columns < 0 || n_columns >= INT32_MAX) throw nb::value_error("more than 2^31 - 2 columns are not supported");
  }
  OnlineTree(const OnlineTree&) = delete;

  // Learns the rows `passes` times: in order or, given a seed, each time in a new order; n_at_once threads at once.
  void learn(const RowsView& X, const Array<int32_t>& labels, int32_t n_labels, std::optional<Array<float>> row_weight,
             int32_t passes, std::optional<uint64_t> shuffle, bool predict_first, int n_at_once, const nb::object& progress) {
    const int32_t* const label = one_label_a_row(labels, X.n_rows(), n_labels);
    const float* const weight = data_or_null(row_weight, static_cast<size_t>(X.n_rows()), "sample_weight");
    check_columns(X);
    if (n_at_once > 1 && (!kLearnsAtOnce || model_.trace().wanted())) {
      throw nb::value_error("several threads cannot learn at once in a tree that records its events, or of this kind");
    }
    run_interruptible(progress, [&](Monitor& monitor) {
      const std::unique_lock alone(mutex_);
      Random random(shuffle.value_or(0));
      const std::vector<int64_t> weighed = rows_with_weight(X.n_rows(), weight);
      monitor.total = std::ssize(weighed) * passes;
      for (int32_t pass = 0; pass < passes; ++pass) {
        const std::vector<int64_t> order = shuffle ? random_order(weighed, random) : weighed;
        X.visit([&](const auto& rows) {
          if constexpr (kLearnsAtOnce) {
            if (n_at_once > 1) return learn_rows_at_once(model_, rows, label, weight, order, predict_first, n_at_once, monitor);
          }
          learn_rows(model_, rows, label, weight, order, predict_first, monitor);
        });
      }
    });
  }

  [[nodiscard]] nb::tuple top(const RowsView& X, int32_t k, int n_threads) const {
    if (k < 1) throw nb::value_error("k is out of range");
    check_columns(X);
    const auto n = static_cast<size_t>(X.n_rows());
    const auto width = static_cast<size_t>(k);
    std::vector<int32_t> labels(n * width);
    std::vector<float> scores(n * width);
    const auto predict = [&](Monitor& monitor) {
      const std::shared_lock shared(mutex_);
      X.visit([&](const auto& rows) { model_.predict_top(rows, k, n_threads, labels.data(), scores.data(), monitor); });
    };
    answer(n, predict);
    return nb::make_tuple(to_numpy(std::move(labels), {n, width}), to_numpy(std::move(scores), {n, width}));
  }

  // The routers met by a row: their nodes, margins, and where they send it; and the leaf.
  [[nodiscard]] nb::tuple path(const RowsView& X, int64_t row) const {
    if (row < 0 || row >= X.n_rows()) throw nb::index_error("no such row");
    check_columns(X);
    const std::shared_lock shared(mutex_);
    if (model_.nodes().empty()) throw nb::value_error("the tree has learned nothing");
    const auto [steps, leaf] = X.visit([&](const auto& rows) { return model_.path(rows.row(row)); });
    nb::list nodes, margins, children;
    for (const auto& step : steps) {
      nodes.append(step.node);
      margins.append(step.margin);
      children.append(step.child);
    }
    return nb::make_tuple(nodes, margins, children, leaf);
  }

  [[nodiscard]] nb::tuple progressive() const {
    const std::shared_lock shared(mutex_);
    return nb::make_tuple(model_.progressive().wrong, model_.progressive().seen);
  }
  [[nodiscard]] int64_t n_labels() const {
    const std::shared_lock shared(mutex_);
    return model_.n_labels();
  }
  // Bytes of the routers' weights, step state and feature maps.
  [[nodiscard]] size_t router_bytes() const {
    const std::shared_lock shared(mutex_);
    return model_.regressors().bytes();
  }

  void record() { model_.trace().start(); }
  [[nodiscard]] nb::list events() { return events_of(model_.trace()); }

 protected:
  static constexpr bool kLearnsAtOnce = requires { typename Tree::Learner; };

  void check_columns(const RowsView& X) const {
    if (X.n_columns() != n_columns_) throw nb::value_error("X has another number of columns than the model");
  }
  void put_common_state(nb::dict& out) const {
    const std::shared_lock shared(mutex_);
    out["progressive"] = to_numpy(std::vector<double>{model_.progressive().wrong, model_.progressive().seen});
    put_routers(out, model_.regressors());
  }
  void restore_progressive(const nb::dict& arrays) {
    const auto progressive = array_of<double>(arrays, "progressive");
    if (progressive.size() != 2) damaged("its progressive loss is none");
    model_.progressive() = {progressive[0], progressive[1]};
  }

  Tree model_;
  int64_t n_columns_;
  mutable std::shared_mutex mutex_;  // who learns has the model alone; who predicts shares it
};

// Names the common methods of a bound class.
template <class Bound>
void bind_online_tree(nb::class_<Bound>& c) {
  c.def("learn", &Bound::learn, nb::arg("X"), nb::arg("labels"), nb::kw_only(), nb::arg("n_labels"), nb::arg("row_weight").none(),
        nb::arg("passes"), nb::arg("shuffle").none(), nb::arg("predict_first"), nb::arg("n_at_once") = 1,
        nb::arg("progress").none(), "Learn rows, in order or shuffled by a seed; several threads at once, if asked to.")
      .def("top", &Bound::top, nb::arg("X"), nb::kw_only(), nb::arg("k"), nb::arg("n_threads"),
           "The k best labels of each row: codes and scores, best first.")
      .def("path", &Bound::path, nb::arg("X"), nb::kw_only(), nb::arg("row"), "The way of one row.")
      .def("progressive", &Bound::progressive, "Weight of the rows predicted wrongly before they were learned, and of all.")
      .def_prop_ro("n_labels", &Bound::n_labels)
      .def_prop_ro("router_bytes", &Bound::router_bytes)
      .def("record", &Bound::record, "Keep events from now on.")
      .def("events", &Bound::events, "What was decided: (example, kind, nodes, labels, numbers).")
      .def("state", &Bound::state, "The model as arrays.")
      .def("restore", &Bound::restore, nb::arg("arrays"), nb::kw_only(), nb::arg("n_labels"), "Take back what state() gave.");
}

}  // namespace sapwood::bindings
