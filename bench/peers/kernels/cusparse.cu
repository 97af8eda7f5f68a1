// NVIDIA's cuSPARSE through its generic API behind kernel.h, so that any version of it can be measured: the library is
// the file that GUSTAV_CUSPARSE names, or the libcusparse.so.12 that the loader finds. Preparing times every algorithm
// there is, with cold caches, and keeps the fastest; the message of a prepare that worked says
// which.
#define CUSPARSE_ENABLE_EXPERIMENTAL_API
#include "adapter.cuh"

#include <cuda_fp16.h>
#include <cusparse.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace {

using gustav::Error;
using gustav::check;

// Functions of every version, and those that some have not.
#define FUNCTIONS(F)                                                                                              \
  F(cusparseCreate) F(cusparseGetProperty) F(cusparseGetErrorString) F(cusparseCreateCsr) F(cusparseDestroySpMat)  \
  F(cusparseSpMatGetSize) F(cusparseSpMatSetValues) F(cusparseCsrSetPointers)                                      \
  F(cusparseCreateDnVec) F(cusparseDestroyDnVec)                                                                   \
  F(cusparseDnVecSetValues) F(cusparseCreateDnMat) F(cusparseDestroyDnMat) F(cusparseDnMatSetValues)               \
  F(cusparseSpMM_bufferSize) F(cusparseSpMM_preprocess) F(cusparseSpMM) F(cusparseSpMV_bufferSize) F(cusparseSpMV)  \
  F(cusparseSpGEMM_createDescr) F(cusparseSpGEMM_destroyDescr) F(cusparseSpGEMM_workEstimation)                    \
  F(cusparseSpGEMM_compute) F(cusparseSpGEMM_copy) F(cusparseSDDMM_bufferSize) F(cusparseSDDMM_preprocess)         \
  F(cusparseSDDMM)
#define FUNCTIONS_OF_SOME(F)                                                                          \
  F(cusparseSpMV_preprocess) F(cusparseSpGEMM_estimateMemory) F(cusparseSpMVOp_bufferSize)            \
  F(cusparseSpMVOp_createDescr) F(cusparseSpMVOp_destroyDescr) F(cusparseSpMVOp_createPlan)           \
  F(cusparseSpMVOp_destroyPlan) F(cusparseSpMVOp)

struct Api {
#define FIELD(name) decltype(&::name) name = nullptr;
  FUNCTIONS(FIELD)
  FUNCTIONS_OF_SOME(FIELD)
#undef FIELD
  int version[3] = {};

  Api() {
    const char *path = std::getenv("GUSTAV_CUSPARSE");
    if (path) {
      // The linker of kernels that it loads by name for SpMVOp, where one lies beside it.
      const std::string folder = std::string(path).substr(0, std::string(path).find_last_of('/') + 1);
      dlopen((folder + "libnvJitLink.so.13").c_str(), RTLD_NOW | RTLD_GLOBAL);
    }
    void *file = dlopen(path ? path : "libcusparse.so.12", RTLD_NOW | RTLD_LOCAL);
    if (!file) throw Error(dlerror());
#define LOOK_UP(name) name = reinterpret_cast<decltype(name)>(dlsym(file, #name));
    FUNCTIONS(LOOK_UP)
    FUNCTIONS_OF_SOME(LOOK_UP)
#undef LOOK_UP
#define REQUIRE(name) \
  if (!name) throw Error("cuSPARSE has no " #name);
    FUNCTIONS(REQUIRE)
#undef REQUIRE
    const libraryPropertyType_t parts[] = {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL};
    for (int i = 0; i < 3; ++i) cusparseGetProperty(parts[i], &version[i]);
  }
};

const Api &api() {
  static const Api once;
  return once;
}

// A product that an algorithm does not have, which another may.
struct Lacking : Error {
  using Error::Error;
};

void check(cusparseStatus_t status) {
  if (status == CUSPARSE_STATUS_SUCCESS) return;
  const std::string text = api().cusparseGetErrorString(status);
  if (status == CUSPARSE_STATUS_NOT_SUPPORTED || status == CUSPARSE_STATUS_INVALID_VALUE) throw Lacking(text);
  throw Error(text);
}

cusparseHandle_t handle() {
  static cusparseHandle_t once = nullptr;
  if (!once) check(api().cusparseCreate(&once));
  return once;
}

constexpr auto PLAIN = CUSPARSE_OPERATION_NON_TRANSPOSE;
constexpr auto INDEX = CUSPARSE_INDEX_32I;

// A descriptor and how it is destroyed.
template <typename T, typename Destroy>
struct Owned {
  T it = nullptr;
  Destroy destroy;
  explicit Owned(Destroy destroy) : destroy(destroy) {}
  Owned(const Owned &) = delete;
  ~Owned() {
    if (it) destroy(it);
  }
};
using Sparse = Owned<cusparseSpMatDescr_t, decltype(&cusparseDestroySpMat)>;
using Vector = Owned<cusparseDnVecDescr_t, decltype(&cusparseDestroyDnVec)>;
using Matrix = Owned<cusparseDnMatDescr_t, decltype(&cusparseDestroyDnMat)>;

// One algorithm for one case.
struct Candidate {
  std::string name;
  gustav_case product;
  cudaDataType type, compute;
  Sparse a{api().cusparseDestroySpMat};
  double one64 = 1, zero64 = 0;
  float one32 = 1, zero32 = 0;
  const void *one, *zero;

