/* The slots of a beam between two steps of the model: what seq2seq/translation/beam.py says in PyTorch's operations, which
 * are some sixty, for five hypotheses of one sentence a good part of the time of a step.
 *
 * Letters: B sentences, K slots, C continuations of a row, R rows (the open slots), U steps so far.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define MOST 256 /* slots of a sentence */

int64_t most_slots(void) { return MOST; }

/* NaN before all numbers, as PyTorch sorts: it is to be noticed. */
static inline int better(float a, float b) { return a > b || (a != a && b == b); }

static inline float normalised(float total, int64_t length, float penalty) {
  return total / powf((float)(length < 1 ? 1 : length), penalty);
}

/* Whether a sentence needs no further step. */
static int is_done(int64_t K, int64_t n_best, int greedy, float penalty, int64_t step, int64_t limit,
                   const float *total, const int64_t *length, const uint8_t *closed) {
  int going_on = 0;
  float hope = -INFINITY, scores[MOST];
  int64_t count = 0;
  for (int64_t k = 0; k < K; k++) {
    if (closed[k]) {
      float score = normalised(total[k], length[k], penalty);
      int64_t j = count++;
      for (; j > 0 && better(score, scores[j - 1]); j--) scores[j] = scores[j - 1];
      scores[j] = score;
    } else if (total[k] != -INFINITY) {
      float most = normalised(total[k], limit, penalty);
      going_on = 1;
      if (better(most, hope)) hope = most;
    }
  }
  if (!going_on || limit <= step) return 1;
  return !greedy && count >= n_best && hope < scores[n_best - 1];
}

/* Every open slot takes one of the best continuations, closed ones keep what they hold; open ones stand first. */
void extend_beams(int64_t B, int64_t K, int64_t C, int64_t R, int64_t U, int64_t eos, int64_t n_best, int64_t greedy,
                  int64_t step, float penalty, const int64_t *place, const float *answers, const int64_t *words,
                  const int64_t *limit, const float *total, const int64_t *length, const uint8_t *closed,
                  const int64_t *tokens, float *new_total, int64_t *new_length, uint8_t *new_closed,
                  int64_t *new_tokens, int64_t *parent, uint8_t *done) {
  int64_t r = 0, row[MOST], rank[MOST], from[MOST], word[MOST];
  float sum[MOST];
  uint8_t ended[MOST];
  for (int64_t b = 0; b < B; b++) {
    const int64_t first = b * K;
    for (int64_t k = 0; k < K; k++) {
      row[k] = r < R && place[r] == first + k ? r++ : -1;
      rank[k] = 0;
    }
    for (int64_t k = 0; k < K; k++) {
      const int64_t here = first + k;
      from[k] = k, word[k] = eos, sum[k] = closed[here] ? total[here] : -INFINITY, ended[k] = closed[here];
      if (closed[here]) continue;
      int64_t chosen = -1;
      float most = -INFINITY;
      for (int64_t s = 0; s < K; s++) { /* a row's answers come best first, so its next one is all there is to see */
        if (row[s] < 0 || rank[s] >= C) continue;
        const float found = total[first + s] + answers[row[s] * C + rank[s]];
        if (better(found, most)) chosen = s, most = found;
      }
      if (chosen < 0) continue; /* nothing is left: the slot stays open and empty */
      from[k] = chosen, word[k] = words[row[chosen] * C + rank[chosen]++], sum[k] = most;
      ended[k] = word[k] == eos;
    }
    int64_t to = first;
    for (int over = 0; over < 2; over++) {
      for (int64_t k = 0; k < K; k++) {
        if (ended[k] != over) continue;
        const int64_t old = first + from[k];
        parent[to] = from[k], new_total[to] = sum[k], new_closed[to] = ended[k];
        new_length[to] = length[old] + !closed[first + k];
        if (U) memcpy(new_tokens + to * (U + 1), tokens + old * U, U * sizeof *tokens);
        new_tokens[to * (U + 1) + U] = word[k];
        to++;
      }
    }
    done[b] = is_done(K, n_best, greedy, penalty, step, limit[b], new_total + first, new_length + first,
                      new_closed + first);
  }
}

/* The slots that go on, of `b` sentences that are there still: the old row, the place and the last token of each. Their
 * number is the answer. `staying` names these sentences among the old ones, or is NULL: all of them. */
int64_t open_rows(int64_t b, int64_t K, int64_t U, int64_t R, const int64_t *staying, const int64_t *old_place,
                  const int64_t *parent, const float *total, const uint8_t *closed, const uint8_t *collected,
                  const int64_t *tokens, int64_t *row, int64_t *place, int64_t *last) {
  int64_t count = 0, r = 0;
  for (int64_t i = 0; i < b; i++) {
    const int64_t old = (staying ? staying[i] : i) * K;
    while (r < R && old_place[r] < old) r++;
    if (collected[i]) continue;
    for (int64_t here = i * K; here < (i + 1) * K; here++) {
      if (closed[here] || total[here] == -INFINITY) continue;
      int64_t from = r;
      while (from < R && old_place[from] < old + parent[old + here - i * K]) from++;
      row[count] = from, place[count] = here, last[count] = tokens[here * U + U - 1];
      count++;
    }
  }
  return count;
}
