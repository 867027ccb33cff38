#include "budgeted/bac.h"

#include <algorithm>
#include <limits>
#include <set>

#include "budgeted/master.h"
#include "budgeted/worst_case.h"

namespace sapwood {

namespace {

constexpr double kFirstPrecision = 0.1;  // early planes do not need an exact master
constexpr double kRowMuchLonger = 8.0;   // a row so many times longer than the classifier is searched, not swept

}  // namespace

struct BacWorkspace::Parts {
  Master master;
  WorstCase worst_case;
  std::vector<double> alpha;
};

BacWorkspace::BacWorkspace() : parts_(std::make_unique<Parts>()) {}
BacWorkspace::~BacWorkspace() = default;
BacWorkspace::BacWorkspace(BacWorkspace&&) noexcept = default;
BacWorkspace& BacWorkspace::operator=(BacWorkspace&&) noexcept = default;

template <class Rows>
BacSolution train_bac(const Rows& X, const BacProblem& problem, const BacOptions& options, BacWorkspace& workspace,
                      const Monitor& monitor) {
  auto& [master, worst_case, alpha] = workspace.parts();
  master.start(problem, options);
  alpha.resize(master.ratio().size());
  BacSolution found;
  found.objective.push_back(master.objective());
  found.bound.push_back(-std::numeric_limits<double>::infinity());
  std::set<std::vector<int32_t>> seen;
  double precision = kFirstPrecision;
  while (true) {
    // Worst-case analysis, 4.1.1, for the sum of the folds' objectives (11).
    master.losses().sign_alpha(master.ratio(), alpha);
    worst_case.find(X, problem, alpha, options.budget, monitor);
    // The dual value over *all* feature sets: the worst case is known exactly, [9].
    found.bound.back() = std::max(found.bound.back(), master.losses().dual_value(master.ratio(), worst_case.sum()));
    const double objective = found.objective.back(), gap = found.gap();
    std::vector<int32_t> plane = worst_case.columns();
    if (gap <= options.tolerance * objective || plane.empty()) break;
    if (seen.contains(plane)) {
      // Only an inexact master can ask for a plane that it has: go on with a tighter one.
      if (precision <= 0.5 * options.tolerance) break;
    } else if (found.planes.size() == static_cast<size_t>(options.max_planes)) {
      break;
    } else {
      master.add(X, problem, plane);
      found.objective.push_back(objective);
      found.bound.push_back(found.bound.back());
      found.planes.push_back(plane);
      seen.insert(std::move(plane));
    }
    precision = std::max(0.5 * options.tolerance, std::min(0.1 * gap / objective, 0.3 * precision));
    // Master-problem optimisation, 4.1.2.
    master.solve(precision, options.max_steps, monitor);
    found.objective.back() = master.objective();
  }
  master.write(found);
  return found;
}

template <class Index>
void bac_scores(const BacView& bac, Row<Index> row, float scale, double* scores) {
  const size_t folds = bac.offset.size();
  std::copy(bac.offset.begin(), bac.offset.end(), scores);
  const auto add = [&](size_t place, float value) {
    for (size_t v = 0; v < folds; ++v) scores[v] += bac.weights[place * folds + v] * value;
  };
  const Index *at = row.index, *const end = row.index + row.count;
  const bool search = static_cast<double>(row.count) > kRowMuchLonger * static_cast<double>(bac.columns.size());
  for (size_t place = 0; place < bac.columns.size() && at != end; ++place) {
    const auto column = static_cast<Index>(bac.columns[place]);
    if (search) at = std::lower_bound(at, end, column);
    else while (at != end && *at < column) ++at;
    if (at != end && *at == column) add(place, scale * row.value[at - row.index]);
  }
}

bool bac_vote(std::span<const double> scores) {
  int ballot = 0;
  double sum = 0.0;
  for (const double score : scores) {
    ballot += (score > 0) - (score < 0);
    sum += score;
  }
  return ballot > 0 || (ballot == 0 && sum > 0);
}

template BacSolution train_bac(const CsrRows<int32_t>&, const BacProblem&, const BacOptions&, BacWorkspace&, const Monitor&);
template BacSolution train_bac(const CsrRows<int64_t>&, const BacProblem&, const BacOptions&, BacWorkspace&, const Monitor&);
template BacSolution train_bac(const DenseRows&, const BacProblem&, const BacOptions&, BacWorkspace&, const Monitor&);
template void bac_scores(const BacView&, Row<int32_t>, float, double*);
template void bac_scores(const BacView&, Row<int64_t>, float, double*);

}  // namespace sapwood
