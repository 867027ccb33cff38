#include "trees/row_queue.h"

namespace sapwood {

namespace {

constexpr size_t kFewRows = 64;  // whose room is not worth giving back

template <class T>
std::vector<T> from(const std::vector<T>& all, size_t first) {
  return {all.begin() + static_cast<int64_t>(first), all.end()};
}

std::vector<int64_t> pointers_from(const std::vector<int64_t>& all, size_t first) {
  std::vector<int64_t> kept = from(all, first);
  for (int64_t& at : kept) at -= all[first];
  return kept;
}

}  // namespace

RowQueue::Arrays RowQueue::arrays() const {
  const auto features = static_cast<size_t>(all_.indptr[first_]), labels = static_cast<size_t>(all_.label_indptr[first_]);
  return {pointers_from(all_.indptr, first_),
          pointers_from(all_.label_indptr, first_),
          from(all_.features, features),
          from(all_.values, features),
          from(all_.labels, labels),
          from(all_.weight, first_),
          from(all_.learned, first_)};
}

void RowQueue::pop() {
  ++first_;
  if (first_ >= kFewRows && 2 * first_ > all_.weight.size()) restore(arrays());
}

}  // namespace sapwood