  Candidate(std::string name, const gustav_case &product) : name(std::move(name)), product(product) {
    type = product.type == GUSTAV_F16 ? CUDA_R_16F : product.type == GUSTAV_F32 ? CUDA_R_32F : CUDA_R_64F;
    compute = type == CUDA_R_64F ? CUDA_R_64F : CUDA_R_32F;
    one = type == CUDA_R_64F ? static_cast<void *>(&one64) : &one32;
    zero = type == CUDA_R_64F ? static_cast<void *>(&zero64) : &zero32;
    describe(a, product.a);
  }
  virtual ~Candidate() {}
  virtual void multiply(const void *b, void *c) = 0;
  virtual gustav_product result() { throw Error("the product is dense"); }
  virtual void drop() {}

  void describe(Sparse &to, const gustav_matrix &m) {
    check(api().cusparseCreateCsr(&to.it, m.rows, m.cols, m.nnz, const_cast<int32_t *>(m.offsets),
                                  const_cast<int32_t *>(m.indices), const_cast<void *>(m.values), INDEX, INDEX,
                                  CUSPARSE_INDEX_BASE_ZERO, type));
  }
};

struct Spmm : Candidate {
  Matrix b{api().cusparseDestroyDnMat}, c{api().cusparseDestroyDnMat};
  cusparseSpMMAlg_t algorithm;
  gustav::Array<char> buffer;

  Spmm(const char *name, cusparseSpMMAlg_t algorithm, const gustav_case &product, void *from, void *to)
      : Candidate(name, product), algorithm(algorithm) {
    describe_dense(b, product.a.cols, product.b_column_major, from);
    describe_dense(c, product.a.rows, product.c_column_major, to);
    size_t size = 0;
    check(api().cusparseSpMM_bufferSize(handle(), PLAIN, PLAIN, one, a.it, b.it, zero, c.it, compute, algorithm,
                                        &size));
    buffer.allocate(size);
    check(api().cusparseSpMM_preprocess(handle(), PLAIN, PLAIN, one, a.it, b.it, zero, c.it, compute, algorithm,
                                        buffer.data));
  }
  void describe_dense(Matrix &dense, int64_t rows, bool column_major, void *values) {
    const int64_t n = product.columns;
    check(api().cusparseCreateDnMat(&dense.it, rows, n, column_major ? std::max<int64_t>(rows, 1) : n, values, type,
                                    column_major ? CUSPARSE_ORDER_COL : CUSPARSE_ORDER_ROW));
  }
  void multiply(const void *from, void *to) override {
    check(api().cusparseDnMatSetValues(b.it, const_cast<void *>(from)));
    check(api().cusparseDnMatSetValues(c.it, to));
    check(api().cusparseSpMM(handle(), PLAIN, PLAIN, one, a.it, b.it, zero, c.it, compute, algorithm, buffer.data));
  }
};

// Y and X, which follow one another in memory, and the values at A's pattern.
struct Sddmm : Candidate {
  Matrix x{api().cusparseDestroyDnMat}, y{api().cusparseDestroyDnMat};
  size_t y_bytes;
  gustav::Array<char> buffer;

