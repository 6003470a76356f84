/* What PyTorch has no single operation for on a processor: the elementwise work between matrix products, each read and
 * written once. Compiled on the user's machine when training first needs it; see __init__.py, and gru.py and loss.py for
 * the same in PyTorch's own operations, which is what runs where there is no compiler.
 *
 * Every function exists for fp32 and for bf16 storage (kernels_of.h, included twice); all arithmetic is fp32.
 * Letters: B rows, H hidden size, C tokens, V words.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

/* PyTorch may bring an OpenMP of its own, whose number of threads is not that of the system's. */
void use_threads(int64_t threads) {
#ifdef _OPENMP
  omp_set_num_threads((int)threads);
#else
  (void)threads;
#endif
}

typedef uint16_t bf16;

static inline float from_bits(uint32_t bits) { float x; memcpy(&x, &bits, 4); return x; }
static inline uint32_t to_bits(float x) { uint32_t bits; memcpy(&bits, &x, 4); return bits; }

static inline float load_f32(float x) { return x; }
static inline float store_f32(float x) { return x; }
static inline float load_bf16(bf16 x) { return from_bits((uint32_t)x << 16); }
static inline bf16 store_bf16(float x) {               /* to nearest, ties to even; NaN stays NaN */
  uint32_t bits = to_bits(x);
  uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return (bf16)(x != x ? 0x7fc0 : rounded);
}

/* exp to about 2 units in the last place, without a branch, so that a loop over it becomes vector instructions. */
static inline float exp_of(float x) {
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  float shifted = x * 1.44269504f + 12582912.0f;       /* adding 1.5 * 2^23 rounds to a whole number */
  float n = shifted - 12582912.0f;
  float r = x - n * 0.693359375f + n * 2.12194440e-4f; /* x - n log 2, in two parts */
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  return p * from_bits((to_bits(shifted) << 23) + 0x3f800000u);
}

static inline float sigmoid_of(float x) { return 1.0f / (1.0f + exp_of(-x)); }
static inline float tanh_of(float x) { return 1.0f - 2.0f / (1.0f + exp_of(2.0f * x)); }

#define NUMBER float
#define OF(name) name##_f32
#define LOAD load_f32
#define STORE store_f32
#include "kernels_of.h"
#undef NUMBER
#undef OF
#undef LOAD
#undef STORE

#define NUMBER bf16
#define OF(name) name##_bf16
#define LOAD load_bf16
#define STORE store_bf16
#include "kernels_of.h"
