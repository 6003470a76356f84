/* Products with a matrix that is laid out once and meets many rows, few at a time: y = x Wᵀ + b, what a search is made of.
 *
 * W lies in panels of PANEL outputs, within a panel one input after the other, so that it is read once from its first
 * number to its last. Up to TALL rows meet a panel together; their sums stay in registers (as in Goto and van de Geijn
 * 2008, "Anatomy of high-performance matrix multiplication", section 4). However many rows there are, each sum is one
 * chain over the inputs in their order: what a row gives depends on it alone, to the last bit.
 *
 * Letters: R rows, I inputs, O outputs. `panels` is (O / PANEL, rounded up; I; PANEL).
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef WIDTH /* numbers in a register */
#if defined(__AVX512F__) && defined(__FMA__)
#define WIDTH 16
#elif defined(__AVX2__) && defined(__FMA__)
#define WIDTH 8
#else
#define WIDTH 0
#endif
#endif

int64_t panel(void) { return 2 * WIDTH; } /* 0: no products here */

#if WIDTH
#include <immintrin.h>

#define PANEL (2 * WIDTH)
#define TALL (WIDTH == 16 ? 12 : 6)
#define CACHED 65536     /* numbers of the rows that are kept close while all panels pass */
#define WORTHWHILE 2e6   /* multiplications, from which on threads share the panels */
#define INLINED static inline __attribute__((always_inline))

typedef float vector __attribute__((vector_size(4 * WIDTH)));

/* a b + c, rounded once: left to the compiler, it would be so in one tile and not in another. */
INLINED vector fused(vector a, vector b, vector c) {
#if WIDTH == 8
  return (vector)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__AVX512F__)
  return (vector)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#else /* wide registers on a processor without them: for tests */
  for (int j = 0; j < WIDTH; j++) c[j] = fmaf(a[j], b[j], c[j]);
  return c;
#endif
}

INLINED vector all(float x) {
#if WIDTH == 8
  return (vector)_mm256_set1_ps(x);
#elif defined(__AVX512F__)
  return (vector)_mm512_set1_ps(x);
#else
  vector same;
  for (int j = 0; j < WIDTH; j++) same[j] = x;
  return same;
#endif
}

INLINED vector at(const float *p) { /* wherever it lies */
  vector there;
  memcpy(&there, p, sizeof(there));
  return there;
}

INLINED int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Rows are cut into tiles of TALL or a few less: where the t-th of `count` tiles begins. */
INLINED int64_t edge(int64_t rows, int64_t count, int64_t t) { return rows * t / count; }

INLINED int64_t block_of(int64_t I) { return I * TALL > CACHED ? TALL : CACHED / I; }

/* M rows, interleaved, with N panels that lie side by side; those after them are fetched meanwhile. */
INLINED void tile(const int M, const int N, int64_t I, const float *restrict x, const float *restrict w,
                  vector sums[TALL][8]) {
  vector own[TALL][8];
#pragma GCC unroll 16
  for (int r = 0; r < M; r++) {
#pragma GCC unroll 8
    for (int n = 0; n < 2 * N; n++) own[r][n] = (vector){0};
  }
  for (int64_t i = 0; i < I; i++) {
    vector weights[8];
#pragma GCC unroll 8
    for (int n = 0; n < 2 * N; n++) __builtin_prefetch(w + PANEL * (I * (N + n / 2) + i) + WIDTH * (n % 2), 0, 2);
#pragma GCC unroll 8
    for (int n = 0; n < 2 * N; n++) weights[n] = at(w + PANEL * (I * (n / 2) + i) + WIDTH * (n % 2));
#pragma GCC unroll 16
    for (int r = 0; r < M; r++) {
      vector value = all(x[M * i + r]);
#pragma GCC unroll 8
      for (int n = 0; n < 2 * N; n++) own[r][n] = fused(value, weights[n], own[r][n]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < M; r++) {
#pragma GCC unroll 8
    for (int n = 0; n < 2 * N; n++) sums[r][n] = own[r][n];
  }
}

static void tile_of(int M, int N, int64_t I, const float *x, const float *w, vector sums[TALL][8]) {
#define CASE(m) case m: tile(m, 1, I, x, w, sums); return;
  if (N == 4) { tile(1, 4, I, x, w, sums); return; }
  if (N == 2) { tile(2, 2, I, x, w, sums); return; }
  switch (M) {
    CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)
#if TALL > 6
    CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12)
#endif
  }
#undef CASE
}

