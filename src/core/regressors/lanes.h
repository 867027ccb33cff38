// Sixteen float lanes, one regressor each: the vector type of all kernels.
//
// Included only by kernels_*.cpp. Each of them defines SAPWOOD_ISA (the namespace) and is compiled for another
// instruction set, so nothing here may be shared between translation units: no inline function of the standard
// library, which the linker could merge into code that must run on older machines.
#pragma once

#include <cstdint>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

namespace sapwood::SAPWOOD_ISA {

constexpr int kLanes = 16;

#if defined(__AVX512F__)

struct Mask {
  __mmask16 bits_;
};
struct Lanes {
  __m512 v;
};

inline Lanes broadcast(float x) { return {_mm512_set1_ps(x)}; }
inline Lanes load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline void store(float* p, Lanes a) { _mm512_storeu_ps(p, a.v); }
inline Lanes operator+(Lanes a, Lanes b) { return {_mm512_add_ps(a.v, b.v)}; }
inline Lanes operator-(Lanes a, Lanes b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline Lanes operator*(Lanes a, Lanes b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline Lanes operator/(Lanes a, Lanes b) { return {_mm512_div_ps(a.v, b.v)}; }
inline Lanes fma(Lanes a, Lanes b, Lanes c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline Lanes max(Lanes a, Lanes b) { return {_mm512_max_ps(a.v, b.v)}; }
inline Lanes min(Lanes a, Lanes b) { return {_mm512_min_ps(a.v, b.v)}; }
inline Lanes sqrt(Lanes a) { return {_mm512_sqrt_ps(a.v)}; }
inline Lanes round(Lanes a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
inline Mask operator>(Lanes a, Lanes b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ)}; }
inline Mask operator==(Lanes a, Lanes b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
inline Lanes select(Mask m, Lanes yes, Lanes no) { return {_mm512_mask_blend_ps(m.bits_, no.v, yes.v)}; }
inline Mask mask_from_bits(uint16_t bits) { return {bits}; }
inline uint16_t bits(Mask m) { return m.bits_; }
inline Lanes abs(Lanes a) { return {_mm512_abs_ps(a.v)}; }

// First guess of 1/sqrt(a), good to 14 bits.
inline Lanes rsqrt_guess(Lanes a) { return {_mm512_rsqrt14_ps(a.v)}; }

// 2^n for lanes that hold whole numbers n.
inline Lanes exp2_whole(Lanes n) { return {_mm512_scalef_ps(_mm512_set1_ps(1.0f), n.v)}; }

// The weights at p, one for each set bit, go to the lanes of the set bits; the other lanes are zero.
// May read kExpandReach bytes from p, which need not be aligned. add_expanded_* multiply them by x and add to sums.
inline Lanes expand_half(const void* p, uint16_t set) {
  const __m512 packed = _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
  return {_mm512_maskz_expand_ps(set, packed)};
}
inline Lanes expand_float(const void* p, uint16_t set) { return {_mm512_maskz_expand_ps(set, _mm512_loadu_ps(p))}; }

inline int popcount(uint16_t x) { return __builtin_popcount(x); }

// The slot among 16 keys that equals `key`, or -1. The keys need not be aligned: numpy may hold them.
inline int find_key(const uint32_t* keys, uint32_t key) {
  const __mmask16 hit = _mm512_cmpeq_epi32_mask(_mm512_loadu_si512(keys), _mm512_set1_epi32(static_cast<int>(key)));
  return hit ? __builtin_ctz(hit) : -1;
}

#elif defined(__AVX2__)

struct Mask {
  __m256 lo, hi;
};
struct Lanes {
  __m256 lo, hi;
};

inline Lanes broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline Lanes load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline void store(float* p, Lanes a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
inline Lanes operator+(Lanes a, Lanes b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
inline Lanes operator-(Lanes a, Lanes b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
inline Lanes operator*(Lanes a, Lanes b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
inline Lanes operator/(Lanes a, Lanes b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
inline Lanes fma(Lanes a, Lanes b, Lanes c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
inline Lanes max(Lanes a, Lanes b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
inline Lanes min(Lanes a, Lanes b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }
inline Lanes sqrt(Lanes a) { return {_mm256_sqrt_ps(a.lo), _mm256_sqrt_ps(a.hi)}; }
inline Lanes round(Lanes a) {
  constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(a.lo, nearest), _mm256_round_ps(a.hi, nearest)};
}
inline Mask operator>(Lanes a, Lanes b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_GT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_GT_OQ)};
}
inline Mask operator==(Lanes a, Lanes b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_EQ_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_EQ_OQ)};
}
inline Lanes select(Mask m, Lanes yes, Lanes no) {
  return {_mm256_blendv_ps(no.lo, yes.lo, m.lo), _mm256_blendv_ps(no.hi, yes.hi, m.hi)};
}
inline __m256 eight_from_bits(int bits) {
  const __m256i each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  return _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(bits), each), each));
}
inline Mask mask_from_bits(uint16_t bits) { return {eight_from_bits(bits & 255), eight_from_bits(bits >> 8)}; }
inline uint16_t bits(Mask m) {
  return static_cast<uint16_t>(_mm256_movemask_ps(m.lo) | (_mm256_movemask_ps(m.hi) << 8));
}
inline Lanes abs(Lanes a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, a.lo), _mm256_andnot_ps(sign, a.hi)};
}
inline Lanes rsqrt_guess(Lanes a) { return {_mm256_rsqrt_ps(a.lo), _mm256_rsqrt_ps(a.hi)}; }
inline __m256 exp2_whole8(__m256 n) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23));
}
inline Lanes exp2_whole(Lanes n) { return {exp2_whole8(n.lo), exp2_whole8(n.hi)}; }

