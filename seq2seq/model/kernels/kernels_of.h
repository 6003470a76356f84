/* The kernels for one kind of number; kernels.c includes this file once for each. Rows are shared out among threads. */

/* Step t of a GRU, after its matrix products: inputs (T,B,3H), their bias (3H) and the step's projected (B,3H), in the
 * order r, z, n. It reads states[t] and writes states[t + 1] (B,H each); kept for the way back are gates (T,B,2H), the
 * candidates and the recurrent part of them (T,B,H). */
void OF(gru_step)(int64_t t, int64_t B, int64_t H, const NUMBER *restrict inputs,
                  const float *restrict bias, const NUMBER *restrict projected,
                  NUMBER *restrict states, NUMBER *restrict gates, NUMBER *restrict candidates,
                  NUMBER *restrict recurrent) {
#pragma omp parallel for if (B * H > 16384)
  for (int64_t b = 0; b < B; b++) {
    const NUMBER *x = inputs + 3 * H * (B * t + b), *p = projected + 3 * H * b, *h = states + H * (B * t + b);
    NUMBER *g = gates + 2 * H * (B * t + b), *c = candidates + H * (B * t + b), *u = recurrent + H * (B * t + b);
    NUMBER *out = states + H * (B * (t + 1) + b);
#pragma omp simd
    for (int64_t j = 0; j < H; j++) {
      float r = sigmoid_of(LOAD(x[j]) + bias[j] + LOAD(p[j]));
      float z = sigmoid_of(LOAD(x[H + j]) + bias[H + j] + LOAD(p[H + j]));
      float n = tanh_of(LOAD(x[2 * H + j]) + bias[2 * H + j] + r * LOAD(p[2 * H + j]));
      g[j] = STORE(r);
      g[H + j] = STORE(z);
      c[j] = STORE(n);
      u[j] = p[2 * H + j];
      out[j] = STORE(n + z * (LOAD(h[j]) - n));
    }
  }
}

/* The same step backwards: from the gradient of states[t + 1], in two parts (what came from the next step, what the layers
 * above ask), to those of inputs and projected (T,B,3H) and to the part of the next one that goes past the products. */
void OF(gru_step_back)(int64_t t, int64_t B, int64_t H, const NUMBER *restrict later, const NUMBER *restrict above, const NUMBER *restrict states,
                       const NUMBER *restrict gates, const NUMBER *restrict candidates,
                       const NUMBER *restrict recurrent, NUMBER *restrict grad_inputs,
                       NUMBER *restrict grad_projected, NUMBER *restrict earlier) {
#pragma omp parallel for if (B * H > 16384)
  for (int64_t b = 0; b < B; b++) {
    const NUMBER *l = later + H * b, *a = above + H * (B * t + b), *h = states + H * (B * t + b);
    const NUMBER *g = gates + 2 * H * (B * t + b), *c = candidates + H * (B * t + b);
    const NUMBER *u = recurrent + H * (B * t + b);
    NUMBER *gi = grad_inputs + 3 * H * (B * t + b), *gp = grad_projected + 3 * H * (B * t + b), *e = earlier + H * b;
#pragma omp simd
    for (int64_t j = 0; j < H; j++) {
      float grad = LOAD(l[j]) + LOAD(a[j]), r = LOAD(g[j]), z = LOAD(g[H + j]), n = LOAD(c[j]);
      float dn = grad * (1.0f - z) * (1.0f - n * n);
      float dz = grad * (LOAD(h[j]) - n) * z * (1.0f - z);
      float dr = dn * LOAD(u[j]) * r * (1.0f - r);
      gi[j] = gp[j] = STORE(dr);
      gi[H + j] = gp[H + j] = STORE(dz);
      gi[2 * H + j] = STORE(dn);
      gp[2 * H + j] = STORE(dn * r);
      e[j] = STORE(grad * z);
    }
  }
}

/* Logits without their bias (C,V) become, in place, the gradient of -log softmax(logits + bias)[gold], with the gold word
 * taught with `gold_share`. For each token: its log-sum, and its gold word's logit. Rows from `real` on become zeros. */