/* y (R,O) = x (R,I) Wᵀ + bias (O, or none). */
void multiply(int64_t R, int64_t I, int64_t O, const float *restrict x, const float *restrict panels,
              const float *restrict bias, float *restrict y) {
  int64_t block = least(R, block_of(I)), panel_count = (O + PANEL - 1) / PANEL;
  float *tiles = malloc(sizeof(float) * block * I);
  for (int64_t first = 0; first < R; first += block) {
    int64_t rows = least(block, R - first), count = (rows + TALL - 1) / TALL;
    /* One or two rows leave registers free, in which other panels' sums can grow meanwhile. */
    int64_t together = rows == 1 ? 4 : rows == 2 ? 2 : 1, groups = (panel_count + together - 1) / together;
    for (int64_t t = 0; t < count; t++) {
      int64_t begin = edge(rows, count, t), M = edge(rows, count, t + 1) - begin;
      for (int64_t r = 0; r < M; r++) {
        const float *row = x + I * (first + begin + r);
        for (int64_t i = 0; i < I; i++) tiles[I * begin + M * i + r] = row[i];
      }
    }
#pragma omp parallel for if ((double)rows * I * O > WORTHWHILE)
    for (int64_t group = 0; group < groups; group++) {
      int64_t from = group * together, some = least(together, panel_count - from);
      for (int64_t t = 0; t < count; t++) {
        int64_t begin = edge(rows, count, t), M = edge(rows, count, t + 1) - begin;
        vector sums[TALL][8];
        if (some == together) {
          tile_of(M, together, I, tiles + I * begin, panels + PANEL * I * from, sums);
        } else { /* the last ones, panel by panel */
          for (int64_t n = 0; n < some; n++) {
            vector single[TALL][8];
            tile_of(M, 1, I, tiles + I * begin, panels + PANEL * I * (from + n), single);
            for (int64_t r = 0; r < M; r++) memcpy(&sums[r][2 * n], single[r], sizeof(float) * PANEL);
          }
        }
        int64_t start = PANEL * from, width = least(PANEL * some, O - start);
        for (int64_t r = 0; r < M; r++) {
          const float *sum = (const float *)sums[r];
          float *out = y + O * (first + begin + r) + start;
          if (bias) {
            for (int64_t o = 0; o < width; o++) out[o] = sum[o] + bias[start + o];
          } else {
            memcpy(out, sum, sizeof(float) * width);
          }
        }
      }
    }
  }
  free(tiles);
}

/* Many small products, each with a matrix of its own, as attention has them: one for each sentence and head.
 * y = x W with W (I,O), or x Wᵀ with W (O,I); a row of x or W every `x_row` or `w_row` numbers, a head every `.._head` and
 * a sentence every `.._sentence`; y is (sentences, heads, R, O) without gaps. */
/* M rows of x Wᵀ for N outputs: sums of WIDTH numbers side by side, which meet at the end. */
INLINED void dots(const int M, const int N, int64_t I, const float *x, int64_t x_row, const float *w, int64_t w_row,
                  float *y, int64_t O) {
  vector sums[5][2];
  int64_t i = 0;
#pragma GCC unroll 5
  for (int r = 0; r < M; r++) {
#pragma GCC unroll 2
    for (int n = 0; n < N; n++) sums[r][n] = (vector){0};
  }
  for (; i + WIDTH <= I; i += WIDTH) {
    vector weights[2];
#pragma GCC unroll 2
    for (int n = 0; n < N; n++) weights[n] = at(w + w_row * n + i);
#pragma GCC unroll 5
    for (int r = 0; r < M; r++) {
      vector value = at(x + x_row * r + i);
#pragma GCC unroll 2
      for (int n = 0; n < N; n++) sums[r][n] = fused(value, weights[n], sums[r][n]);
    }
  }
  for (int r = 0; r < M; r++) {
    for (int n = 0; n < N; n++) {
      float lanes[WIDTH];
      memcpy(lanes, &sums[r][n], sizeof(lanes));
#pragma GCC unroll 4
      for (int half = WIDTH / 2; half; half /= 2) {
        for (int j = 0; j < half; j++) lanes[j] += lanes[j + half];
      }
      for (int64_t rest = i; rest < I; rest++) lanes[0] = fmaf(x[x_row * r + rest], w[w_row * n + rest], lanes[0]);
      y[O * r + n] = lanes[0];
    }
  }
}

static void all_dots(int64_t R, int64_t I, int64_t O, const float *x, int64_t x_row, const float *w, int64_t w_row,
                     float *y) {
  for (int64_t o = 0; o < O; o += 2) {
    for (int64_t r = 0; r < R; r += 5) {
      int64_t M = least(5, R - r), N = least(2, O - o);
      const float *rows = x + x_row * r, *weights = w + w_row * o;
#define CASE(m, n) case 5 * n + m: dots(m, n, I, rows, x_row, weights, w_row, y + O * r + o, O); break;
      switch (5 * N + M) {
        CASE(1, 1) CASE(2, 1) CASE(3, 1) CASE(4, 1) CASE(5, 1)
        CASE(1, 2) CASE(2, 2) CASE(3, 2) CASE(4, 2) CASE(5, 2)
      }
#undef CASE
    }
  }
}