  Sddmm(const char *name, const gustav_case &product, void *from, void *to) : Candidate(name, product) {
    const int64_t n = product.columns;
    y_bytes = product.a.cols * n * (type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2);
    check(api().cusparseCreateDnMat(&x.it, product.a.rows, n, n, static_cast<char *>(from) + y_bytes, type,
                                    CUSPARSE_ORDER_ROW));
    // Yᵀ: the rows of Y are its columns.
    check(api().cusparseCreateDnMat(&y.it, n, product.a.cols, n, from, type, CUSPARSE_ORDER_COL));
    point(from, to);
    size_t size = 0;
    check(api().cusparseSDDMM_bufferSize(handle(), PLAIN, PLAIN, one, x.it, y.it, zero, a.it, compute,
                                         CUSPARSE_SDDMM_ALG_DEFAULT, &size));
    buffer.allocate(size);
    check(api().cusparseSDDMM_preprocess(handle(), PLAIN, PLAIN, one, x.it, y.it, zero, a.it, compute,
                                         CUSPARSE_SDDMM_ALG_DEFAULT, buffer.data));
  }
  void point(const void *from, void *to) {
    char *y_values = const_cast<char *>(static_cast<const char *>(from));
    check(api().cusparseDnMatSetValues(y.it, y_values));
    check(api().cusparseDnMatSetValues(x.it, y_values + y_bytes));
    check(api().cusparseSpMatSetValues(a.it, to));
  }
  void multiply(const void *from, void *to) override {
    point(from, to);
    check(api().cusparseSDDMM(handle(), PLAIN, PLAIN, one, x.it, y.it, zero, a.it, compute,
                              CUSPARSE_SDDMM_ALG_DEFAULT, buffer.data));
  }
};

// The vectors of the two kinds of SpMV.
struct Vectors : Candidate {
  Vector x{api().cusparseDestroyDnVec}, y{api().cusparseDestroyDnVec};
  gustav::Array<char> buffer;

  Vectors(const char *name, const gustav_case &product, void *from, void *to) : Candidate(name, product) {
    check(api().cusparseCreateDnVec(&x.it, product.a.cols, from, type));
    check(api().cusparseCreateDnVec(&y.it, product.a.rows, to, type));
  }
  void point(const void *from, void *to) {
    check(api().cusparseDnVecSetValues(x.it, const_cast<void *>(from)));
    check(api().cusparseDnVecSetValues(y.it, to));
  }
};

struct Spmv : Vectors {
  cusparseSpMVAlg_t algorithm;

  Spmv(const char *name, cusparseSpMVAlg_t algorithm, const gustav_case &product, void *from, void *to)
      : Vectors(name, product, from, to), algorithm(algorithm) {
    size_t size = 0;
    check(api().cusparseSpMV_bufferSize(handle(), PLAIN, one, a.it, x.it, zero, y.it, compute, algorithm, &size));
    buffer.allocate(size);
    if (api().cusparseSpMV_preprocess)
      check(api().cusparseSpMV_preprocess(handle(), PLAIN, one, a.it, x.it, zero, y.it, compute, algorithm,
                                          buffer.data));
  }
  void multiply(const void *from, void *to) override {
    point(from, to);
    check(api().cusparseSpMV(handle(), PLAIN, one, a.it, x.it, zero, y.it, compute, algorithm, buffer.data));
  }
};

struct SpmvOp : Vectors {
  Owned<cusparseSpMVOpDescr_t, decltype(&cusparseSpMVOp_destroyDescr)> analysis{api().cusparseSpMVOp_destroyDescr};
  Owned<cusparseSpMVOpPlan_t, decltype(&cusparseSpMVOp_destroyPlan)> plan{api().cusparseSpMVOp_destroyPlan};

  SpmvOp(const char *name, cusparseSpMVOpAlg_t algorithm, const gustav_case &product, void *from, void *to)
      : Vectors(name, product, from, to) {
    // Its functions had other arguments before.
    if (api().version[0] * 100 + api().version[1] < 1209 || !api().cusparseSpMVOp) throw Lacking("no SpMVOp");
    size_t size = 0;
    check(api().cusparseSpMVOp_bufferSize(handle(), PLAIN, a.it, x.it, y.it, y.it, compute, algorithm, &size));
    buffer.allocate(size);
    check(api().cusparseSpMVOp_createDescr(handle(), &analysis.it, PLAIN, a.it, x.it, y.it, y.it, compute, algorithm,
                                           buffer.data));
    check(api().cusparseSpMVOp_createPlan(handle(), analysis.it, &plan.it, nullptr, 0));
  }
  void multiply(const void *from, void *to) override {
    point(from, to);
    check(api().cusparseSpMVOp(handle(), plan.it, one, zero, x.it, y.it, y.it));
  }
};

struct Spgemm : Candidate {
  Sparse b{api().cusparseDestroySpMat};
  cusparseSpGEMMAlg_t algorithm;
  float fraction;                // of the intermediate products in memory at once, of the algorithms that take one
  cudaMemPool_t pool = nullptr;  // keeps what a product frees for the next
  gustav_product c = {};