void OF(softmax_back)(int64_t C, int64_t V, int64_t real, float gold_share, const int64_t *restrict gold,
                      const float *restrict bias, NUMBER *restrict logits, float *restrict log_sums,
                      float *restrict gold_logits) {
#pragma omp parallel if (C * V > 16384)
  {
    float *row = malloc(sizeof(float) * (size_t)V); /* one token's logits, then their exponentials */
#pragma omp for
    for (int64_t t = 0; t < C; t++) {
      NUMBER *out = logits + V * t;
      if (t >= real || !row) {
        memset(out, 0, sizeof(NUMBER) * (size_t)V);
        log_sums[t] = gold_logits[t] = t < real ? NAN : 0.0f; /* no memory: an update that is skipped */
        continue;
      }
      float most = -INFINITY, sum = 0.0f;
#pragma omp simd reduction(max : most)
      for (int64_t v = 0; v < V; v++) {
        float x = LOAD(out[v]) + bias[v];
        row[v] = x;
        most = x > most ? x : most;
      }
      gold_logits[t] = row[gold[t]];
#pragma omp simd reduction(+ : sum)
      for (int64_t v = 0; v < V; v++) {
        row[v] = exp_of(row[v] - most);
        sum += row[v];
      }
      float scale = 1.0f / sum;
      log_sums[t] = most + logf(sum);
#pragma omp simd
      for (int64_t v = 0; v < V; v++) out[v] = STORE(row[v] * scale);
      out[gold[t]] = STORE(row[gold[t]] * scale - gold_share);
    }
    free(row);
  }
}

/* Two readings of the same tokens (2C,V), logits without their bias: row t and row C + t become, in place, the gradient of
 * the mean of their losses and of `weight` times their divergences from each other; see consistency.py. For each row its
 * log-sum and its gold word's logit, for each token the divergences. */
void OF(consistency_back)(int64_t C, int64_t V, int64_t real, float gold_share, float weight,
                          const int64_t *restrict gold, const float *restrict bias, NUMBER *restrict logits,
                          float *restrict log_sums, float *restrict gold_logits, float *restrict apart) {
#pragma omp parallel if (C * V > 16384)
  {
    float *p = malloc(sizeof(float) * 3 * (size_t)V), *q = p + V, *d = q + V;
#pragma omp for
    for (int64_t t = 0; t < C; t++) {
      NUMBER *one = logits + V * t, *other = logits + V * (C + t);
      if (t >= real || !p) {
        memset(one, 0, sizeof(NUMBER) * (size_t)V);
        memset(other, 0, sizeof(NUMBER) * (size_t)V);
        log_sums[t] = log_sums[C + t] = gold_logits[t] = gold_logits[C + t] = apart[t] = t < real ? NAN : 0.0f;
        continue;
      }
      float most_p = -INFINITY, most_q = -INFINITY;
#pragma omp simd reduction(max : most_p, most_q)
      for (int64_t v = 0; v < V; v++) {
        float a = LOAD(one[v]) + bias[v], b = LOAD(other[v]) + bias[v];
        p[v] = a;
        q[v] = b;
        d[v] = a - b;
        most_p = a > most_p ? a : most_p;
        most_q = b > most_q ? b : most_q;
      }
      gold_logits[t] = p[gold[t]];
      gold_logits[C + t] = q[gold[t]];
      float sum_p = 0.0f, sum_q = 0.0f, mean_p = 0.0f, mean_q = 0.0f;
#pragma omp simd reduction(+ : sum_p, sum_q, mean_p, mean_q)
      for (int64_t v = 0; v < V; v++) {
        p[v] = exp_of(p[v] - most_p);
        q[v] = exp_of(q[v] - most_q);
        sum_p += p[v];
        sum_q += q[v];
        mean_p += p[v] * d[v];
        mean_q += q[v] * d[v];
      }
      log_sums[t] = most_p + logf(sum_p);
      log_sums[C + t] = most_q + logf(sum_q);
      float scale_p = 1.0f / sum_p, scale_q = 1.0f / sum_q;
      mean_p *= scale_p;
      mean_q *= scale_q;
      apart[t] = mean_p - mean_q;
#pragma omp simd
      for (int64_t v = 0; v < V; v++) {
        float x = p[v] * scale_p, y = q[v] * scale_q;
        p[v] = x * (0.5f + weight * (1.0f + d[v] - mean_p)) - weight * y;
        q[v] = y * (0.5f + weight * (1.0f - d[v] + mean_q)) - weight * x;
      }
      p[gold[t]] -= gold_share;
      q[gold[t]] -= gold_share;
#pragma omp simd
      for (int64_t v = 0; v < V; v++) {
        one[v] = STORE(p[v]);
        other[v] = STORE(q[v]);
      }
    }
    free(p);
  }
}