// For a byte of set bits: which of eight packed values each lane takes (nibbles, lane 0 first). pdep builds it.
inline __m256 expand8(__m256 packed, uint32_t set) {
  const uint64_t spread = _pdep_u64(set, 0x0101010101010101ull) * 0xFF;   // a byte of ones for each set lane
  const uint64_t order = _pdep_u64(0x0706050403020100ull, spread);        // the rank of each set lane
  const __m256i from = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(order)));
  const __m256i keep = _mm256_cvtepi8_epi32(_mm_cvtsi64_si128(static_cast<long long>(spread)));
  return _mm256_and_ps(_mm256_permutevar8x32_ps(packed, from), _mm256_castsi256_ps(keep));
}
inline Lanes expand_half(const void* p, uint16_t set) {
  const uint32_t low = set & 255u, high = set >> 8;
  const char* q = static_cast<const char*>(p);
  const char* r = q + 2 * __builtin_popcount(low);
  return {expand8(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(q))), low),
          expand8(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(r))), high)};
}
inline Lanes expand_float(const void* p, uint16_t set) {
  const uint32_t low = set & 255u, high = set >> 8;
  const float* q = static_cast<const float*>(p);
  return {expand8(_mm256_loadu_ps(q), low), expand8(_mm256_loadu_ps(q + __builtin_popcount(low)), high)};
}
inline int popcount(uint16_t x) { return __builtin_popcount(x); }
inline int find_key(const uint32_t* keys, uint32_t key) {
  const __m256i want = _mm256_set1_epi32(static_cast<int>(key));
  const __m256i a = _mm256_cmpeq_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(keys)), want);
  const __m256i b = _mm256_cmpeq_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(keys + 8)), want);
  const int hit = _mm256_movemask_ps(_mm256_castsi256_ps(a)) | (_mm256_movemask_ps(_mm256_castsi256_ps(b)) << 8);
  return hit ? __builtin_ctz(static_cast<unsigned>(hit)) : -1;
}

#else  // any machine: four vectors of four, which compilers turn into SSE2 or NEON

typedef float Four __attribute__((vector_size(16)));
typedef int32_t FourInts __attribute__((vector_size(16)));
struct Mask {
  FourInts q[4];
};
struct Lanes {
  Four q[4];
};