/* M rows of x W, two registers of outputs of each at once. */
INLINED void weighted(const int M, int64_t I, const float *x, int64_t x_row, const float *w, int64_t w_row, float *y,
                      int64_t O) {
  int64_t o = 0;
  for (; o + 2 * WIDTH <= O; o += 2 * WIDTH) {
    vector sums[5][2];
#pragma GCC unroll 5
    for (int r = 0; r < M; r++) sums[r][0] = sums[r][1] = (vector){0};
    for (int64_t i = 0; i < I; i++) {
      vector first = at(w + w_row * i + o), second = at(w + w_row * i + o + WIDTH);
#pragma GCC unroll 5
      for (int r = 0; r < M; r++) {
        vector value = all(x[x_row * r + i]);
        sums[r][0] = fused(value, first, sums[r][0]);
        sums[r][1] = fused(value, second, sums[r][1]);
      }
    }
#pragma GCC unroll 5
    for (int r = 0; r < M; r++) memcpy(y + O * r + o, sums[r], sizeof(sums[r]));
  }
  for (; o < O; o++) { /* each step rounded once, as above, however many inputs there are */
    for (int r = 0; r < M; r++) {
      float sum = 0.0f;
      for (int64_t i = 0; i < I; i++) sum = fmaf(x[x_row * r + i], w[w_row * i + o], sum);
      y[O * r + o] = sum;
    }
  }
}

static void all_weighted(int64_t R, int64_t I, int64_t O, const float *x, int64_t x_row, const float *w, int64_t w_row,
                         float *y) {
  for (int64_t r = 0; r < R; r += 5) {
#define CASE(m) case m: weighted(m, I, x + x_row * r, x_row, w, w_row, y + O * r, O); break;
    switch (least(5, R - r)) { CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) }
#undef CASE
  }
}

void multiply_each(int64_t sentences, int64_t heads, int64_t R, int64_t I, int64_t O, int64_t transposed,
                   const float *restrict x, int64_t x_sentence, int64_t x_head, int64_t x_row, const float *restrict w,
                   int64_t w_sentence, int64_t w_head, int64_t w_row, float *restrict y) {
#pragma omp parallel for if ((double)sentences * heads * R * I * O > WORTHWHILE)
  for (int64_t one = 0; one < sentences * heads; one++) {
    const float *rows = x + x_sentence * (one / heads) + x_head * (one % heads);
    const float *matrix = w + w_sentence * (one / heads) + w_head * (one % heads);
    if (one + 1 < sentences * heads) { /* the next one's matrix is fetched meanwhile */
      const float *next = w + w_sentence * ((one + 1) / heads) + w_head * ((one + 1) % heads);
      for (int64_t r = 0; r < (transposed ? O : I); r++) {
        for (int64_t j = 0; j < (transposed ? I : O); j += 16) __builtin_prefetch(next + w_row * r + j, 0, 2);
      }
    }
    (transposed ? all_dots : all_weighted)(R, I, O, rows, x_row, matrix, w_row, y + R * O * one);
  }
}

/* Products with a matrix that is laid out, in bytes. A row is whole numbers from -127 to 127 times a scale of its own,
 * stored as bytes from 1 to 255, around 128; W's have a scale for each output, and `panels` is (O / 16, rounded up; I / 4,
 * rounded up; 16; 4). The products of two neighbours are added in 16 bits, so no two neighbours of W may be larger than
 * 128 together: then everything is exact. `centre` (O) is what the 128 add to each sum. */
#define NARROW 16 /* outputs of a panel of bytes */
#define FEW 5
#define GROUP 4

INLINED void byte_tile(const int M, int64_t groups, const int32_t *restrict x, const int8_t *restrict w,
                       int32_t sums[FEW][NARROW]) {
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i own[FEW][2];
#pragma GCC unroll 8
  for (int r = 0; r < M; r++) own[r][0] = own[r][1] = _mm256_setzero_si256();
  for (int64_t i = 0; i < groups; i++) {
    __m256i first = _mm256_loadu_si256((const __m256i *)(w + GROUP * NARROW * i));
    __m256i second = _mm256_loadu_si256((const __m256i *)(w + GROUP * NARROW * i + 32));
    _mm_prefetch((const char *)(w + GROUP * NARROW * (groups + i)), _MM_HINT_T1); /* the panel after this one */
#pragma GCC unroll 8
    for (int r = 0; r < M; r++) {
      __m256i value = _mm256_set1_epi32(x[M * i + r]);
      own[r][0] = _mm256_add_epi32(own[r][0], _mm256_madd_epi16(_mm256_maddubs_epi16(value, first), ones));
      own[r][1] = _mm256_add_epi32(own[r][1], _mm256_madd_epi16(_mm256_maddubs_epi16(value, second), ones));
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < M; r++) {
    _mm256_storeu_si256((__m256i *)sums[r], own[r][0]);
    _mm256_storeu_si256((__m256i *)(sums[r] + NARROW / 2), own[r][1]);
  }
}

static void byte_tile_of(int64_t M, int64_t groups, const int32_t *x, const int8_t *w, int32_t sums[FEW][NARROW]) {
#define CASE(m) case m: byte_tile(m, groups, x, w, sums); return;
  switch (M) { CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) }
#undef CASE
}

