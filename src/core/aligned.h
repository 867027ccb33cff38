// Arrays that start on a cache line, as lines of 16 floats must.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace sapwood {

constexpr size_t kHugePage = size_t{2} << 20;

// An array of fixed size, uninitialised. A large one asks for huge pages: lines are met at random, and each page that is
// not at hand costs as much as the line itself.
template <class T>
class AlignedArray {
 public:
  AlignedArray() = default;
  explicit AlignedArray(size_t n) {
    const size_t align = n * sizeof(T) >= kHugePage ? kHugePage : 64;
    const size_t bytes = (n * sizeof(T) + align - 1) / align * align;
    data_ = {static_cast<T*>(::operator new(bytes, std::align_val_t{align})), Free{align}};
#if defined(__linux__)
    if (align == kHugePage) madvise(data_.get(), bytes, MADV_HUGEPAGE);
#endif
  }
  [[nodiscard]] T* get() { return data_.get(); }
  [[nodiscard]] const T* get() const { return data_.get(); }

 private:
  struct Free {
    size_t align = 64;
    void operator()(T* p) const { ::operator delete(p, std::align_val_t{align}); }
  };
  std::unique_ptr<T[], Free> data_;
};

// For vectors whose elements are read a cache line at a time.
template <class T>
struct CacheLineAllocator {
  using value_type = T;
  CacheLineAllocator() = default;
  template <class U>
  CacheLineAllocator(const CacheLineAllocator<U>&) {}
  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{64})); }
  void deallocate(T* p, size_t) { ::operator delete(p, std::align_val_t{64}); }
  template <class U>
  bool operator==(const CacheLineAllocator<U>&) const {
    return true;
  }
};

// Memory to work in, kept from one use to the next; what was in it is lost when it grows.
template <class T>
class WorkBuffer {
 public:
  T* ensure(size_t n) {
    if (n > room_) {
      array_ = AlignedArray<T>();  // free before asking for more
      array_ = AlignedArray<T>(n);
      room_ = n;
    }
    return array_.get();
  }

 private:
  AlignedArray<T> array_;
  size_t room_ = 0;
};

template <class T>
using CacheLineVector = std::vector<T, CacheLineAllocator<T>>;

}  // namespace sapwood
