// nsparse (github.com/EBD-CREST/nsparse) behind ../kernel.h: its hash SpGEMM for GPUs since Volta, of f32 and f64, with
// rows of C sorted or not.
#include "spgemm.cuh"

#include <cub/cub.cuh>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/functional.h>
#include <thrust/scan.h>
#include <thrust/sort.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

// The one name that it takes from the headers of NVIDIA's samples.
#define checkCudaErrors(call) gustav::check(call)
#include "HashSpGEMM_volta.hpp"

namespace {

template <class Value> struct Nsparse : gustav::Multiplication {
  CSR<int, Value> a, b, c;

  static void lend(CSR<int, Value> &to, const gustav_matrix &from) {
    to.nrow = from.rows;
    to.ncolumn = from.cols;
    to.nnz = from.nnz;
    to.d_rpt = const_cast<int *>(from.offsets);
    to.d_colids = const_cast<int *>(from.indices);
    to.d_values = static_cast<Value *>(const_cast<void *>(from.values));
  }
  explicit Nsparse(const gustav_case &product) : Multiplication(product) {
    lend(a, product.a);
    lend(b, product.b);
  }
  void multiply() override {
    drop();
    c.d_rpt = c.d_colids = nullptr;
    c.d_values = nullptr;
    if (product.sorted)
      SpGEMM_Hash<true>(a, b, c);
    else
      SpGEMM_Hash<false>(a, b, c);
  }
  gustav_product result() override { return {c.nnz, c.d_rpt, c.d_colids, c.d_values}; }
  void drop() override { c.release_csr(); } // frees what `device_malloc` says is there
};

} // namespace

gustav::Multiplication *gustav::adapted(const gustav_case &product) {
  if (product.type == GUSTAV_F32) return new Nsparse<float>(product);
  if (product.type == GUSTAV_F64) return new Nsparse<double>(product);
  return nullptr;
}

const char *gustav_peer_version(void) { return "nsparse " GUSTAV_COMMIT; }
