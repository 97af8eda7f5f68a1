// OpSparse (github.com/lorentzbf/OpSparse) behind ../kernel.h. Sums in f64 only; rows of C come sorted.
#include "spgemm.cuh"

#include <cub/cub.cuh>

#include <cassert>
#include <climits>
#include <cmath>
#include <cstring>

// The program that its authors time as a whole ("reg"), of which only `opsparse` is called.
#define main opsparse_main
#include "src/reg_opsparse.cu"
#undef main
#include "src/CSR.cu"
#include "src/Meta.cu"
#include "src/Timings.cu"

namespace {

void lend(CSR &to, const gustav_matrix &from) {
  to.M = from.rows;
  to.N = from.cols;
  to.nnz = from.nnz;
  to.d_rpt = const_cast<int *>(from.offsets);
  to.d_col = const_cast<int *>(from.indices);
  to.d_val = static_cast<double *>(const_cast<void *>(from.values));
}

struct OpSparse : gustav::Multiplication {
  CSR a, b, c;

  explicit OpSparse(const gustav_case &product) : Multiplication(product) {
    lend(a, product.a);
    lend(b, product.b);
  }
  ~OpSparse() override {
    // A CSR frees its arrays, and these are not its own.
    a.d_rpt = a.d_col = b.d_rpt = b.d_col = nullptr;
    a.d_val = b.d_val = nullptr;
  }
  void multiply() override {
    drop();
    Timings timings;
    Meta meta;
    std::memset(static_cast<void *>(&meta), 0, sizeof meta); // its constructor leaves what a failure would free
    opsparse(a, b, c, meta, timings);
  }
  gustav_product result() override { return {c.nnz, c.d_rpt, c.d_col, c.d_val}; }
  void drop() override { c.release(); }
};

} // namespace

gustav::Multiplication *gustav::adapted(const gustav_case &product) {
  return product.type == GUSTAV_F64 ? new OpSparse(product) : nullptr;
}

const char *gustav_peer_version(void) { return "OpSparse " GUSTAV_COMMIT; }
