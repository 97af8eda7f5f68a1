// spECK (github.com/GPUPeople/spECK) behind ../kernel.h: f32 and f64; rows of C come sorted.
#include "spgemm.cuh"

#include <cub/cub.cuh>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>

#include "source/GPU/Multiply.cu"
#include "source/GPU/memory.cpp"

namespace {

template <class Value> struct Speck : gustav::Multiplication {
  dCSR<Value> a, b, c;
  spECK::spECKConfig config; // its streams and events, made once for a device

  static void lend(dCSR<Value> &to, const gustav_matrix &from) {
    to.rows = from.rows;
    to.cols = from.cols;
    to.nnz = from.nnz;
    to.row_offsets = reinterpret_cast<unsigned *>(const_cast<int *>(from.offsets));
    to.col_ids = reinterpret_cast<unsigned *>(const_cast<int *>(from.indices));
    to.data = static_cast<Value *>(const_cast<void *>(from.values));
  }
  static int device() {
    int device = 0;
    gustav::check(cudaGetDevice(&device));
    return device;
  }
  explicit Speck(const gustav_case &product)
      : Multiplication(product), config(spECK::spECKConfig::initialize(device())) {
    lend(a, product.a);
    lend(b, product.b);
  }
  ~Speck() override {
    config.cleanup();
    // A dCSR frees its arrays, and these are not its own.
    a.row_offsets = a.col_ids = b.row_offsets = b.col_ids = nullptr;
    a.data = b.data = nullptr;
  }
  void multiply() override {
    drop();
    Timings timings; // measures nothing
    spECK::MultiplyspECK<Value, 4, 1024, spECK_DYNAMIC_MEM_PER_BLOCK, spECK_STATIC_MEM_PER_BLOCK>(a, b, c, config,
                                                                                                  timings);
    if (c.nnz != 0 && (c.row_offsets == nullptr || c.col_ids == nullptr || c.data == nullptr))
      throw gustav::Error("spECK ran out of memory");
    if (c.row_offsets == nullptr) c.row_offsets = gustav::zero_offsets<unsigned>(product.a.rows);
  }
  gustav_product result() override {
    return {static_cast<int64_t>(c.nnz), reinterpret_cast<int *>(c.row_offsets), reinterpret_cast<int *>(c.col_ids),
            c.data};
  }
  void drop() override { c.reset(); }
};

} // namespace

gustav::Multiplication *gustav::adapted(const gustav_case &product) {
  if (product.type == GUSTAV_F32) return new Speck<float>(product);
  if (product.type == GUSTAV_F64) return new Speck<double>(product);
  return nullptr;
}

const char *gustav_peer_version(void) { return "spECK " GUSTAV_COMMIT; }
