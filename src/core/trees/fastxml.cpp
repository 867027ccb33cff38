#include "trees/fastxml.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>

#include "solvers/random.h"

namespace sapwood {

namespace {

constexpr int kMostTurns = 50;        // of rankings and sides
constexpr double kLeastGain = 1e-4;   // relative rise of the nDCG for which another turn is worth its time
constexpr float kStep = 1.0f;         // of the separator's learner
constexpr float kFirstRoot = 0.3f;    // root of the squared gradients that it starts from: bounds the first steps
constexpr float kSettled = 0.05f;     // slopes of the loss below this are left alone
constexpr double kWorthAPass = 0.02;  // share of rows above this for which another pass is made

// An L1-regularised logistic regression that learns row by row: follow the regularised leader with a step for each
// column (FTRL-proximal, McMahan et al. 2013). Of the columns only those that the node's rows have are ever touched.
class Separator {
 public:
  explicit Separator(int64_t n_columns) : state_(static_cast<size_t>(n_columns)) {}

  template <class Index>
  double score(Row<Index> row, float scale) const {
    float sum = 0;
    for (int64_t k = 0; k < row.count; ++k) sum += state_[static_cast<size_t>(row.index[k])].weight * row.value[k];
    return static_cast<double>(sum * scale + bias_.weight);
  }

  // `slope` is the derivative of the loss in the score, `l1` the regularisation in proportion to the passes so far.
  template <class Index>
  void learn(Row<Index> row, float scale, float slope, float l1) {
    for (int64_t k = 0; k < row.count; ++k) {
      if (row.value[k] == 0) continue;
      Column& column = state_[static_cast<size_t>(row.index[k])];
      if (column.squares == 0) touched_.push_back(static_cast<int32_t>(row.index[k]));
      move(column, slope * scale * row.value[k], l1);
    }
    move(bias_, slope, 0.0f);
  }

  // Gives the weights that are not 0 to a new node, and forgets.
  void harvest(LinearTreeArrays& out) {
    std::sort(touched_.begin(), touched_.end());
    for (const int32_t feature : touched_) {
      Column& column = state_[static_cast<size_t>(feature)];
      if (column.weight != 0) {
        out.features.push_back(feature);
        out.weights.push_back(column.weight);
      }
      column = {};
    }
    out.node_begin.push_back(static_cast<int64_t>(out.features.size()));
    out.bias.push_back(bias_.weight);
    touched_.clear();
    bias_ = {};
  }

 private:
  struct Column {
    float weight = 0, leader = 0, squares = 0;
  };

  static void move(Column& c, float gradient, float l1) {
    const float squares = c.squares + gradient * gradient + 1e-30f;
    const float root = std::sqrt(squares);
    c.leader += gradient - (root - std::sqrt(c.squares)) / kStep * c.weight;
    c.squares = squares;
    const float beyond = std::abs(c.leader) - l1;
    c.weight = beyond <= 0 ? 0.0f : -std::copysign(beyond, c.leader) * kStep / (kFirstRoot + root);
  }

  std::vector<Column> state_;
  Column bias_;
  std::vector<int32_t> touched_;
};

// What a thread needs to grow trees, kept from one tree to the next.
template <class Rows>
class Grower {
 public:
  Grower(const Rows& X, const LabelSets& sets, const float* row_scale, const float* row_weight, const FastXmlOptions& options,
         Monitor& monitor)
      : X_(X), sets_(sets), row_scale_(row_scale), row_weight_(row_weight), options_(options), monitor_(monitor), separator_(X.n_columns) {
    for (auto& value : value_) value.assign(static_cast<size_t>(sets.n_labels), 0.0f);
    int64_t most = 1;
    for (int64_t i = 0; i < sets.n_rows; ++i) most = std::max(most, sets.indptr[i + 1] - sets.indptr[i]);
    best_.assign(static_cast<size_t>(most) + 1, 0.0f);
    for (size_t k = 1; k < best_.size(); ++k) best_[k] = best_[k - 1] + discount(k - 1);
  }

  LinearTreeArrays grow(uint64_t seed) {
    LinearTreeArrays out;
    Random random(seed);
    rows_.clear();
    for (int64_t i = 0; i < X_.n_rows; ++i) {
      if (!row_weight_ || row_weight_[i] > 0) rows_.push_back(static_cast<int32_t>(i));
    }
    side_.resize(rows_.size());
    struct Waiting {
      size_t begin, end;
      int64_t slot;  // where its number belongs: in children, or -1 for the root
    };
    std::vector<Waiting> stack{{0, rows_.size(), -1}};
    out.roots.push_back(0);
    while (!stack.empty() && !monitor_.stopped()) {
      const Waiting w = stack.back();
      stack.pop_back();
      int32_t& place = w.slot < 0 ? out.roots[0] : out.children[static_cast<size_t>(w.slot)];
      const size_t middle = split(w.begin, w.end, random, out);
      if (middle == w.begin || middle == w.end) {
        place = ~add_leaf(w.begin, w.end, out);
        continue;
      }
      const auto node = static_cast<int64_t>(out.bias.size()) - 1;
      place = static_cast<int32_t>(node);
      out.children.insert(out.children.end(), 2, 0);
      stack.push_back({middle, w.end, 2 * node + 1});
      stack.push_back({w.begin, middle, 2 * node});
    }
    return out;
  }