/* out = (x - every row's same constant) * scale, (V,E) in fp32. */
void OF(scaled)(int64_t V, int64_t E, const NUMBER *restrict x, const float *restrict constant, float scale,
                float *restrict out) {
#pragma omp parallel for if (V * E > 16384)
  for (int64_t v = 0; v < V; v++) {
#pragma omp simd
    for (int64_t e = 0; e < E; e++) out[E * v + e] = (LOAD(x[E * v + e]) - constant[e]) * scale;
  }
}

/* Row ids[n] of out (V,E) += scale * row n of rows (N,E). Threads share out the columns, since ids repeat. */
void OF(add_rows)(int64_t N, int64_t E, const int64_t *restrict ids, const NUMBER *restrict rows, float scale,
                  float *restrict out) {
#pragma omp parallel for if (N * E > 16384)
  for (int64_t first = 0; first < E; first += 64) {
    int64_t last = first + 64 < E ? first + 64 : E;
    for (int64_t n = 0; n < N; n++) {
#pragma omp simd
      for (int64_t e = first; e < last; e++) out[E * ids[n] + e] += scale * LOAD(rows[E * n + e]);
    }
  }
}

/* out = x * scale where the random byte is at least `dropped`, else 0. */
void OF(dropout)(int64_t N, int64_t dropped, float scale, const uint8_t *restrict bytes, const NUMBER *restrict x,
                 NUMBER *restrict out) {
#pragma omp parallel for simd if (N > 16384)
  for (int64_t i = 0; i < N; i++) out[i] = STORE(bytes[i] >= dropped ? LOAD(x[i]) * scale : 0.0f);
}

/* The state after one step, (B,H): inputs and projected (B,3H), biases included; a row of inputs every `apart` numbers. */
void OF(gru_next)(int64_t B, int64_t H, int64_t apart, const NUMBER *restrict inputs, const NUMBER *restrict projected,
                  const NUMBER *restrict before, NUMBER *restrict after) {
#pragma omp parallel for if (B * H > 16384)
  for (int64_t b = 0; b < B; b++) {
    const NUMBER *x = inputs + apart * b, *p = projected + 3 * H * b, *h = before + H * b;
    NUMBER *out = after + H * b;
#pragma omp simd
    for (int64_t j = 0; j < H; j++) {
      float r = sigmoid_of(LOAD(x[j]) + LOAD(p[j]));
      float z = sigmoid_of(LOAD(x[H + j]) + LOAD(p[H + j]));
      float n = tanh_of(LOAD(x[2 * H + j]) + r * LOAD(p[2 * H + j]));
      out[j] = STORE(n + z * (LOAD(h[j]) - n));
    }
  }
}

/* The best C words of each row of logits (R,V), best first and equal ones in the vocabulary's order, with their
 * log-probabilities (R,C); `never` has words that are not chosen, though they keep their share. Where fewer than C words
 * are possible the rest is -inf. `own` (B,V), if there is one, says of each sentence which words it may use at all, and
 * `sentence` (R) which is a row's: the others are taken out before anything is added up, so that a sum is the same
 * whatever words the neighbours use. */