  Spgemm(const char *name, cusparseSpGEMMAlg_t algorithm, float fraction, const gustav_case &product)
      : Candidate(name, product), algorithm(algorithm), fraction(fraction) {
    if (fraction && !api().cusparseSpGEMM_estimateMemory) throw Lacking("no estimateMemory");
    describe(b, product.b);
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    check(cudaGetDevice(&properties.location.id));
    check(cudaMemPoolCreate(&pool, &properties));
    uint64_t keep = UINT64_MAX;
    check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  }
  ~Spgemm() override {
    drop();
    cudaDeviceSynchronize();
    if (pool) cudaMemPoolDestroy(pool);
  }

  template <typename T = void>
  T *allocate(size_t bytes) {
    void *memory = nullptr;
    check(cudaMallocFromPoolAsync(&memory, std::max<size_t>(bytes, 1), pool, 0));
    return static_cast<T *>(memory);
  }
  struct Scratch {
    void *data = nullptr;
    void take(void *memory) { data = memory; }
    void free() {
      if (data) cudaFreeAsync(data, 0);
      data = nullptr;
    }
    ~Scratch() { free(); }
  };

  void multiply(const void *, void *) override {
    drop();
    Scratch estimation, memory, work;
    Sparse to{api().cusparseDestroySpMat};
    gustav_matrix empty = {};
    empty.rows = product.a.rows;
    empty.cols = product.b.cols;
    describe(to, empty);
    Owned<cusparseSpGEMMDescr_t, decltype(&cusparseSpGEMM_destroyDescr)> state{api().cusparseSpGEMM_destroyDescr};
    check(api().cusparseSpGEMM_createDescr(&state.it));

    size_t size = 0;
    const auto estimate = [&](void *buffer) {
      check(api().cusparseSpGEMM_workEstimation(handle(), PLAIN, PLAIN, one, a.it, b.it, zero, to.it, compute,
                                                algorithm, state.it, &size, buffer));
    };
    estimate(nullptr);
    estimation.take(allocate(size));
    estimate(estimation.data);

    size_t needed = 0;
    const auto run = [&](void *buffer) {
      check(api().cusparseSpGEMM_compute(handle(), PLAIN, PLAIN, one, a.it, b.it, zero, to.it, compute, algorithm,
                                         state.it, &needed, buffer));
    };
    if (fraction) {
      const auto bound = [&](void *buffer, size_t *result) {
        check(api().cusparseSpGEMM_estimateMemory(handle(), PLAIN, PLAIN, one, a.it, b.it, zero, to.it, compute,
                                                  algorithm, state.it, fraction, &size, buffer, result));
      };
      size = 0;
      bound(nullptr, nullptr);
      memory.take(allocate(size));
      bound(memory.data, &needed);
      memory.free();
    } else {
      run(nullptr);
    }
    work.take(allocate(needed));
    run(work.data);

    int64_t rows, cols;
    check(api().cusparseSpMatGetSize(to.it, &rows, &cols, &c.nnz));
    int32_t *offsets = allocate<int32_t>((rows + 1) * sizeof(int32_t));
    c.offsets = offsets;
    int32_t *indices = allocate<int32_t>(c.nnz * sizeof(int32_t));
    c.indices = indices;
    void *values = allocate(c.nnz * (type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2));
    c.values = values;
    check(api().cusparseCsrSetPointers(to.it, offsets, indices, values));
    check(api().cusparseSpGEMM_copy(handle(), PLAIN, PLAIN, one, a.it, b.it, zero, to.it, compute, algorithm,
                                    state.it));
  }
  gustav_product result() override { return c; }
  void drop() override {
    for (const void *memory : {static_cast<const void *>(c.offsets), static_cast<const void *>(c.indices), c.values})
      if (memory) cudaFreeAsync(const_cast<void *>(memory), 0);
    c = {};
  }
};

__device__ bool is_nan(__half x) { return __hisnan(x); }
__device__ bool is_nan(float x) { return x != x; }
__device__ bool is_nan(double x) { return x != x; }

template <typename T>
__global__ void find_nan(const T *values, int64_t count, int *found) {
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < count; i += int64_t(gridDim.x) * blockDim.x)
    if (is_nan(values[i])) *found = 1;
}