 private:
  static float discount(size_t rank) { return 1.0f / std::log2(static_cast<float>(rank) + 2.0f); }

  [[nodiscard]] std::span<const int32_t> labels(int32_t row) const {
    return {sets_.labels + sets_.indptr[row], static_cast<size_t>(sets_.indptr[row + 1] - sets_.indptr[row])};
  }
  [[nodiscard]] float weight(int32_t row) const { return row_weight_ ? row_weight_[row] : 1.0f; }
  [[nodiscard]] float scale(int32_t row) const { return row_scale_ ? row_scale_[row] : 1.0f; }

  // Adds a node and orders its rows: those it sends to its first child come first. Where these end, or an end of the
  // range and no node, if it does not split.
  size_t split(size_t begin, size_t end, Random& random, LinearTreeArrays& out) {
    const size_t n = end - begin;
    if (n <= static_cast<size_t>(options_.max_leaf) || !choose_sides(begin, end, random)) return begin;
    learn_separator(begin, end, random);
    size_t middle = begin;
    for (size_t i = begin; i < end; ++i) {
      if (separator_.score(X_.row(rows_[i]), scale(rows_[i])) > 0) std::swap(rows_[i], rows_[middle++]);
    }
    const size_t before = out.features.size();
    separator_.harvest(out);
    if (middle == begin || middle == end) {  // take the node back
      out.features.resize(before);
      out.weights.resize(before);
      out.node_begin.pop_back();
      out.bias.pop_back();
    }
    return middle;
  }

  // Rankings and sides in turn. Whether both sides have rows.
  bool choose_sides(size_t begin, size_t end, Random& random) {
    for (size_t i = begin; i < end; ++i) side_[i] = static_cast<char>(random.next() >> 63);
    double last = -1;
    for (int turn = 0; turn < kMostTurns && !monitor_.stopped(); ++turn) {
      for (char side = 0; side < 2; ++side) rank(begin, end, side);
      double gain = 0;
      for (size_t i = begin; i < end; ++i) {
        float sum[2] = {0, 0};
        const auto own = labels(rows_[i]);
        for (const int32_t label : own) {
          for (size_t side = 0; side < 2; ++side) sum[side] += value_[side][static_cast<size_t>(label)];
        }
        if (sum[0] != sum[1]) side_[i] = sum[1] > sum[0];
        gain += static_cast<double>(std::max(sum[0], sum[1]) / best_of(own.size()) * weight(rows_[i]));
      }
      for (size_t side = 0; side < 2; ++side) {
        for (const int32_t label : met_[side]) value_[side][static_cast<size_t>(label)] = 0;
      }
      if (gain <= last * (1 + kLeastGain)) break;
      last = gain;
    }
    const auto ones = std::count(side_.begin() + static_cast<int64_t>(begin), side_.begin() + static_cast<int64_t>(end), 1);
    return ones > 0 && ones < static_cast<int64_t>(end - begin);
  }

  [[nodiscard]] float best_of(size_t n_labels) const { return n_labels ? best_[n_labels] : 1.0f; }

  // The best ranking for a side sorts the labels by the sum of what its rows gain from them; value_ becomes the
  // discount of each label's rank.
  void rank(size_t begin, size_t end, char side) {
    auto& value = value_[static_cast<size_t>(side)];
    auto& met = met_[static_cast<size_t>(side)];
    met.clear();
    for (size_t i = begin; i < end; ++i) {
      if (side_[i] != side) continue;
      const auto own = labels(rows_[i]);
      const float share = weight(rows_[i]) / best_of(own.size());
      for (const int32_t label : own) {
        float& sum = value[static_cast<size_t>(label)];
        if (sum == 0) met.push_back(label);
        sum += share;
      }
    }
    std::sort(met.begin(), met.end(), [&](int32_t a, int32_t b) {
      const float x = value[static_cast<size_t>(a)], y = value[static_cast<size_t>(b)];
      return x > y || (x == y && a < b);
    });
    for (size_t k = 0; k < met.size(); ++k) value[static_cast<size_t>(met[k])] = discount(k);
  }

