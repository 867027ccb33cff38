// Arrays that start on a cache line, as lines of 16 floats must.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace sapwood {

constexpr size_t kHugePage = size_t{2} << 20;

// An uninitialised array that only ever grows. Large ones ask for huge pages: lines are met at random, and each page
// that is not at hand costs as much as the line itself.
template <class T>
class AlignedBuffer {
 public:
  T* ensure(size_t n) {
    if (n > room_) {
      const size_t align = n * sizeof(T) >= kHugePage ? kHugePage : 64;
      const size_t bytes = (n * sizeof(T) + align - 1) / align * align;
      data_.reset();  // free before asking for more
      data_.reset(static_cast<T*>(::operator new(bytes, std::align_val_t{align})));
      data_.get_deleter().align = align;
      room_ = n;
#if defined(__linux__)
      if (align == kHugePage) madvise(data_.get(), bytes, MADV_HUGEPAGE);
#endif
    }
    return data_.get();
  }

 private:
  struct Free {
    size_t align = 64;
    void operator()(T* p) const { ::operator delete(p, std::align_val_t{align}); }
  };
  std::unique_ptr<T[], Free> data_;
  size_t room_ = 0;
};

}  // namespace sapwood
