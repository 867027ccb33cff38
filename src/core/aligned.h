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

// A large array asks for huge pages: lines are met at random, and each page that is not at hand costs as much as the line
// itself.
inline size_t alignment(size_t bytes) { return bytes >= kHugePage ? kHugePage : 64; }

inline void* allocate_aligned(size_t bytes) {
  const size_t align = alignment(bytes);
  const size_t whole = (bytes + align - 1) / align * align;
  void* const data = ::operator new(whole, std::align_val_t{align});
#if defined(__linux__)
  if (align == kHugePage) madvise(data, whole, MADV_HUGEPAGE);
#endif
  return data;
}

// An array of fixed size, uninitialised.
template <class T>
class AlignedArray {
 public:
  AlignedArray() = default;
  explicit AlignedArray(size_t n) : data_(static_cast<T*>(allocate_aligned(n * sizeof(T))), Free{alignment(n * sizeof(T))}) {}
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
  T* allocate(size_t n) { return static_cast<T*>(allocate_aligned(n * sizeof(T))); }
  void deallocate(T* p, size_t n) { ::operator delete(p, std::align_val_t{alignment(n * sizeof(T))}); }
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
