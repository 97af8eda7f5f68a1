// What all adapters of published kernels use: statuses with their texts, arrays of the device.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

// Nothing else of the library is visible.
#pragma GCC visibility push(default)
#include "kernel.h"
#pragma GCC visibility pop

#ifndef GUSTAV_COMMIT
#define GUSTAV_COMMIT "unknown"
#endif

int gustav_peer_interface(void) { return GUSTAV_PEER_INTERFACE; }

namespace gustav {

inline int fail(int status, const std::string &why, const char **message) {
  static std::string text;
  text = why;
  if (message) *message = text.c_str();
  return status;
}

inline int unsupported(const std::string &why, const char **message) {
  return fail(GUSTAV_UNSUPPORTED, why, message);
}

// The state of an asynchronous call just made, as a status.
inline int launched(cudaError_t error, const char **message) {
  if (error == cudaSuccess) error = cudaGetLastError();
  return error == cudaSuccess ? GUSTAV_OK : fail(GUSTAV_FAILED, cudaGetErrorString(error), message);
}

struct Error : std::exception {
  std::string text;
  explicit Error(std::string text) : text(std::move(text)) {}
  const char *what() const noexcept override { return text.c_str(); }
};

inline void check(cudaError_t error) {
  if (error != cudaSuccess) {
    cudaGetLastError();
    throw Error(cudaGetErrorString(error));
  }
}

// A `State` of the case, made ready by `build`, for `gustav_peer_prepare` of kernels for row-major matrices.
template <typename State, typename Build>
int prepared(const gustav_case *product, void **out, const char **message, Build build) {
  *out = nullptr;
  if (product->b_column_major || product->c_column_major)
    return unsupported("its kernels take row-major matrices", message);
  try {
    std::unique_ptr<State> state(new State{*product});
    build(*state);
    *out = state.release();
    return GUSTAV_OK;
  } catch (const std::exception &error) {
    return fail(GUSTAV_FAILED, error.what(), message);
  }
}

// What `action` launches, as the status of `gustav_peer_execute`.
template <typename Action>
int executed(const char **message, Action action) {
  try {
    action();
    return launched(cudaSuccess, message);
  } catch (const std::exception &error) {
    return fail(GUSTAV_FAILED, error.what(), message);
  }
}

// Elements of device memory; `slack` more, zeroed, for kernels that read past the end.
template <typename T>
struct Array {
  T *data = nullptr;

  Array() = default;
  explicit Array(size_t count) { allocate(count); }
  explicit Array(const std::vector<T> &host, size_t slack = 0) { upload(host, slack); }
  Array(const Array &) = delete;
  Array &operator=(const Array &) = delete;
  ~Array() { cudaFree(data); }

  void allocate(size_t count) {
    cudaFree(data);
    data = nullptr;
    check(cudaMalloc(reinterpret_cast<void **>(&data), (count ? count : 1) * sizeof(T)));
  }

  void upload(const std::vector<T> &host, size_t slack = 0) {
    allocate(host.size() + slack);
    if (slack) check(cudaMemset(data + host.size(), 0, slack * sizeof(T)));
    if (!host.empty()) check(cudaMemcpy(data, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
};

// Milliseconds of one call of `run`, the mean of a few after two that do not count.
template <typename Run>
float milliseconds(Run run) {
  cudaEvent_t start, stop;
  check(cudaEventCreate(&start));
  check(cudaEventCreate(&stop));
  for (int i = 0; i < 2; ++i) run();
  check(cudaEventRecord(start));
  for (int i = 0; i < 5; ++i) run();
  check(cudaEventRecord(stop));
  check(cudaEventSynchronize(stop));
  float time = 0;
  check(cudaEventElapsedTime(&time, start, stop));
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  return time / 5;
}

}  // namespace gustav

// The functions of kernel.h that have nothing to do for a dense C.
#define GUSTAV_DENSE_PRODUCT_ONLY                                                          \
  int gustav_peer_product(void *, struct gustav_product *, const char **message) {         \
    return gustav::unsupported("the product is dense", message);                           \
  }                                                                                        \
  void gustav_peer_drop(void *) {}