__global__ void find_unsorted(const int32_t *offsets, const int32_t *indices, int64_t rows, int *found) {
  for (int64_t row = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; row < rows; row += int64_t(gridDim.x) * blockDim.x)
    for (int32_t i = offsets[row] + 1; i < offsets[row + 1]; ++i)
      if (indices[i - 1] >= indices[i]) *found = 1;
}

// What the candidates are tried with: a B of zeros, a C of NaN, something to flush caches with.
struct Trial {
  static constexpr size_t FLUSH = 256 << 20;
  const gustav_case &product;
  size_t width, inputs, outputs;
  gustav::Array<char> b, c, flush;
  gustav::Array<int> found;
  std::unique_ptr<Candidate> best;
  float best_time = 0;
  bool failed = false;
  std::string why = "cuSPARSE has none";

  explicit Trial(const gustav_case &product) : product(product), flush(FLUSH), found(1) {
    width = product.type == GUSTAV_F64 ? 8 : product.type == GUSTAV_F32 ? 4 : 2;
    const bool sampled = product.operation == GUSTAV_SDDMM;
    const bool wide = sampled || product.operation == GUSTAV_SPMM;
    const size_t columns = wide ? product.columns : product.operation == GUSTAV_SPMV;
    inputs = (product.a.cols + (sampled ? product.a.rows : 0)) * columns;
    outputs = sampled ? product.a.nnz : product.a.rows * columns;
    b.allocate(inputs * width);
    c.allocate(outputs * width);
    check(cudaMemset(b.data, 0, inputs * width));
  }

  float time(Candidate &candidate) {
    cudaEvent_t start, stop;
    check(cudaEventCreate(&start));
    check(cudaEventCreate(&stop));
    std::vector<float> times(5);
    for (float &time : times) {
      candidate.drop();
      check(cudaMemsetAsync(flush.data, 1, FLUSH));
      check(cudaEventRecord(start));
      candidate.multiply(b.data, c.data);
      check(cudaEventRecord(stop));
      check(cudaEventSynchronize(stop));
      check(cudaEventElapsedTime(&time, start, stop));
    }
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }

  // Whether all of C is written, and sorted where it must be.
  void judge(Candidate &candidate) {
    check(cudaMemset(found.data, 0, sizeof(int)));
    if (product.operation == GUSTAV_SPGEMM) {
      const gustav_product it = candidate.result();
      if (product.sorted) find_unsorted<<<1024, 256>>>(it.offsets, it.indices, product.a.rows, found.data);
    } else if (product.type == GUSTAV_F16) {
      find_nan<<<1024, 256>>>(reinterpret_cast<__half *>(c.data), outputs, found.data);
    } else if (product.type == GUSTAV_F32) {
      find_nan<<<1024, 256>>>(reinterpret_cast<float *>(c.data), outputs, found.data);
    } else {
      find_nan<<<1024, 256>>>(reinterpret_cast<double *>(c.data), outputs, found.data);
    }
    int wrong = 0;
    check(cudaMemcpy(&wrong, found.data, sizeof wrong, cudaMemcpyDeviceToHost));
    if (wrong) throw Lacking(product.operation == GUSTAV_SPGEMM ? "C is not sorted" : "beta is not zero");
  }

  // Keeps a candidate that is faster than those before.
  template <typename T, typename... Arguments>
  void attempt(const char *name, Arguments... arguments) {
    try {
      auto candidate = std::make_unique<T>(name, arguments...);
      check(cudaMemset(c.data, 0xff, outputs * width));
      candidate->multiply(b.data, c.data);
      judge(*candidate);
      const float time = this->time(*candidate);
      candidate->drop();
      if (!best || time < best_time) {
        best = std::move(candidate);
        best_time = time;
      }
    } catch (const Lacking &error) {
      if (!failed) why = std::string(name) + ": " + error.what();
    } catch (const Error &error) {
      // Out of memory, say: another algorithm may do. After a fault nothing does.
      failed = true;
      why = std::string(name) + ": " + error.what();
      check(cudaDeviceSynchronize());
      cudaGetLastError();
    }
  }
};

}  // namespace

