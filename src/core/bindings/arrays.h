// Between numpy arrays and the core's views.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace sapwood::bindings {

namespace nb = nanobind;

template <class T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// A numpy array that owns what was in the vector.
template <class T, class Allocator>
nb::object to_numpy(std::vector<T, Allocator>&& values, std::initializer_list<size_t> shape) {
  using Vector = std::vector<T, Allocator>;
  auto* const held = new Vector(std::move(values));
  const nb::capsule owner(held, [](void* p) noexcept { delete static_cast<Vector*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T>(held->data(), shape, owner));
}

template <class T, class Allocator>
nb::object to_numpy(std::vector<T, Allocator>&& values) {
  const size_t n = values.size();
  return to_numpy(std::move(values), {n});
}

}  // namespace sapwood::bindings
