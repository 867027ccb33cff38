// The hot loops, one table of them per instruction set. Everything here is plain data: the kernels are compiled
// several times with different flags and must share no inline code with the rest of the core (see lanes.h).
#pragma once

#include <cstdint>

#include "rows.h"

namespace sapwood {

constexpr int kBankLanes = 16;      // regressors in a bank: one 64-byte line of weights per feature
constexpr int kGroupBanks = 16;     // banks in a group: they share one index of features
constexpr uint32_t kNoKey = ~0u;    // an empty slot of a packed group's index
constexpr int32_t kNoTarget = INT32_MIN;

enum class Loss : int32_t { squared_hinge, logistic };

// The joint problem of one bank: 16 linear regressors over the same rows.
struct BankProblem {
  const int32_t* rows;         // n: row numbers in X, or null for 0 .. n-1
  const uint16_t* positive;    // n: bit l says that the row is positive for lane l
  const float* row_scale;      // by number in X: factor of each row, or null
  const float* row_weight;     // by number in X: importance of each row, or null
  const float* lane_weight;    // 16: importance of a lane's positive rows, or null
  const int* stop;             // set by another thread when the user interrupts
  int64_t n;
  int64_t n_features;
  uint64_t seed;
  uint16_t lanes;              // bit l says that lane l is in use
  Loss loss;
  int32_t passes;
  float C;
  float tolerance;
  float step;
};

// Memory that a solver works in. Arrays of lanes are 64-byte aligned.
struct BankWork {
  float* weights;      // (n_features + 1) x 16, the last line is the bias
  float* per_row;      // n x 16: the dual variables (dual coordinate descent only)
  float* per_feature;  // (n_features + 1) x 16: squared gradients (AdaGrad only)
  float* norm;         // n: squared length of each row, bias included
  int32_t* order;      // n
};

// One step of online learning on a growing bank.
struct OnlineStep {
  const float* lane_weight;  // 16: importance of each lane, or null
  uint16_t positive;         // bit l: the example is positive for lane l
  uint16_t lanes;            // bit l: lane l learns
  Loss loss;
  float step;
  float weight;              // importance of the example
  float row_scale;
};

constexpr int64_t kOnlineLine = 2 * kBankLanes;  // floats: weights, then squared gradients
constexpr float kFirstSquare = 1e-2f;            // squared gradient a line starts from: bounds its first step

// The lines of one feature of a row in a group of growing banks.
struct GroupLines {
  float* lines;    // of weights, one for each bank; `room` lines further their squared gradients
  float value;     // of the feature
  uint16_t banks;  // which banks have a line
  uint16_t room;   // or 0: `lines` is the weight of one lane and its squared gradients, `banks` is that lane
};

// One step of online learning on the banks of a node.
struct GroupStep {
  const uint16_t* positive;  // banks: bit l says that the example is positive for lane l
  int32_t n_lanes;
  float step;
  float weight;  // importance of the example
  float keep;    // squared gradients are multiplied by this before the step; 1 forgets nothing
};

constexpr float kFirstGroupSquare = 1.5f;  // what the squared gradients of a group start from
constexpr float kFirstGroupBias = -0.9f;   // a child that has never been right scores just above the margin of the wrong

struct PackedForest;  // see packed_forest.h

struct TopLabel {
  float score;  // logarithm of the label's probability along its path
  int32_t label;
};

// Scratch for the prediction of one row; every array is as long as the model may ask for.
struct SearchWork {
  TopLabel* nodes;       // candidates for the beam
  TopLabel* beam;        // the beam
  TopLabel* heap;        // the best labels so far, the worst of them first
  float* scores;         // banks of one node x 16
  float* label_sum;      // labels: summed probability over the trees (several trees only)
  int32_t* label_seen;   // labels met (several trees only)
};

struct SearchOptions {
  int32_t beam;
  int32_t top;
  float row_scale;      // the row's values are multiplied by this
  float min_log_share;  // nodes whose log score is below the best's by more than this are dropped
};

struct Kernels {
  const char* name;
  void (*dual_csr32)(const CsrRows<int32_t>&, const BankProblem&, const BankWork&);
  void (*dual_csr64)(const CsrRows<int64_t>&, const BankProblem&, const BankWork&);
  void (*dual_dense)(const DenseRows&, const BankProblem&, const BankWork&);
  void (*adagrad_csr32)(const CsrRows<int32_t>&, const BankProblem&, const BankWork&);
  void (*adagrad_csr64)(const CsrRows<int64_t>&, const BankProblem&, const BankWork&);
  void (*adagrad_dense)(const DenseRows&, const BankProblem&, const BankWork&);
  int32_t (*search_row32)(const PackedForest&, const Row<int32_t>&, const SearchOptions&, const SearchWork&);
  int32_t (*search_row64)(const PackedForest&, const Row<int64_t>&, const SearchOptions&, const SearchWork&);

  void (*score_row32)(const PackedForest&, int32_t group, const Row<int32_t>&, float row_scale, float* scores);
  void (*score_row64)(const PackedForest&, int32_t group, const Row<int64_t>&, float row_scale, float* scores);
  void (*online_scores)(const float* lines, const int32_t* found, const float* values, int64_t n, float row_scale,
                        float* scores);
  void (*online_learn)(float* lines, const int32_t* found, const float* values, int64_t n, const OnlineStep&,
                       float* scores);
  void (*group_scores)(const GroupLines* found, int64_t n, const float* bias, int32_t n_banks,
                       float* scores);
  void (*group_learn)(const GroupLines* found, int64_t n, float* bias, const GroupStep&, float* scores,
                      float* gradients);

  int32_t search(const PackedForest& f, const Row<int32_t>& row, const SearchOptions& o, const SearchWork& w) const {
    return search_row32(f, row, o, w);
  }
  int32_t search(const PackedForest& f, const Row<int64_t>& row, const SearchOptions& o, const SearchWork& w) const {
    return search_row64(f, row, o, w);
  }
  void score(const PackedForest& f, int32_t group, const Row<int32_t>& row, float scale, float* scores) const {
    score_row32(f, group, row, scale, scores);
  }
  void score(const PackedForest& f, int32_t group, const Row<int64_t>& row, float scale, float* scores) const {
    score_row64(f, group, row, scale, scores);
  }
  void dual(const CsrRows<int32_t>& x, const BankProblem& p, const BankWork& w) const { dual_csr32(x, p, w); }
  void dual(const CsrRows<int64_t>& x, const BankProblem& p, const BankWork& w) const { dual_csr64(x, p, w); }
  void dual(const DenseRows& x, const BankProblem& p, const BankWork& w) const { dual_dense(x, p, w); }
  void adagrad(const CsrRows<int32_t>& x, const BankProblem& p, const BankWork& w) const { adagrad_csr32(x, p, w); }
  void adagrad(const CsrRows<int64_t>& x, const BankProblem& p, const BankWork& w) const { adagrad_csr64(x, p, w); }
  void adagrad(const DenseRows& x, const BankProblem& p, const BankWork& w) const { adagrad_dense(x, p, w); }
};

// The kernels of this machine, or of the instruction set named by SAPWOOD_ISA (avx512, avx2, baseline).
const Kernels& kernels();

}  // namespace sapwood