template <class F>
inline Lanes each(F f) {
  return {{f(0), f(1), f(2), f(3)}};
}
inline Lanes broadcast(float x) {
  return each([&](int) { return Four{x, x, x, x}; });
}
inline Lanes load(const float* p) {
  Lanes a;
  __builtin_memcpy(&a, p, sizeof a);
  return a;
}
inline void store(float* p, Lanes a) { __builtin_memcpy(p, &a, sizeof a); }
inline Lanes operator+(Lanes a, Lanes b) {
  return each([&](int i) { return a.q[i] + b.q[i]; });
}
inline Lanes operator-(Lanes a, Lanes b) {
  return each([&](int i) { return a.q[i] - b.q[i]; });
}
inline Lanes operator*(Lanes a, Lanes b) {
  return each([&](int i) { return a.q[i] * b.q[i]; });
}
inline Lanes operator/(Lanes a, Lanes b) {
  return each([&](int i) { return a.q[i] / b.q[i]; });
}
inline Lanes fma(Lanes a, Lanes b, Lanes c) {
  return each([&](int i) { return a.q[i] * b.q[i] + c.q[i]; });
}
inline Four pick(FourInts m, Four yes, Four no) {
  return reinterpret_cast<Four>((m & reinterpret_cast<FourInts>(yes)) | (~m & reinterpret_cast<FourInts>(no)));
}
inline Lanes select(Mask m, Lanes yes, Lanes no) {
  return each([&](int i) { return pick(m.q[i], yes.q[i], no.q[i]); });
}
inline Mask operator>(Lanes a, Lanes b) {
  Mask m;
  for (int i = 0; i < 4; ++i) m.q[i] = a.q[i] > b.q[i];
  return m;
}
inline Mask operator==(Lanes a, Lanes b) {
  Mask m;
  for (int i = 0; i < 4; ++i) m.q[i] = a.q[i] == b.q[i];
  return m;
}
inline Lanes max(Lanes a, Lanes b) { return select(a > b, a, b); }
inline Lanes min(Lanes a, Lanes b) { return select(b > a, a, b); }  // b where one is no number, as SSE has it
inline Mask mask_from_bits(uint16_t set) {
  Mask m;
  for (int i = 0; i < 4; ++i) {
    const FourInts each_bit = {1 << (4 * i), 2 << (4 * i), 4 << (4 * i), 8 << (4 * i)};
    m.q[i] = (each_bit & static_cast<int32_t>(set)) == each_bit;
  }
  return m;
}
inline uint16_t bits(Mask m) {
  FourInts set = {};
  for (int i = 0; i < 4; ++i) set |= m.q[i] & FourInts{1 << (4 * i), 2 << (4 * i), 4 << (4 * i), 8 << (4 * i)};
  return static_cast<uint16_t>(set[0] | set[1] | set[2] | set[3]);
}
inline Lanes abs(Lanes a) { return max(a, broadcast(0.0f) - a); }
inline Lanes sqrt(Lanes a) {
  for (int i = 0; i < kLanes; ++i) a.q[i / 4][i % 4] = __builtin_sqrtf(a.q[i / 4][i % 4]);
  return a;
}
inline Lanes rsqrt_guess(Lanes a) { return broadcast(1.0f) / sqrt(a); }
inline Lanes round(Lanes a) {
  const Lanes magic = broadcast(12582912.0f);  // 1.5 * 2^23: adding it leaves only the whole part
  return (a + magic) - magic;
}
inline Lanes exp2_whole(Lanes n) {
  return each([&](int i) {
    return reinterpret_cast<Four>((__builtin_convertvector(n.q[i], FourInts) + 127) << 23);
  });
}
inline float half_at(const char* p) {
#if defined(__ARM_FP16_FORMAT_IEEE)
  __fp16 half;
  __builtin_memcpy(&half, p, sizeof half);
  return half;
#else
  // Shift the 16-bit float into place and let one multiplication mend the exponent's bias, subnormals included.
  uint16_t half;
  __builtin_memcpy(&half, p, sizeof half);
  const uint32_t moved = (static_cast<uint32_t>(half & 0x8000u) << 16) | (static_cast<uint32_t>(half & 0x7FFFu) << 13);
  float value;
  __builtin_memcpy(&value, &moved, sizeof value);
  return value * 0x1p112f;
#endif
}
inline float float_at(const char* p) {
  float x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}
