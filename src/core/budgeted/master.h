// The master problem (8) over the planes found so far, solved in the primal (10):
//
//   [4]  min over w_h, b   1/2 (sum_h ||w_h||)^2 + C sum of losses,    f(x) = sum_h w_h' x_h + b
//
// by accelerated proximal gradient from the last solution. A plane's w_h spans all folds.
#pragma once

#include <cstdint>
#include <vector>

#include "budgeted/chosen_columns.h"
#include "budgeted/fold_losses.h"

namespace sapwood {

class Master {
 public:
  void start(const BacProblem& problem, const BacOptions& options);

  // Adds a plane of ascending columns with w_h = 0, which leaves the objective as it is.
  template <class Rows>
  void add(const Rows& X, const BacProblem& problem, const std::vector<int32_t>& plane) {
    chosen_.gather(X, problem, place_plane(plane));
  }

  // Minimises until the duality gap over the planes is at most `tolerance` times the objective.
  void solve(double tolerance, int32_t max_steps, const Monitor& monitor);

  [[nodiscard]] const FoldLosses& losses() const { return losses_; }
  [[nodiscard]] const std::vector<double>& ratio() const { return ratio_; }  // of the best dual point of the last solve
  [[nodiscard]] double objective() const { return objective_; }

  // Writes what has been found, but for the planes and their history.
  void write(BacSolution& solution);

 private:
  // w with its scores and offset.
  struct Point {
    std::vector<double> w;       // entries of the planes x folds
    std::vector<double> scores;  // folds x n
    std::vector<double> b;       // folds
  };

  std::vector<int32_t> place_plane(const std::vector<int32_t>& plane);
  double find_gradient(const Point& from);
  double step(const Point& from, double loss_there);
  double move_against_gradient(const Point& from);
  void extrapolate(double beta);
  void find_norms(const std::vector<double>& w);
  void shrink_norms(double tau);
  void add_up(const std::vector<double>& w);

  FoldLosses losses_;
  ChosenColumns chosen_;
  std::vector<int32_t> columns_;   // of X, in the order in which they came: those of U
  std::vector<int32_t> by_column_; // places in columns_, ascending by column
  std::vector<int32_t> position_;  // for each entry of the planes, its place in columns_
  std::vector<int32_t> plane_;     // for each entry, its plane
  size_t n_planes_ = 0;
  double objective_ = 0.0;
  double lipschitz_ = 0.0;         // of the gradient, as far as it is known
  int64_t steps_ = 0;

  Point current_, last_, next_, ahead_;  // the solution, the one before, a step's outcome, the extrapolated point
  std::vector<double> ratio_, ratio_here_, alpha_;
  std::vector<double> column_sums_;      // U' alpha: columns x folds
  std::vector<double> correlations_;     // the same for the entries of the planes: minus the gradient
  std::vector<double> coefficients_;     // sum_h w_h: columns x folds
  std::vector<double> norms_, shrunk_, descending_;
};

}  // namespace sapwood
