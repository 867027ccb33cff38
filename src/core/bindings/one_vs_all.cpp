#include "trees/online_one_vs_all.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <mutex>
#include <shared_mutex>

#include "bindings/bind.h"
#include "bindings/forest.h"

namespace sapwood::bindings {

namespace {

// Labels whose rows are not reached, because learning is interrupted, are known all the same.
struct GrowsAtTheEnd {
  OnlineOneVsAll& model;
  int32_t n_labels;
  ~GrowsAtTheEnd() { model.grow(n_labels); }
};

class OneVsAll {
 public:
  OneVsAll(const std::string& loss, float step, bool normalize, int32_t negatives, uint64_t random_state)
      : model_({loss_named(loss), step, normalize, negatives}, random_state) {}
  OneVsAll(const OneVsAll&) = delete;

  void learn(const RowsView& X, const Array<int64_t>& label_indptr, const Array<int32_t>& labels, int32_t n_labels,
             int32_t n_known, std::optional<Array<float>> row_weight, bool predict_first, const nb::object& progress) {
    const LabelSets sets = label_sets(label_indptr, labels, n_labels);
    if (sets.n_rows != X.n_rows()) throw nb::value_error("X and the labels differ in length");
    if (n_known < 0 || n_known > n_labels) throw nb::value_error("n_known is out of range");
    const float* const weight = data_or_null(row_weight, static_cast<size_t>(X.n_rows()), "sample_weight");
    run_interruptible(progress, [&](Monitor& monitor) {
      const std::unique_lock alone(mutex_);
      monitor.total = X.n_rows();
      const GrowsAtTheEnd all_labels{model_, n_labels};
      X.visit([&](const auto& rows) { model_.learn(rows, sets.indptr, sets.labels, n_known, weight, predict_first, monitor); });
    });
  }

  nb::tuple top(const RowsView& X, int32_t k, int n_threads) const {
    if (k < 1 || k > model_.n_labels()) throw nb::value_error("k is out of range");
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

  float label_score(const RowsView& X, int64_t row, int32_t label) const {
    if (row < 0 || row >= X.n_rows() || label < 0 || label >= model_.n_labels()) throw nb::index_error("no such row or label");
    const std::shared_lock shared(mutex_);
    return X.visit([&](const auto& rows) { return model_.label_score(rows, row, label); });
  }

  // The model as arrays: for each bank its features, and 32 floats for the bias and for each feature.
  nb::dict state() const {
    const std::shared_lock shared(mutex_);
    std::vector<int64_t> bank_lines{0};
    std::vector<uint32_t> features;
    std::vector<float> lines;
    for (const GrowingBank& bank : model_.banks()) {
      features.insert(features.end(), bank.features().begin(), bank.features().end());
      lines.insert(lines.end(), bank.lines(), bank.lines() + bank.n_lines() * kOnlineLine);
      bank_lines.push_back(bank_lines.back() + bank.n_lines());
    }
    nb::dict out;
    out["bank_lines"] = to_numpy(std::move(bank_lines));
    out["features"] = to_numpy(std::move(features));
    out["lines"] = to_numpy(std::move(lines));
    out["random_state"] = to_numpy(std::vector<uint64_t>{model_.random_state()});
    out["progressive"] = to_numpy(std::vector<double>{model_.progressive().wrong, model_.progressive().seen});
    return out;
  }

  void restore(const nb::dict& arrays, int32_t n_labels) {
    const auto bank_lines = nb::cast<Array<int64_t>>(arrays["bank_lines"]);
    const auto features = nb::cast<Array<uint32_t>>(arrays["features"]);
    const auto lines = nb::cast<Array<float>>(arrays["lines"]);
    const auto progressive = nb::cast<Array<double>>(arrays["progressive"]);
    model_.grow(n_labels);
    const size_t n = model_.banks().size();
    const auto damaged = [](bool bad) {
      if (bad) throw nb::value_error("the model is damaged: its banks do not fit together");
    };
    damaged(progressive.shape(0) != 2);
    model_.progressive() = {progressive(0), progressive(1)};
    damaged(n_labels < 0 || bank_lines.shape(0) != n + 1 || bank_lines(0) != 0);
    for (size_t b = 0; b < n; ++b) damaged(bank_lines(b) >= bank_lines(b + 1));  // the bias is always there
    const auto total = static_cast<size_t>(bank_lines(n));
    damaged(lines.shape(0) != total * kOnlineLine || features.shape(0) + n != total);
    for (size_t b = 0; b < n; ++b) {
      const auto first = static_cast<size_t>(bank_lines(b));
      const auto n_features = static_cast<size_t>(bank_lines(b + 1)) - first - 1;
      damaged(!model_.banks()[b].restore({features.data() + first - b, n_features}, lines.data() + first * kOnlineLine));
    }
  }

  [[nodiscard]] nb::tuple progressive() const {
    const std::shared_lock shared(mutex_);
    return nb::make_tuple(model_.progressive().wrong, model_.progressive().seen);
  }

  void take(const Forest& forest) { model_.take(forest.packed()); }

 private:
  OnlineOneVsAll model_;
  mutable std::shared_mutex mutex_;  // who learns has the model alone; who predicts shares it
};

}  // namespace

void bind_one_vs_all(nb::module_& m) {
  nb::class_<OneVsAll>(m, "OneVsAll", "One-against-all that learns online.")
      .def(nb::init<const std::string&, float, bool, int32_t, uint64_t>(), nb::kw_only(), nb::arg("loss"), nb::arg("step"),
           nb::arg("normalize"), nb::arg("negatives"), nb::arg("random_state"))
      .def("learn", &OneVsAll::learn, nb::arg("X"), nb::arg("label_indptr"), nb::arg("labels"), nb::kw_only(),
           nb::arg("n_labels"), nb::arg("n_known"), nb::arg("row_weight").none(), nb::arg("predict_first"),
           nb::arg("progress").none(), "Learn rows in their order.")
      .def("progressive", &OneVsAll::progressive, "Weight of the rows predicted wrongly before they were learned, and of all.")
      .def("top", &OneVsAll::top, nb::arg("X"), nb::kw_only(), nb::arg("k"), nb::arg("n_threads"),
           "The k best labels of each row: codes and scores, best first.")
      .def("label_score", &OneVsAll::label_score, nb::arg("X"), nb::kw_only(), nb::arg("row"), nb::arg("label"),
           "What one label's regressor says of one row.")
      .def("state", &OneVsAll::state, "The model as arrays.")
      .def("restore", &OneVsAll::restore, nb::arg("arrays"), nb::kw_only(), nb::arg("n_labels"), "Take back what state() gave.")
      .def("take", &OneVsAll::take, nb::arg("forest"), "Go on from what a forest of one root has learned.");
}

}  // namespace sapwood::bindings
