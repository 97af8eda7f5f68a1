// MH-SpGEMM (github.com/yyssys/MH-SpGEMM) behind ../kernel.h. Sums in f64 only; rows of C come sorted. A product
// includes the masks of B's rows, which its authors report apart, and the release of its scratch memory.
#include "spgemm.cuh"

#include <cub/cub.cuh>
#include <thrust/scan.h>

#include <cassert>
#include <climits>
#include <cmath>
#include <cstdint>

#define main mh_spgemm_main
#include "src/main.cu"
#undef main
#include "src/CSR.cu"
#include "src/Timing.cpp"
#include "src/Tool.cu"
#include "src/utils.cpp"

namespace {

void lend(CSR &to, const gustav_matrix &from) {
  to.M = from.rows;
  to.N = from.cols;
  to.nnz = from.nnz;
  to.d_ptr = const_cast<int *>(from.offsets);
  to.d_col = const_cast<int *>(from.indices);
  to.d_val = static_cast<double *>(const_cast<void *>(from.values));
}

struct MhSpgemm : gustav::Multiplication {
  CSR a, b, c;

  explicit MhSpgemm(const gustav_case &product) : Multiplication(product) {
    lend(a, product.a);
    lend(b, product.b);
  }
  ~MhSpgemm() override {
    // A CSR frees its arrays, and these are not its own.
    a.d_ptr = a.d_col = b.d_ptr = b.d_col = nullptr;
    a.d_val = b.d_val = nullptr;
  }
  void multiply() override {
    drop();
    Timing timing;
    // A new one each time: a released one still says that it has a pool.
    Tool tool;
    tool.d_combined_mem = tool.h_combined_mem = nullptr;
    tool.streams = nullptr;
    try {
      MH_spgemm(a, b, c, timing, tool);
    } catch (...) {
      free_scratch(tool);
      throw;
    }
    free_scratch(tool);
  }
  void free_scratch(Tool &tool) {
    tool.release();
    b.d_release_tile();
    cudaFree(c.d_tileptr);
    c.d_tileptr = nullptr;
  }
  gustav_product result() override { return {c.nnz, c.d_ptr, c.d_col, c.d_val}; }
  void drop() override { c.d_release_csr(); }
};

} // namespace

gustav::Multiplication *gustav::adapted(const gustav_case &product) {
  return product.type == GUSTAV_F64 ? new MhSpgemm(product) : nullptr;
}

const char *gustav_peer_version(void) { return "MH-SpGEMM " GUSTAV_COMMIT; }
