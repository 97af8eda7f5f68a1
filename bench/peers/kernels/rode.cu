// RoDe (Pang et al., PPoPP 2024) behind kernel.h: its SpMM kernels for n = 32 and n = 128, in f32 and f64.
#include "adapter.cuh"
#include "RoDe_SpMM/RoDeSpmm.cu"

namespace {

// What the kernels are built for: loads of four values, steps of 32 nonzeros, block parts of 512.
constexpr int kVector = 4, kStep = 32, kBlockPart = 512;

struct State {
  gustav_case product;
  int blocks = 0, residues = 0;
  gustav::Array<int> block_rows, block_starts, residue_rows;
  cudaStream_t first = nullptr, second = nullptr;

  ~State() {
    if (first) cudaStreamDestroy(first);
    if (second) cudaStreamDestroy(second);
  }
};

// Row decomposition: every row, widened to begin at a multiple of four nonzeros, has block parts of whole steps and a
// residue shorter than a step.
void split(const gustav_matrix &a, State &state) {
  std::vector<int> rows, starts, residues;
  for (int64_t row = 0; row < a.rows; ++row) {
    const int start = a.host_offsets[row], aligned = start - start % kVector;
    const int length = a.host_offsets[row + 1] - aligned;
    for (int done = 0; length - done >= kStep; done += kBlockPart) {
      rows.push_back(static_cast<int>(row));
      starts.push_back(done ? aligned + done : start);
    }
    if (length % kStep) residues.push_back(static_cast<int>(row));
  }
  starts.push_back(static_cast<int>(a.nnz));
  state.blocks = static_cast<int>(rows.size());
  state.residues = static_cast<int>(residues.size());
  state.block_rows.upload(rows);
  state.block_starts.upload(starts);
  state.residue_rows.upload(residues);
}

template <typename T>
void multiply(const State &state, const void *b, void *c) {
  const gustav_matrix &a = state.product.a;
  const int k = static_cast<int>(a.cols), n = static_cast<int>(state.product.columns);
  const auto *values = static_cast<const T *>(a.values), *dense = static_cast<const T *>(b);
  auto *result = static_cast<T *>(c);
  if (n % 64)
    RoDeSpmm_n32(state.blocks, state.residues, k, n, values, a.indices, a.offsets, state.block_rows.data,
                 state.residue_rows.data, state.block_starts.data, dense, result, state.first, state.second);
  else
    RoDeSpmm_n128(state.blocks, state.residues, k, n, values, a.indices, a.offsets, state.block_rows.data,
                  state.residue_rows.data, state.block_starts.data, dense, result, state.first, state.second);
}

}  // namespace

const char *gustav_peer_version(void) { return "rode " GUSTAV_COMMIT; }

int gustav_peer_prepare(const gustav_case *product, void **out, const char **message) {
  const gustav_matrix &a = product->a;
  const int64_t n = product->columns, size = product->type == GUSTAV_F64 ? 8 : 4;
  if (product->operation != GUSTAV_SPMM) return gustav::unsupported("this adapter has its SpMM only", message);
  if (product->type == GUSTAV_F16) return gustav::unsupported("it has no f16", message);
  if (n % 32) return gustav::unsupported("its kernels take widths that are multiples of 32", message);
  // Offsets into B are 32-bit counts of bytes, those into C of elements.
  if (a.cols * n * size > INT32_MAX || a.rows * n > INT32_MAX)
    return gustav::unsupported("its 32-bit offsets do not reach all of B or C", message);
  if (reinterpret_cast<uintptr_t>(a.values) % 32 || reinterpret_cast<uintptr_t>(a.indices) % 32)
    return gustav::fail(GUSTAV_FAILED, "it needs arrays aligned to 32 bytes", message);
  return gustav::prepared<State>(product, out, message, [&](State &state) {
    split(a, state);
    // Both streams wait for the legacy default stream and make it wait.
    gustav::check(cudaStreamCreate(&state.first));
    gustav::check(cudaStreamCreate(&state.second));
  });
}

int gustav_peer_execute(void *state_, const void *b, void *c, const char **message) {
  const auto &state = *static_cast<State *>(state_);
  const bool wide = state.product.type == GUSTAV_F64;
  // Long rows are added to C atomically.
  const size_t bytes = static_cast<size_t>(state.product.a.rows) * state.product.columns * (wide ? 8 : 4);
  cudaError_t error = cudaMemsetAsync(c, 0, bytes, nullptr);
  if (error != cudaSuccess) return gustav::launched(error, message);
  wide ? multiply<double>(state, b, c) : multiply<float>(state, b, c);
  // It launches a kernel of no blocks where all rows are short, or none has a residue, which CUDA refuses by one of two
  // names.
  error = cudaGetLastError();
  const bool refused = error == cudaErrorInvalidConfiguration || error == cudaErrorInvalidValue;
  if (refused && (!state.blocks || !state.residues)) error = cudaSuccess;
  return gustav::launched(error, message);
}

void gustav_peer_release(void *state) { delete static_cast<State *>(state); }

GUSTAV_DENSE_PRODUCT_ONLY
