// Voltrix-SpMM (Xia et al., USENIX ATC 2025) behind kernel.h: its SpMM, which takes f32 as TF32.
//
// Its format is a bitmap: the kernels multiply by the pattern of A, as if all values were one.
#include <algorithm>

#include "adapter.cuh"
#include "voltrix/spmm_kernels.cuh"

namespace {

constexpr int kModels = 3;

struct State {
  gustav_case product;
  int model = 0;
  int64_t whole = 0;  // windows of 16 rows
  gustav::Array<int> starts, columns;
  gustav::Array<uint32_t> bits;
  gustav::Array<float> tail_rows;  // the kernels write all rows of the last window, C may not have them
  cudaStream_t first = nullptr, second = nullptr;

  ~State() {
    if (first) cudaStreamDestroy(first);
    if (second) cudaStreamDestroy(second);
  }
};

void convert(State &state) {
  const gustav_matrix &a = state.product.a;
  std::vector<int> starts{0}, kept, found;
  std::vector<uint32_t> masks;
  for (int64_t first = 0; first < a.rows; first += BLK_H) {
    const int64_t last = std::min<int64_t>(first + BLK_H, a.rows);
    found.assign(a.host_indices + a.host_offsets[first], a.host_indices + a.host_offsets[last]);
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    const size_t blocks = (found.size() + BLK_W - 1) / BLK_W, base = masks.size();
    // A block of 16 by 8 has four words, one of every quarter: the rows from 8 on are in the odd ones, the columns
    // from 4 on in the last two.
    masks.resize(base + blocks * 4, 0);
    for (int64_t row = first; row < last; ++row)
      for (int at = a.host_offsets[row]; at < a.host_offsets[row + 1]; ++at) {
        const size_t place = std::lower_bound(found.begin(), found.end(), a.host_indices[at]) - found.begin();
        const int r = static_cast<int>(row - first), c = static_cast<int>(place % BLK_W);
        masks[base + place / BLK_W * 4 + r / 8 + c / 4 * 2] |= 1u << (r % 8 * 4 + c % 4);
      }
    found.resize(blocks * BLK_W, 0);
    kept.insert(kept.end(), found.begin(), found.end());
    if (kept.size() > INT32_MAX / 2) throw gustav::Error("too many blocks");
    starts.push_back(static_cast<int>(masks.size() / 4));
  }
  state.starts.upload(starts);
  state.columns.upload(kept);
  state.bits.upload(masks);
  state.whole = a.rows / BLK_H;
  if (a.rows % BLK_H) state.tail_rows.allocate(BLK_H * state.product.columns);
}

void multiply(const State &state, const float *b, float *c) {
  const gustav_matrix &a = state.product.a;
  const int n = static_cast<int>(state.product.columns), nnz = static_cast<int>(a.nnz);
  const int64_t done = state.whole * BLK_H;
  if (state.whole)
    voltrix::voltrix_spmm_forward_cuda(state.starts.data, state.bits.data, state.columns.data, static_cast<int>(done),
                                       nnz, n, b, c, state.model, state.first);
  if (done < a.rows) {
    voltrix::voltrix_spmm_forward_cuda(state.starts.data + state.whole, state.bits.data, state.columns.data, BLK_H,
                                       nnz, n, b, state.tail_rows.data, state.model, state.second);
    gustav::check(cudaMemcpyAsync(c + done * n, state.tail_rows.data, sizeof(float) * (a.rows - done) * n,
                                  cudaMemcpyDeviceToDevice, state.second));
  }
}

// Its tuner takes the fastest of three kernels.
void choose(State &state) {
  const gustav_matrix &a = state.product.a;
  gustav::Array<float> b(a.cols * state.product.columns), c(a.rows * state.product.columns);
  gustav::check(cudaMemset(b.data, 0, sizeof(float) * a.cols * state.product.columns));
  float best = 0;
  int chosen = 0;
  for (int model = 0; model < kModels; ++model) {
    state.model = model;
    const float time = gustav::milliseconds([&] { multiply(state, b.data, c.data); });
    if (model == 0 || time < best) {
      best = time;
      chosen = model;
    }
  }
  state.model = chosen;
}

}  // namespace

const char *gustav_peer_version(void) { return "voltrix " GUSTAV_COMMIT " (f32 as TF32)"; }

int gustav_peer_prepare(const gustav_case *product, void **out, const char **message) {
  const gustav_matrix &a = product->a;
  const int64_t n = product->columns;
  if (product->operation != GUSTAV_SPMM) return gustav::unsupported("it has SpMM only", message);
  if (product->type != GUSTAV_F32) return gustav::unsupported("it has TF32 only", message);
  const auto *values = static_cast<const float *>(a.host_values);
  if (std::any_of(values, values + a.nnz, [](float value) { return value != 1; }))
    return gustav::unsupported("it multiplies by the pattern of A: its format has no values", message);
  if (n % BLK_H) return gustav::unsupported("its kernels take widths that are multiples of 16", message);
  if (a.cols * n > INT32_MAX || a.rows * n > INT32_MAX)
    return gustav::unsupported("its 32-bit offsets do not reach all of B or C", message);
  return gustav::prepared<State>(product, out, message, [&](State &state) {
    convert(state);
    // Both streams wait for the legacy default stream and make it wait.
    gustav::check(cudaStreamCreate(&state.first));
    gustav::check(cudaStreamCreate(&state.second));
    choose(state);
  });
}

int gustav_peer_execute(void *state, const void *b, void *c, const char **message) {
  return gustav::executed(message, [&] { multiply(*static_cast<State *>(state), static_cast<const float *>(b), static_cast<float *>(c)); });
}

void gustav_peer_release(void *state) { delete static_cast<State *>(state); }

GUSTAV_DENSE_PRODUCT_ONLY
