#include <array>
#include <map>
#include <random>
#include <vector>

#include "check.h"
#include "random_rows.h"
#include "regressors/online_regressors.h"

using namespace sapwood;

namespace {

// One regressor as src/sapwood/reference/linear.py has it. Keys: columns, -1 the constant.
struct PlainRegressor {
  std::map<int64_t, float> weights, squares;

  float score(const std::vector<std::pair<int64_t, float>>& x, int n_sums) const {
    std::vector<float> sums(static_cast<size_t>(n_sums), 0.0f);
    for (size_t i = 0; i < x.size(); ++i) {
      const auto w = weights.find(x[i].first);
      const float product = (w == weights.end() ? 0.0f : w->second) * x[i].second;
      sums[i % sums.size()] = sums[i % sums.size()] + product;
    }
    for (size_t half = sums.size() / 2; half > 0; half /= 2) {
      for (size_t i = 0; i < half; ++i) sums[i] = sums[i] + sums[i + half];
    }
    return sums[0];
  }

  void learn(const std::vector<std::pair<int64_t, float>>& x, int n_sums, const Rule& rule, double target, double weight) {
    const float scale = push(rule, score(x, n_sums), target, weight);
    for (const auto& [key, value] : x) {
      const float d = scale * value;
      if (d == 0) continue;
      float move = rule.step * d;
      if (rule.adagrad) {
        float& square = squares.try_emplace(key, rule.initial).first->second;
        square = square + d * d;
        move = move / std::sqrt(square);
      }
      weights[key] = weights[key] - move;
    }
  }
};

template <class Index>
std::vector<std::pair<int64_t, float>> plain(Row<Index> row, float scale) {
  std::vector<std::pair<int64_t, float>> x;
  for (int64_t k = 0; k < row.count; ++k) x.emplace_back(row.index[k], row.value[k] * scale);
  x.emplace_back(-1, 1.0f);
  return x;
}

// A tree that grows, loses nodes and learns, beside regressors that stand alone: all scores agree to the bit.
// A dense regressor reads a sparse row as the dense one that it stands for: `seen`.
template <class Rows, class Seen>
void compare(const Rows& X, const Seen& seen, bool dense, const Rule& rule, int width) {
  std::mt19937 random(3);
  OnlineRegressors ours(rule, dense, X.n_columns, width);
  std::map<int32_t, std::vector<PlainRegressor>> plain_ones;
  std::vector<int32_t> parents;
  OnlineWork work;
  const auto parent_of = [&](int32_t node) { return parents[static_cast<size_t>(node)]; };
  const int n_sums = dense ? 16 : 1;
  for (int64_t i = 0; i < X.n_rows; ++i) {
    const float scale = i % 3 ? 1.0f : 0.75f;
    const auto x = plain(seen.row(i), scale);
    ours.start(X.row(i), scale, work);
    if (i % 2 == 0) {
      const auto node = static_cast<int32_t>(parents.size());
      parents.push_back(node == 0 ? -1 : static_cast<int32_t>(random() % static_cast<uint32_t>(node)));
      while (node > 0 && !plain_ones.contains(parents.back())) parents.back() = parents[static_cast<size_t>(parents.back())];
      ours.add(node, parent_of);
      plain_ones[node].resize(static_cast<size_t>(width));
    }
    for (int step = 0; step < 6; ++step) {
      auto& [node, regressors] = *std::next(plain_ones.begin(), static_cast<int64_t>(random() % plain_ones.size()));
      const int which = static_cast<int>(random() % static_cast<uint32_t>(width));
      PlainRegressor& p = regressors[static_cast<size_t>(which)];
      CHECK(ours.scores(node, work)[which] == p.score(x, n_sums));
      const double target = random() % 2 ? 1.0 : -1.0;
      p.learn(x, n_sums, rule, target, 1.5);
      CHECK(ours.learn(node, which, target, 1.5, work) == p.score(x, n_sums));
      CHECK(ours.scores_to_learn(node, work)[which] == p.score(x, n_sums));
    }
    if (i % 7 == 6 && plain_ones.size() > 3) {  // a node that is not the root goes; its children move up
      const int32_t gone = std::next(plain_ones.begin(), 1 + static_cast<int64_t>(random() % (plain_ones.size() - 1)))->first;
      ours.remove(gone);
      plain_ones.erase(gone);
      for (int32_t& parent : parents) {
        if (parent == gone) parent = parents[static_cast<size_t>(gone)];
      }
    }
  }
}

}  // namespace