const char *gustav_peer_version(void) {
  static std::string text;
  try {
    const int *version = api().version;
    text = "cusparse " + std::to_string(version[0]) + '.' + std::to_string(version[1]) + '.' +
           std::to_string(version[2]);
  } catch (const std::exception &error) {
    text = std::string("cusparse none: ") + error.what();
  }
  return text.c_str();
}

int gustav_peer_prepare(const gustav_case *product, void **state, const char **message) {
  cudaGetLastError();
  try {
    handle();
    Trial trial(*product);
    void *b = trial.b.data, *c = trial.c.data;
    switch (product->operation) {
    case GUSTAV_SPMM:
      trial.attempt<Spmm>("SPMM_ALG_DEFAULT", CUSPARSE_SPMM_ALG_DEFAULT, *product, b, c);
      trial.attempt<Spmm>("SPMM_CSR_ALG1", CUSPARSE_SPMM_CSR_ALG1, *product, b, c);
      trial.attempt<Spmm>("SPMM_CSR_ALG2", CUSPARSE_SPMM_CSR_ALG2, *product, b, c);
      trial.attempt<Spmm>("SPMM_CSR_ALG3", CUSPARSE_SPMM_CSR_ALG3, *product, b, c);
      break;
    case GUSTAV_SPMV:
      trial.attempt<Spmv>("SPMV_ALG_DEFAULT", CUSPARSE_SPMV_ALG_DEFAULT, *product, b, c);
      trial.attempt<Spmv>("SPMV_CSR_ALG1", CUSPARSE_SPMV_CSR_ALG1, *product, b, c);
      trial.attempt<Spmv>("SPMV_CSR_ALG2", CUSPARSE_SPMV_CSR_ALG2, *product, b, c);
      trial.attempt<SpmvOp>("SPMVOP_ALG_DEFAULT", CUSPARSE_SPMVOP_ALG_DEFAULT, *product, b, c);
      trial.attempt<SpmvOp>("SPMVOP_ALG1", CUSPARSE_SPMVOP_ALG1, *product, b, c);
      trial.attempt<SpmvOp>("SPMVOP_ALG2", CUSPARSE_SPMVOP_ALG2, *product, b, c);
      break;
    case GUSTAV_SDDMM:
      trial.attempt<Sddmm>("SDDMM_ALG_DEFAULT", *product, b, c);
      break;
    case GUSTAV_SPGEMM:
      trial.attempt<Spgemm>("SPGEMM_DEFAULT", CUSPARSE_SPGEMM_DEFAULT, 0.f, *product);
      trial.attempt<Spgemm>("SPGEMM_ALG1", CUSPARSE_SPGEMM_ALG1, 0.f, *product);
      trial.attempt<Spgemm>("SPGEMM_ALG2", CUSPARSE_SPGEMM_ALG2, 1.f, *product);
      trial.attempt<Spgemm>("SPGEMM_ALG3, chunks of 0.2", CUSPARSE_SPGEMM_ALG3, 0.2f, *product);
      trial.attempt<Spgemm>("SPGEMM_ALG3, one chunk", CUSPARSE_SPGEMM_ALG3, 1.f, *product);
      break;
    }
    if (!trial.best) return gustav::fail(trial.failed ? GUSTAV_FAILED : GUSTAV_UNSUPPORTED, trial.why, message);
    const std::string took = trial.best->name;
    *state = trial.best.release();
    return gustav::fail(GUSTAV_OK, took, message);
  } catch (const std::exception &error) {
    return gustav::fail(GUSTAV_FAILED, error.what(), message);
  }
}

int gustav_peer_execute(void *state, const void *b, void *c, const char **message) {
  try {
    static_cast<Candidate *>(state)->multiply(b, c);
    return GUSTAV_OK;
  } catch (const std::exception &error) {
    return gustav::fail(GUSTAV_FAILED, error.what(), message);
  }
}

int gustav_peer_product(void *state, struct gustav_product *out, const char **message) {
  try {
    *out = static_cast<Candidate *>(state)->result();
    return GUSTAV_OK;
  } catch (const std::exception &error) {
    return gustav::fail(GUSTAV_FAILED, error.what(), message);
  }
}

void gustav_peer_drop(void *state) {
  if (state) static_cast<Candidate *>(state)->drop();
}

void gustav_peer_release(void *state) { delete static_cast<Candidate *>(state); }
