// FlashSparse (Shi et al., PPoPP 2025) behind kernel.h: its tensor-core SpMM for f16, and in TF32 for f32.
//
// A is in its format ME-BCRS: windows of 8 or 16 rows, of which the columns that have a nonzero are stored as dense
// vectors. Its authors give the time of the best of four kernels; `prepare` times them and keeps the best.
#include <algorithm>
#include <memory>

#include "adapter.cuh"
#include "FlashSparse/SpMM/src/spmmKernel.cu"

namespace {

enum Kernel { kEight, kMapped, kBalanced, kSixteen, kKernels };
constexpr int kGroup = 32;  // blocks of one part of a balanced window, as in its benchmark

// Values are f16 as bits, or f32.
template <typename T>
struct Format {
  int windows = 0, parts = 0;
  bool gaps = false;  // some window is empty, and no kernel writes its rows
  gustav::Array<int> offsets, columns;
  gustav::Array<T> values;
  gustav::Array<int> part_offsets, part_windows, part_adds;  // balanced
  bool adds = false;

  Format(const gustav_matrix &a, int height) {
    constexpr int kWidth = sizeof(T) == 2 ? 8 : 4;
    const auto *source = static_cast<const T *>(a.host_values);
    windows = static_cast<int>((a.rows + height - 1) / height);
    std::vector<int> starts{0}, stored, found, cuts{0}, cut_windows, cut_adds;
    std::vector<T> dense;
    for (int window = 0; window < windows; ++window) {
      const int64_t first = int64_t(window) * height, last = std::min<int64_t>(first + height, a.rows);
      found.assign(a.host_indices + a.host_offsets[first], a.host_indices + a.host_offsets[last]);
      std::sort(found.begin(), found.end());
      found.erase(std::unique(found.begin(), found.end()), found.end());
      const int count = static_cast<int>(found.size());
      const size_t base = dense.size();
      dense.resize(base + size_t(count) * height, T(0));
      for (int64_t row = first; row < last; ++row) {
        auto place = found.begin();
        for (int at = a.host_offsets[row]; at < a.host_offsets[row + 1]; ++at) {
          place = std::lower_bound(place, found.end(), a.host_indices[at]);
          const int vector = static_cast<int>(place - found.begin()), block = vector / kWidth * kWidth;
          // Blocks are row-major, the last one only as wide as the vectors left.
          const int width = std::min(kWidth, count - block);
          dense[base + size_t(block) * height + (row - first) * width + vector - block] = source[at];
        }
      }
      stored.insert(stored.end(), found.begin(), found.end());
      if (stored.size() > INT32_MAX) throw gustav::Error("too many vectors");
      starts.push_back(static_cast<int>(stored.size()));
      gaps |= count == 0;
      for (int done = 0; done < count; done += kGroup * kWidth) {
        cuts.push_back(starts[window] + std::min(count, done + kGroup * kWidth));
        cut_windows.push_back(window);
        cut_adds.push_back(count > kGroup * kWidth);
        adds |= cut_adds.back();
      }
    }
    offsets.upload(starts);
    columns.upload(stored);
    values.upload(dense);
    if (height == 8) {
      parts = static_cast<int>(cut_windows.size());
      part_offsets.upload(cuts);
      part_windows.upload(cut_windows);
      part_adds.upload(cut_adds);
    }
  }
};

struct State {
  gustav_case product;
  Kernel kernel = kSixteen;
  std::unique_ptr<Format<uint16_t>> half[2];   // of 8 and of 16 rows
  std::unique_ptr<Format<float>> single[2];
  std::unique_ptr<gustav::Array<float>> sums;  // C in f32, as the balanced kernel for f16 leaves it
};

__global__ void to_half(const float *from, half *to, size_t count) {
  for (size_t at = size_t(blockIdx.x) * blockDim.x + threadIdx.x; at < count; at += size_t(gridDim.x) * blockDim.x)
    to[at] = __float2half(from[at]);
}

dim3 window_grid(int n, int tile, int spread, int windows) {
  return dim3((n + tile - 1) / tile, spread, windows / spread + 1);
}

// The grid over parts, as its launcher makes it.
dim3 part_grid(int n, int parts, int &spread) {
  spread = parts < 500000 ? 8 : (parts / 1250000 + 1) * 20;
  return window_grid(n, 64, spread, parts);
}

void clear(bool needed, void *c, size_t bytes) {
  if (needed) gustav::check(cudaMemsetAsync(c, 0, bytes, nullptr));
}

void multiply_half(const State &state, const void *b, void *c) {
  const int rows = static_cast<int>(state.product.a.rows), n = static_cast<int>(state.product.columns);
  const size_t count = size_t(rows) * n;
  const auto &a = *state.half[state.kernel == kSixteen];
  const auto *values = reinterpret_cast<const double *>(a.values.data);
  const auto *dense = static_cast<const double *>(b);
  auto *result = static_cast<half *>(c);
  if (state.kernel == kBalanced) {
    float *sums = state.sums->data;
    clear(a.gaps || a.adds, sums, count * sizeof(float));
    int spread;
    const dim3 grid = part_grid(n, a.parts, spread);
    spmm_forward_cuda_kernel_fp16_balance<64><<<grid, 128>>>(
        a.part_offsets.data, a.columns.data, values, a.part_windows.data, a.part_adds.data, dense, sums, n, a.parts, n,
        rows, spread);
    to_half<<<4096, 256>>>(sums, result, count);
    return;
  }
  clear(a.gaps, c, count * sizeof(half));
  if (state.kernel == kEight)
    spmm_forward_cuda_kernel_fp16_test<<<window_grid(n, 64, 200, a.windows), 128>>>(
        a.offsets.data, a.columns.data, values, static_cast<const float2 *>(b), result, n, a.windows, n, rows, 64);
  else if (state.kernel == kMapped)
    spmm_forward_cuda_kernel_fp16_map<<<window_grid(n, 64, 200, a.windows), 128>>>(
        a.offsets.data, a.columns.data, values, dense, result, n, a.windows, n, rows, 64);
  else
    spmm_forward_cuda_kernel_fp16_16<32><<<window_grid(n, 32, 100, a.windows), 128>>>(
        a.offsets.data, a.columns.data, values, dense, result, (n + 7) / 8 * 8, a.windows, n, rows);
}

void multiply_single(const State &state, const void *b, void *c) {
  const int rows = static_cast<int>(state.product.a.rows), n = static_cast<int>(state.product.columns);
  const auto &a = *state.single[state.kernel == kSixteen];
  const auto *dense = static_cast<const float *>(b);
  auto *result = static_cast<float *>(c);
  clear(a.gaps || (state.kernel == kBalanced && a.adds), c, size_t(rows) * n * sizeof(float));
  if (state.kernel == kEight) {
    spmm_forward_cuda_kernel_tf32<64><<<window_grid(n, 64, 200, a.windows), 128>>>(
        a.offsets.data, a.columns.data, a.values.data, dense, result, n, a.windows, n, rows);
  } else if (state.kernel == kMapped) {
    spmm_forward_cuda_kernel_tf32_map<64><<<window_grid(n, 64, 200, a.windows), 128>>>(
        a.offsets.data, a.columns.data, a.values.data, dense, result, n, a.windows, n, rows);
  } else if (state.kernel == kBalanced) {
    int spread;
    const dim3 grid = part_grid(n, a.parts, spread);
    spmm_forward_cuda_kernel_tf32_balance<64><<<grid, 128>>>(
        a.part_offsets.data, a.columns.data, a.values.data, a.part_windows.data, a.part_adds.data, dense, result, n,
        a.parts, n, rows, spread);
  } else {
    spmm_forward_cuda_kernel_tf32_16<32><<<window_grid(n, 32, 100, a.windows), 128>>>(
        a.offsets.data, a.columns.data, a.values.data, dense, result, (n + 7) / 8 * 8, a.windows, n, rows);
  }
}

void multiply(const State &state, const void *b, void *c) {
  state.product.type == GUSTAV_F16 ? multiply_half(state, b, c) : multiply_single(state, b, c);
}

template <typename T>
void choose(State &state, std::unique_ptr<Format<T>> (&formats)[2]) {
  const gustav_case &product = state.product;
  const size_t n = product.columns, inputs = product.a.cols * n, results = product.a.rows * n;
  formats[1].reset(new Format<T>(product.a, 16));
  // Only the kernels for 16 rows mind the width; the others read B in tiles of 16 columns.
  if (n % 16) return;
  formats[0].reset(new Format<T>(product.a, 8));
  if (sizeof(T) == 2) state.sums.reset(new gustav::Array<float>(results));
  {
    gustav::Array<T> b(inputs), c(results);
    gustav::check(cudaMemset(b.data, 0, inputs * sizeof(T)));
    float best = 0;
    Kernel chosen = kEight;
    for (int kernel = 0; kernel < kKernels; ++kernel) {
      state.kernel = static_cast<Kernel>(kernel);
      const float time = gustav::milliseconds([&] { multiply(state, b.data, c.data); });
      if (kernel == 0 || time < best) {
        best = time;
        chosen = state.kernel;
      }
    }
    gustav::check(cudaGetLastError());
    state.kernel = chosen;
  }
  formats[state.kernel != kSixteen].reset();
  if (state.kernel != kBalanced) state.sums.reset();
}

}  // namespace

const char *gustav_peer_version(void) { return "flashsparse " GUSTAV_COMMIT " (f32 as TF32)"; }

int gustav_peer_prepare(const gustav_case *product, void **out, const char **message) {
  if (product->operation != GUSTAV_SPMM) return gustav::unsupported("this adapter has its SpMM only", message);
  if (product->type == GUSTAV_F64) return gustav::unsupported("it has no f64", message);
  return gustav::prepared<State>(product, out, message, [&](State &state) {
    product->type == GUSTAV_F16 ? choose(state, state.half) : choose(state, state.single);
  });
}

int gustav_peer_execute(void *state, const void *b, void *c, const char **message) {
  return gustav::executed(message, [&] { multiply(*static_cast<State *>(state), b, c); });
}

void gustav_peer_release(void *state) { delete static_cast<State *>(state); }

GUSTAV_DENSE_PRODUCT_ONLY