TEST(online_regressors_agree_with_plain_ones) {
  const RandomRows data(200, 40, 9);
  for (const bool adagrad : {false, true}) {
    for (const OnlineLoss loss : {OnlineLoss::squared, OnlineLoss::logistic, OnlineLoss::absolute}) {
      for (const int width : {1, 3, 16}) {
        const Rule rule{loss, adagrad, 0.3f, 0.01f};
        compare(data.csr(), data.csr(), false, rule, width);
        compare(data.dense_rows(), data.dense_rows(), true, rule, width);
        compare(data.csr(), data.dense_rows(), true, rule, width);
        compare(data.dense_rows(), data.csr(), false, rule, width);
      }
    }
  }
}

TEST(a_bank_comes_back_from_its_arrays) {
  const RandomRows data(60, 30, 5);
  const Rule rule{OnlineLoss::squared, true, 0.5f, 0.02f};
  LinePool pool;
  OnlineBank bank(rule, pool);
  OnlineRow row;
  std::vector<int32_t> lines(64);
  std::array<float, 16> pushes{};
  for (int64_t i = 0; i < data.n_rows; ++i) {
    row.take_sparse(data.csr().row(i), 1.0f);
    row.add_path(path_key(static_cast<int32_t>(i % 4)), 1.0f);
    row.add_path(path_key(static_cast<int32_t>(i % 4), 7), 0.5f);
    pushes[static_cast<size_t>(i % 16)] = 0.25f;
    bank.find_or_add(row, lines.data());
    exact_kernels().learn_lanes(bank.weights(), bank.squares(), {lines.data(), row.values.data(), static_cast<int64_t>(row.values.size())}, pushes.data(), 0.5f);
    bank.find_or_add_path(row, lines.data());
    exact_kernels().learn_lanes(bank.weights(), bank.squares(), {lines.data(), row.path_values.data(), 2}, pushes.data(), 0.5f);
  }
  OnlineBank again(rule, pool);
  CHECK(again.restore(bank.keys(), bank.weights() + 16, bank.squares() + 16));
  CHECK(again.n_lines() == bank.n_lines());
  std::array<float, 16> a{}, b{};
  for (const auto& [from, scores] : {std::pair<const OnlineBank*, float*>{&bank, a.data()}, {&again, b.data()}}) {
    from->find(row, lines.data());
    exact_kernels().add_scores(from->weights(), {lines.data(), row.values.data(), static_cast<int64_t>(row.values.size())}, scores);
    from->find_path(row, lines.data());
    exact_kernels().add_scores(from->weights(), {lines.data(), row.path_values.data(), 2}, scores);
  }
  CHECK(a == b);
  CHECK(a[3] != 0.0f);
  std::vector<uint64_t> twice{5, 5};
  std::vector<float> zeros(64);
  CHECK(!again.restore(twice, zeros.data(), zeros.data()));
}

TEST(a_line_pool_gives_each_line_to_one_at_a_time) {
  LinePool pool;
  std::vector<LinePool::Lines> held(20);
  const auto fill = [](float* lines, size_t n, float value) { std::fill_n(lines, n * kPoolLine, value); };
  for (size_t round = 0; round < 200; ++round) {
    const size_t i = round * 7 % held.size(), n = 1 + round * round % 100;
    held[i] = pool.take(n);
    CHECK(LinePool::room(n) >= n);
    CHECK(reinterpret_cast<uintptr_t>(held[i].get()) % 64 == 0);
    fill(held[i].get(), LinePool::room(n), static_cast<float>(round));
    for (size_t other = 0; other < held.size(); ++other) {
      if (held[other].get()) CHECK(held[other].get()[0] == held[other].get()[kPoolLine + 1]);
    }
  }
}
