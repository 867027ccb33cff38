// Progressive validation (Blum, Kalai, Langford 1999): every row is predicted before it is learned, so that the share of
// mistakes is an honest estimate without a held-out set.
#pragma once

namespace sapwood {

struct Progressive {
  double wrong = 0;  // weight of the rows whose best label was none of theirs
  double seen = 0;   // weight of all rows

  void count(bool is_wrong, double weight) {
    seen += weight;
    if (is_wrong) wrong += weight;
  }
};

}  // namespace sapwood