  void learn_separator(size_t begin, size_t end, Random& random) {
    const size_t n = end - begin;
    order_.resize(n);
    std::iota(order_.begin(), order_.end(), begin);
    float seen = 0;  // passes so far: the regularisation grows with the losses that were added up
    for (int32_t pass = 0; pass < options_.passes; ++pass) {
      for (size_t i = n; i > 1; --i) std::swap(order_[i - 1], order_[random.below(static_cast<uint32_t>(i))]);
      size_t moved = 0;
      for (const size_t i : order_) {
        if (monitor_.stopped()) return;
        seen += 1 / static_cast<float>(n);
        const int32_t number = rows_[i];
        const auto row = X_.row(number);
        const float y = side_[i] ? 1.0f : -1.0f;
        const auto margin = static_cast<float>(separator_.score(row, scale(number))) * y;
        const float slope = 1 / (1 + std::exp(margin));
        if (slope < kSettled) continue;
        ++moved;
        separator_.learn(row, scale(number), -y * slope * weight(number), seen / options_.C);
      }
      if (static_cast<double>(moved) <= kWorthAPass * static_cast<double>(n)) break;
    }
  }

  int32_t add_leaf(size_t begin, size_t end, LinearTreeArrays& out) {
    auto& sum = value_[0];
    auto& met = met_[0];
    met.clear();
    double total = 0;
    for (size_t i = begin; i < end; ++i) {
      total += static_cast<double>(weight(rows_[i]));
      for (const int32_t label : labels(rows_[i])) {
        if (sum[static_cast<size_t>(label)] == 0) met.push_back(label);
        sum[static_cast<size_t>(label)] += weight(rows_[i]);
      }
    }
    if (met.size() > static_cast<size_t>(options_.leaf_labels)) {
      std::sort(met.begin(), met.end(), [&](int32_t a, int32_t b) {
        const float x = sum[static_cast<size_t>(a)], y = sum[static_cast<size_t>(b)];
        return x > y || (x == y && a < b);
      });
      for (size_t k = static_cast<size_t>(options_.leaf_labels); k < met.size(); ++k) sum[static_cast<size_t>(met[k])] = 0;
      met.resize(static_cast<size_t>(options_.leaf_labels));
    }
    std::sort(met.begin(), met.end());
    for (const int32_t label : met) {
      out.leaf_labels.push_back(label);
      out.leaf_scores.push_back(std::min(1.0f, static_cast<float>(static_cast<double>(sum[static_cast<size_t>(label)]) / total)));
      sum[static_cast<size_t>(label)] = 0;
    }
    out.leaf_begin.push_back(static_cast<int64_t>(out.leaf_labels.size()));
    monitor_.done += static_cast<int64_t>(end - begin);
    return static_cast<int32_t>(out.leaf_begin.size()) - 2;
  }

  const Rows& X_;
  const LabelSets& sets_;
  const float *row_scale_, *row_weight_;
  const FastXmlOptions& options_;
  Monitor& monitor_;
  Separator separator_;
  std::vector<int32_t> rows_;    // rows, so that those of a node stand together
  std::vector<char> side_;       // of the row at each place
  std::vector<size_t> order_;
  std::vector<float> value_[2];  // by side, label
  std::vector<int32_t> met_[2];  // labels with a value
  std::vector<float> best_;      // by number of labels: the gain of a ranking that begins with them
};

}  // namespace

template <class Rows>
LinearTreeArrays train_fastxml(const Rows& X, const LabelSets& sets, const float* row_scale, const float* row_weight,
                               const FastXmlOptions& options, Monitor& monitor) {
  Random seeds(options.seed);
  std::vector<uint64_t> seed(static_cast<size_t>(options.n_trees));
  for (uint64_t& s : seed) s = seeds.next();
  monitor.total = X.n_rows * options.n_trees;
  std::vector<LinearTreeArrays> trees(seed.size());
  std::vector<std::unique_ptr<Grower<Rows>>> growers(static_cast<size_t>(std::max(options.n_threads, 1)));
  parallel_for(options.n_trees, options.n_threads, monitor, [&](int64_t t, int thread) {
    auto& grower = growers[static_cast<size_t>(thread)];
    if (!grower) grower = std::make_unique<Grower<Rows>>(X, sets, row_scale, row_weight, options, monitor);
    trees[static_cast<size_t>(t)] = grower->grow(seed[static_cast<size_t>(t)]);
  });
  growers.clear();
  LinearTreeArrays all;
  for (LinearTreeArrays& tree : trees) {
    all.append(tree);
    tree = {};
  }
  return all;
}

template LinearTreeArrays train_fastxml(const CsrRows<int32_t>&, const LabelSets&, const float*, const float*, const FastXmlOptions&, Monitor&);
template LinearTreeArrays train_fastxml(const CsrRows<int64_t>&, const LabelSets&, const float*, const float*, const FastXmlOptions&, Monitor&);
template LinearTreeArrays train_fastxml(const DenseRows&, const LabelSets&, const float*, const float*, const FastXmlOptions&, Monitor&);

}  // namespace sapwood