void multiply_bytes(int64_t R, int64_t I, int64_t O, const float *restrict x, const int8_t *restrict panels,
                    const int32_t *restrict centre, const float *restrict scale, const float *restrict bias,
                    float *restrict y) {
  int64_t groups = (I + GROUP - 1) / GROUP, block = least(R, block_of(groups)), panel_count = (O + NARROW - 1) / NARROW;
  int32_t *tiles = malloc(sizeof(int32_t) * block * groups);
  float *steps = malloc(sizeof(float) * block);
  uint8_t *row_bytes = calloc(groups, GROUP); /* what is beyond the last input meets zeros */
  for (int64_t first = 0; first < R; first += block) {
    int64_t rows = least(block, R - first), count = (rows + FEW - 1) / FEW;
    for (int64_t t = 0; t < count; t++) {
      int64_t begin = edge(rows, count, t), M = edge(rows, count, t + 1) - begin;
      for (int64_t r = 0; r < M; r++) {
        const float *row = x + I * (first + begin + r);
        float largest = 1e-37f, nothing = 0.0f; /* unless a number is none: then no sum is one */
#pragma omp simd reduction(max : largest) reduction(+ : nothing)
        for (int64_t i = 0; i < I; i++) {
          float a = fabsf(row[i]);
          largest = a > largest ? a : largest;
          nothing += 0.0f * row[i];
        }
        float inverse = 127.0f / largest;
        steps[begin + r] = largest / 127.0f + nothing;
#pragma omp simd
        for (int64_t i = 0; i < I; i++) row_bytes[i] = (uint8_t)(int32_t)fmaf(row[i], inverse, 128.5f);
        int32_t *out = tiles + groups * begin + r;
        for (int64_t i = 0; i < groups; i++) memcpy(out + M * i, row_bytes + GROUP * i, GROUP);
      }
    }
#pragma omp parallel for if ((double)rows * I * O > WORTHWHILE)
    for (int64_t p = 0; p < panel_count; p++) {
      int64_t start = NARROW * p, width = least(NARROW, O - start);
      for (int64_t t = 0; t < count; t++) {
        int64_t begin = edge(rows, count, t), M = edge(rows, count, t + 1) - begin;
        int32_t sums[FEW][NARROW];
        byte_tile_of(M, groups, tiles + groups * begin, panels + GROUP * NARROW * groups * p, sums);
        for (int64_t r = 0; r < M; r++) {
          float *out = y + O * (first + begin + r) + start, step = steps[begin + r];
          for (int64_t o = 0; o < width; o++) {
            out[o] = fmaf(sums[r][o] - centre[start + o], step * scale[start + o], bias[start + o]);
          }
        }
      }
    }
  }
  free(tiles);
  free(steps);
  free(row_bytes);
}

/* The steps of a GRU (T,B,H), each the product with the recurrent matrix and what follows it (kernels_of.h). Element
 * (b, t) of the inputs' products begins at inputs + apart_b b + apart_t t; `projected` is room for (B,3H). */
void gru_next_f32(int64_t B, int64_t H, int64_t apart, const float *inputs, const float *projected, const float *before,
                  float *after);

void gru_steps(int64_t T, int64_t B, int64_t H, int64_t apart_b, int64_t apart_t, const float *inputs,
               const float *before, const float *panels, const float *bias, float *projected, float *states) {
  for (int64_t t = 0; t < T; t++, before = states, states += B * H) {
    multiply(B, H, 3 * H, before, panels, bias, projected);
    gru_next_f32(B, H, apart_b, inputs + apart_t * t, projected, before, states);
  }
}

void gru_steps_of_bytes(int64_t T, int64_t B, int64_t H, int64_t apart_b, int64_t apart_t, const float *inputs,
                        const float *before, const int8_t *panels, const int32_t *centre, const float *scale,
                        const float *bias, float *projected, float *states) {
  for (int64_t t = 0; t < T; t++, before = states, states += B * H) {
    multiply_bytes(B, H, 3 * H, before, panels, centre, scale, bias, projected);
    gru_next_f32(B, H, apart_b, inputs + apart_t * t, projected, before, states);
  }
}
#endif
