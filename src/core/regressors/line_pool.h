// Memory for the lines of many banks: cut from large pieces, which ask for huge pages (aligned.h), and used again when a bank
// has outgrown it. A bank of its own memory would lie on small pages: a line met at random then costs two misses.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "aligned.h"

namespace sapwood {

constexpr size_t kPoolLine = 16;  // floats

class LinePool {
 public:
  // Lines, uninitialised, that go back to the pool, which must outlive them.
  class Lines {
   public:
    Lines() = default;
    Lines(Lines&& from) noexcept { *this = std::move(from); }
    Lines& operator=(Lines&& from) noexcept {
      std::swap(pool_, from.pool_);
      std::swap(data_, from.data_);
      std::swap(step_, from.step_);
      return *this;
    }
    ~Lines() {
      if (pool_) pool_->give_back(data_, step_);
    }
    [[nodiscard]] float* get() { return data_; }
    [[nodiscard]] const float* get() const { return data_; }

   private:
    friend class LinePool;
    Lines(LinePool& pool, float* data, size_t step) : pool_(&pool), data_(data), step_(step) {}
    LinePool* pool_ = nullptr;
    float* data_ = nullptr;
    size_t step_ = 0;
  };

  LinePool() = default;
  LinePool(const LinePool&) = delete;

  // How many lines one gets who asks for n: 2, 3, 4, 6, 8, 12, 16, 24, ...
  [[nodiscard]] static size_t room(size_t n) { return lines_of(step_for(n)); }

  [[nodiscard]] Lines take(size_t n) {
    const size_t step = step_for(n);
    float* const data = free_[step];
    if (!data) return {*this, cut(lines_of(step)), step};
    std::memcpy(&free_[step], data, sizeof(float*));
    return {*this, data, step};
  }

 private:
  static constexpr size_t kFirstPiece = 64, kLargestPiece = (size_t{16} << 20) / (kPoolLine * sizeof(float));  // lines

  [[nodiscard]] static size_t lines_of(size_t step) { return (2 + step % 2) << step / 2; }
  [[nodiscard]] static size_t step_for(size_t n) {
    size_t step = 0;
    while (lines_of(step) < n) ++step;
    return step;
  }

  // Where nothing is held, the next such place is written.
  void give_back(float* data, size_t step) {
    std::memcpy(data, &free_[step], sizeof(float*));
    free_[step] = data;
  }

  float* cut(size_t n) {
    if (n > left_) {
      const size_t piece = std::max(n, std::clamp(total_, kFirstPiece, kLargestPiece));
      pieces_.emplace_back(piece * kPoolLine);
      at_ = pieces_.back().get();
      left_ = piece;
      total_ += piece;
    }
    left_ -= n;
    return std::exchange(at_, at_ + n * kPoolLine);
  }

  std::vector<AlignedArray<float>> pieces_;
  std::array<float*, 64> free_{};  // by step, the first place of which nothing is held
  float* at_ = nullptr;            // what is left of the last piece
  size_t left_ = 0, total_ = 0;    // lines
};

}  // namespace sapwood
