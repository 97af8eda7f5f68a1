// Acc-SpMM (Zhao et al., PPoPP 2025) behind kernel.h: its tensor-core SpMM, which takes f32 as TF32.
//
// The kernels are the published ones with their indices repaired (build.sh); as published they give a right C only
// where all of B is one number. Reordering of rows is not among its sources.
#include <memory>

#include "adapter.cuh"
#include "format.hpp"
#include "tf32_comp.hpp"

namespace {

// A in one of its two formats: windows of eight rows, or groups of blocks of windows that add to C.
struct Format {
  bool grouped = false;
  vint blocks = 0;
  gustav::Array<vint> starts, block_starts, block_rows, columns;
  gustav::Array<TCLOCAL_TYPE> bits;
  gustav::Array<float> values;

  void upload(const METCFBit<float> &from) {
    blocks = from.rowWindowOffset.size() - 1;
    starts.upload(from.rowWindowOffset);
    block_starts.upload(from.tcOffset);
    upload_blocks(from, from.tcLocalBit);
  }

  void upload(const AdpBME<float> &from) {
    grouped = true;
    blocks = from.groupOffset.size() - 1;
    starts.upload(from.groupOffset);
    block_starts.upload(from.tcOffset);
    block_rows.upload(from.rowIndices, 1);
    upload_blocks(from, from.tcLocalBit);
  }

 private:
  // The kernels prefetch columns of one block past the end.
  void upload_blocks(const TensorCoreFormat<float> &from, const std::vector<TCLOCAL_TYPE> &masks) {
    columns.upload(from.sparseA2B, COL_WINDOW);
    bits.upload(masks, 1);
    values.upload(from.data, 1);
  }
};

struct State {
  gustav_case product;
  int64_t whole = 0;  // rows in full windows
  Format body, tail;
  gustav::Array<float> tail_rows;  // the kernel writes all rows of the last window, C may not have them
  cudaStream_t first = nullptr, second = nullptr;

  ~State() {
    if (first) cudaStreamDestroy(first);
    if (second) cudaStreamDestroy(second);
  }
};

// Rows of A as its CSR. Its kernel of windows does not know empty ones: with `fill`, they get a zero.
CSR<float> rows_of(const gustav_matrix &a, int64_t first, int64_t last, bool fill) {
  CSR<float> csr;
  csr.rows = last - first;
  csr.cols = a.cols;
  csr.row_ptr.push_back(0);
  const auto *values = static_cast<const float *>(a.host_values);
  for (int64_t row = first; row < last; ++row) {
    const int64_t end = std::min<int64_t>(row + ROW_WINDOW, last);
    const bool empty = (row - first) % ROW_WINDOW == 0 && a.host_offsets[row] == a.host_offsets[end];
    if (fill && empty) {
      csr.col_idx.push_back(0);
      csr.data.push_back(0);
    }
    csr.col_idx.insert(csr.col_idx.end(), a.host_indices + a.host_offsets[row],
                       a.host_indices + a.host_offsets[row + 1]);
    csr.data.insert(csr.data.end(), values + a.host_offsets[row], values + a.host_offsets[row + 1]);
    csr.row_ptr.push_back(csr.col_idx.size());
  }
  csr.nnz = csr.col_idx.size();
  return csr;
}

void convert(State &state) {
  const gustav_matrix &a = state.product.a;
  state.whole = a.rows / ROW_WINDOW * ROW_WINDOW;
  if (state.whole) {
    METCFBit<float> windows;
    windows.convertFromCSR(rows_of(a, 0, state.whole, true));
    // Its own choice between the formats.
    if (balanceStrategy(windows, windows.tcOffset.size() - 1, windows.rowWindowOffset.size() - 1)) {
      AdpBME<float> groups;
      groups.CSR2AdpBME(rows_of(a, 0, state.whole, false), 3, 1, 2);
      state.body.upload(groups);
    } else {
      state.body.upload(windows);
    }
  }
  if (state.whole < a.rows) {
    METCFBit<float> windows;
    windows.convertFromCSR(rows_of(a, state.whole, a.rows, true));
    state.tail.upload(windows);
    state.tail_rows.allocate(ROW_WINDOW * state.product.columns);
  }
}

void multiply(const Format &a, vint cols, vint n, const float *b, float *c, cudaStream_t stream) {
  // Warps take 32 columns, or 64 in the kernel for wide groups.
  const dim3 threads(WARP_SIZE, a.grouped && n > 128 ? n / 64 : n / 32);
  if (!a.grouped)
    tf32_mma_kernel<<<a.blocks, threads, 0, stream>>>(a.bits.data, a.columns.data, a.values.data, a.starts.data,
                                                      a.block_starts.data, b, c, cols, n);
  else if (n <= 128)
    tf32_mma_balance_kernel<<<a.blocks, threads, 0, stream>>>(a.starts.data, a.block_starts.data, a.block_rows.data,
                                                              a.bits.data, a.columns.data, a.values.data, b, c, cols,
                                                              n);
  else
    tf32_mma_balance_g128_kernel<<<a.blocks, threads, 0, stream>>>(a.starts.data, a.block_starts.data,
                                                                   a.block_rows.data, a.bits.data, a.columns.data,
                                                                   a.values.data, b, c, cols, n);
}

}  // namespace

const char *gustav_peer_version(void) { return "acc-spmm " GUSTAV_COMMIT " (f32 as TF32; indices repaired)"; }

int gustav_peer_prepare(const gustav_case *product, void **out, const char **message) {
  const gustav_matrix &a = product->a;
  const int64_t n = product->columns;
  if (product->operation != GUSTAV_SPMM) return gustav::unsupported("it has SpMM only", message);
  if (product->type != GUSTAV_F32) return gustav::unsupported("it has TF32 only", message);
  // A block of A is fetched by 64 threads, of which 32 columns have 32; wider B is for a kernel that mixes columns up.
  if (n < 64 || n > 512 || n % (n > 128 ? 64 : 32))
    return gustav::unsupported("its kernels take widths of 64, 96, 128, 192, 256 and so on to 512", message);
  if (a.cols * n > UINT32_MAX || a.rows * n > UINT32_MAX)
    return gustav::unsupported("its 32-bit offsets do not reach all of B or C", message);
  return gustav::prepared<State>(product, out, message, [&](State &state) {
    convert(state);
    // Both streams wait for the legacy default stream and make it wait.
    gustav::check(cudaStreamCreate(&state.first));
    gustav::check(cudaStreamCreate(&state.second));
  });
}

int gustav_peer_execute(void *state_, const void *b, void *c, const char **message) {
  const auto &state = *static_cast<State *>(state_);
  const gustav_matrix &a = state.product.a;
  const vint cols = a.cols, n = state.product.columns;
  const auto *dense = static_cast<const float *>(b);
  auto *result = static_cast<float *>(c);
  cudaError_t error = cudaSuccess;
  if (state.body.grouped) error = cudaMemsetAsync(c, 0, sizeof(float) * state.whole * n, nullptr);
  if (state.body.blocks) multiply(state.body, cols, n, dense, result, state.first);
  if (state.tail.blocks) {
    multiply(state.tail, cols, n, dense, state.tail_rows.data, state.second);
    const cudaError_t copied =
        cudaMemcpyAsync(result + state.whole * n, state.tail_rows.data, sizeof(float) * (a.rows - state.whole) * n,
                        cudaMemcpyDeviceToDevice, state.second);
    if (error == cudaSuccess) error = copied;
  }
  return gustav::launched(error, message);
}

void gustav_peer_release(void *state) { delete static_cast<State *>(state); }

GUSTAV_DENSE_PRODUCT_ONLY