// Few lanes of a line have weights: one after the other is quicker here than putting a vector together.
inline void add_expanded_half(float* sums, const void* p, uint16_t set, float x) {
  const char* q = static_cast<const char*>(p);
  for (unsigned left = set; left; left &= left - 1, q += 2) sums[__builtin_ctz(left)] += x * half_at(q);
}
inline void add_expanded_float(float* sums, const void* p, uint16_t set, float x) {
  const char* q = static_cast<const char*>(p);
  for (unsigned left = set; left; left &= left - 1, q += 4) sums[__builtin_ctz(left)] += x * float_at(q);
}
inline int popcount(uint16_t x) { return __builtin_popcount(x); }
inline int find_key(const uint32_t* keys, uint32_t key) {
  typedef uint32_t FourKeys __attribute__((vector_size(16)));
  FourInts hit[4];
  for (int i = 0; i < 4; ++i) {
    FourKeys four;
    __builtin_memcpy(&four, keys + 4 * i, sizeof four);
    hit[i] = four == key;
  }
  const uint16_t set = bits(Mask{{hit[0], hit[1], hit[2], hit[3]}});
  return set ? __builtin_ctz(set) : -1;
}

#endif

#if defined(__AVX2__)
inline void add_expanded_half(float* sums, const void* p, uint16_t set, float x) {
  store(sums, fma(expand_half(p, set), broadcast(x), load(sums)));
}
inline void add_expanded_float(float* sums, const void* p, uint16_t set, float x) {
  store(sums, fma(expand_float(p, set), broadcast(x), load(sums)));
}
#endif

inline Lanes zero() { return broadcast(0.0f); }
inline bool any(Mask m) { return bits(m) != 0; }

inline Lanes rsqrt(Lanes a) {
  const Lanes y = rsqrt_guess(a);
  const Lanes half_a = a * broadcast(0.5f);
  return y * (broadcast(1.5f) - half_a * y * y);  // one step of Newton's
}

// e^x to about 2 units in the last place; x is clamped so that the answer is a normal number.
inline Lanes exp(Lanes x) {
  x = min(max(x, broadcast(-87.0f)), broadcast(88.0f));
  const Lanes n = round(x * broadcast(1.44269504f));
  Lanes r = fma(n, broadcast(-0.693359375f), x);
  r = fma(n, broadcast(2.12194440e-4f), r);
  Lanes p = broadcast(1.9875691500e-4f);  // Cephes' expf polynomial
  p = fma(p, r, broadcast(1.3981999507e-3f));
  p = fma(p, r, broadcast(8.3334519073e-3f));
  p = fma(p, r, broadcast(4.1665795894e-2f));
  p = fma(p, r, broadcast(1.6666665459e-1f));
  p = fma(p, r, broadcast(5.0000001201e-1f));
  p = fma(p, r * r, r + broadcast(1.0f));
  return p * exp2_whole(n);
}

// log(1 + u) for 0 <= u <= 1, by the series of atanh: 2 (s + s^3/3 + ...), s = u / (2 + u) <= 1/3.
inline Lanes log1p_unit(Lanes u) {
  const Lanes s = u / (u + broadcast(2.0f));
  const Lanes q = s * s;
  Lanes p = broadcast(1.0f / 13);
  p = fma(p, q, broadcast(1.0f / 11));
  p = fma(p, q, broadcast(1.0f / 9));
  p = fma(p, q, broadcast(1.0f / 7));
  p = fma(p, q, broadcast(1.0f / 5));
  p = fma(p, q, broadcast(1.0f / 3));
  p = fma(p, q, broadcast(1.0f));
  return s * p * broadcast(2.0f);
}

}  // namespace sapwood::SAPWOOD_ISA
