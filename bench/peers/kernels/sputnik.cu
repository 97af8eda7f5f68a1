// Sputnik (Gale et al., SC 2020) behind kernel.h: its SpMM for f32 and, with 16-bit indices, for f16.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "adapter.cuh"
#include "sputnik/spmm/cuda_spmm.cu.cc"

namespace {

struct State {
  gustav_case product;
  gustav::Array<int> order;  // rows, long ones first
  // f16 only: every row has an even number of nonzeros, for the kernel reads pairs.
  gustav::Array<int> offsets;
  gustav::Array<int16_t> columns;
  gustav::Array<uint16_t> values;
  int nnz;
};

void pad_rows(const gustav_matrix &a, State &state) {
  std::vector<int> offsets(a.rows + 1);
  std::vector<int16_t> columns;
  std::vector<uint16_t> values;
  const auto *source = static_cast<const uint16_t *>(a.host_values);
  for (int64_t row = 0; row < a.rows; ++row) {
    for (int at = a.host_offsets[row]; at < a.host_offsets[row + 1]; ++at) {
      columns.push_back(static_cast<int16_t>(a.host_indices[at]));
      values.push_back(source[at]);
    }
    if (columns.size() % 2) {
      columns.push_back(columns.back());
      values.push_back(0);
    }
    if (columns.size() > INT32_MAX) throw gustav::Error("the padded matrix is too large");
    offsets[row + 1] = static_cast<int>(columns.size());
  }
  state.nnz = offsets.back();
  state.offsets.upload(offsets);
  state.columns.upload(columns);
  state.values.upload(values);
}

}  // namespace

const char *gustav_peer_version(void) { return "sputnik " GUSTAV_COMMIT; }

int gustav_peer_prepare(const gustav_case *product, void **out, const char **message) {
  const gustav_matrix &a = product->a;
  const int64_t n = product->columns;
  if (product->operation != GUSTAV_SPMM) return gustav::unsupported("this adapter has its SpMM only", message);
  if (product->type == GUSTAV_F64) return gustav::unsupported("it has no f64", message);
  const bool half = product->type == GUSTAV_F16;
  if (half && a.cols > INT16_MAX + 1) return gustav::unsupported("its f16 kernel has 16-bit column indices", message);
  if (half && n % (n < 16 ? 2 : n % 64 ? 4 : 8))
    return gustav::unsupported("its f16 kernel reads vectors that do not fit this width", message);
  // Offsets into B are 32-bit counts of bytes, those into C of elements, and the grid is computed in f32.
  if (a.cols * n * (half ? 2 : 4) > INT32_MAX || a.rows * n > INT32_MAX)
    return gustav::unsupported("its 32-bit offsets do not reach all of B or C", message);
  if (a.rows > 1 << 24) return gustav::unsupported("its grid is inexact for so many rows", message);
  return gustav::prepared<State>(product, out, message, [&](State &state) {
    std::vector<int> order(a.rows);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int x, int y) {
      return a.host_offsets[x + 1] - a.host_offsets[x] > a.host_offsets[y + 1] - a.host_offsets[y];
    });
    state.order.upload(order);
    if (half) pad_rows(a, state);
  });
}

int gustav_peer_execute(void *state_, const void *b, void *c, const char **message) {
  auto &state = *static_cast<State *>(state_);
  const gustav_matrix &a = state.product.a;
  const int m = static_cast<int>(a.rows), k = static_cast<int>(a.cols), n = static_cast<int>(state.product.columns);
  cudaError_t error;
  if (state.product.type == GUSTAV_F16) {
    using sputnik::half2;
    error = sputnik::CudaSpmm(m, k, n, state.nnz, state.order.data,
                              reinterpret_cast<const half2 *>(state.values.data), state.offsets.data,
                              reinterpret_cast<const short2 *>(state.columns.data), static_cast<const half2 *>(b),
                              static_cast<half2 *>(c), nullptr);
  } else {
    error = sputnik::CudaSpmm(m, k, n, static_cast<int>(a.nnz), state.order.data,
                              static_cast<const float *>(a.values), a.offsets, a.indices,
                              static_cast<const float *>(b), static_cast<float *>(c), nullptr);
  }
  return gustav::launched(error, message);
}

void gustav_peer_release(void *state) { delete static_cast<State *>(state); }

GUSTAV_DENSE_PRODUCT_ONLY