void OF(best_words)(int64_t R, int64_t V, int64_t C, int64_t excluded, const int64_t *restrict never,
                    const uint8_t *restrict own, const int64_t *restrict sentence, NUMBER *restrict logits, float *restrict best,
                    int64_t *restrict words) {
  int64_t all_words = V;
#pragma omp parallel for if (R * all_words > 16384)
  for (int64_t r = 0; r < R; r++) {
    NUMBER *row = logits + all_words * r;
    float *found = best + C * r, most = -INFINITY, sum = 0.0f;
    int64_t *word = words + C * r, *named = NULL, V = all_words;
    if (own) { /* the row's own words move to its front */
      const uint8_t *mine = own + all_words * sentence[r];
      named = malloc(sizeof(int64_t) * (all_words + 1));
      V = 0;
      for (int64_t v = 0; v < all_words; v++) {
        row[V] = row[v];
        named[V] = v;
        V += mine[v] != 0;
      }
    }
    int64_t stretches = (V + 63) / 64;
    float *peaks = malloc(sizeof(float) * (stretches + 1));
    for (int64_t s = 0; s < stretches; s++) {
      int64_t last = 64 * s + 64 < V ? 64 * s + 64 : V;
      float peak = -INFINITY;
#pragma omp simd reduction(max : peak)
      for (int64_t v = 64 * s; v < last; v++) { float x = LOAD(row[v]); peak = x > peak ? x : peak; }
      peaks[s] = peak;
      most = peak > most ? peak : most;
    }
#pragma omp simd reduction(+ : sum)
    for (int64_t v = 0; v < V; v++) sum += exp_of(LOAD(row[v]) - most);
    for (int64_t c = 0; c < C; c++) { found[c] = -INFINITY; word[c] = 0; }
    for (int64_t s = 0; s < stretches; s++) { /* few stretches hold anything that is still good enough */
      if (!(peaks[s] > found[C - 1])) continue;
      for (int64_t v = 64 * s; v < 64 * s + 64 && v < V; v++) {
        float x = LOAD(row[v]);
        if (!(x > found[C - 1])) continue;
        int64_t banned = 0, place = C - 1;
        for (int64_t i = 0; i < excluded; i++) banned |= never[i] == (named ? named[v] : v);
        if (banned) continue;
        for (; place > 0 && x > found[place - 1]; place--) {
          found[place] = found[place - 1];
          word[place] = word[place - 1];
        }
        found[place] = x;
        word[place] = named ? named[v] : v;
      }
    }
    free(peaks);
    free(named);
    for (int64_t c = 0, v = 0; c < C; c++) { /* no word is named twice, not even where none is possible */
      if (found[c] != -INFINITY) continue;
      for (int64_t i = 0; i < c; i++) {
        if (word[i] == v) { v++; i = -1; }
      }
      word[c] = v++;
    }
    float log_sum = V ? most + logf(sum) : 0.0f;
    for (int64_t c = 0; c < C; c++) found[c] -= log_sum;
  }
}

/* Rows (R,I) as bytes around 128, each with its own scale: x is about (byte - 128) * scale. */
void OF(to_bytes)(int64_t R, int64_t I, const NUMBER *restrict x, uint8_t *restrict bytes, float *restrict scales) {
#pragma omp parallel for if (R * I > 16384)
  for (int64_t r = 0; r < R; r++) {
    float largest = 1e-37f, nothing = 0.0f; /* unless a number is none: then the scale is none either */
#pragma omp simd reduction(max : largest) reduction(+ : nothing)
    for (int64_t i = 0; i < I; i++) {
      float a = fabsf(LOAD(x[I * r + i]));
      largest = a > largest ? a : largest;
      nothing += 0.0f * LOAD(x[I * r + i]);
    }
    float steps = 127.0f / largest;
    scales[r] = largest / 127.0f + nothing;
#pragma omp simd
    for (int64_t i = 0; i < I; i++) bytes[I * r + i] = (uint8_t)(int32_t)(LOAD(x[I * r + i]) * steps + 128.5f);
  }
}

/* y = y * the row's scale + bias, (R,O), in place. */
void OF(rescale)(int64_t R, int64_t O, const float *restrict scales, const float *restrict bias, NUMBER *restrict y) {
#pragma omp parallel for if (R * O > 16384)
  for (int64_t r = 0; r < R; r++) {
#pragma omp simd
    for (int64_t o = 0; o < O; o++) y[O * r + o] = STORE(LOAD(y[O * r + o]) * scales[r] + bias[o]);
  }
}
