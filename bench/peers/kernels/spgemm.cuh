// What the adapters of SpGEMM kernels share: the functions of kernel.h over one `Multiplication`.
#pragma once
#include "adapter.cuh"

namespace gustav {

// The SpGEMM of one case. Errors are thrown.
struct Multiplication {
  gustav_case product;
  explicit Multiplication(const gustav_case &product) : product(product) {}
  virtual ~Multiplication() {}
  virtual void multiply() = 0;
  virtual gustav_product result() = 0;
  virtual void drop() = 0;
};

// The one that a library adapts, or null where its kernel does not take the type.
Multiplication *adapted(const gustav_case &product);

// The row offsets of a C without entries, which some kernels leave out.
template <typename T>
T *zero_offsets(int64_t rows) {
  T *offsets = nullptr;
  check(cudaMalloc(reinterpret_cast<void **>(&offsets), (rows + 1) * sizeof(T)));
  check(cudaMemsetAsync(offsets, 0, (rows + 1) * sizeof(T)));
  return offsets;
}

// Runs `action`; what it throws and what CUDA holds against it become a status and a message.
template <typename Action>
int guarded(const char **message, Action action) {
  cudaGetLastError();  // an error of somebody else
  std::string why;
  try {
    action();
  } catch (const std::exception &error) {
    why = error.what();
  }
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) why = why + (why.empty() ? "" : ": ") + cudaGetErrorString(error);
  return why.empty() ? GUSTAV_OK : fail(GUSTAV_FAILED, why, message);
}

}  // namespace gustav

int gustav_peer_prepare(const gustav_case *product, void **state, const char **message) {
  if (product->operation != GUSTAV_SPGEMM) return gustav::unsupported("SpGEMM only", message);
  gustav::Multiplication *multiplication = nullptr;
  const int status = gustav::guarded(message, [&] { multiplication = gustav::adapted(*product); });
  if (status != GUSTAV_OK) {
    delete multiplication;
    multiplication = nullptr;
  }
  *state = multiplication;
  if (status == GUSTAV_OK && multiplication == nullptr) return gustav::unsupported("not for this type", message);
  return status;
}

int gustav_peer_execute(void *state, const void *, void *, const char **message) {
  return gustav::guarded(message, [&] { static_cast<gustav::Multiplication *>(state)->multiply(); });
}

int gustav_peer_product(void *state, gustav_product *out, const char **message) {
  return gustav::guarded(message, [&] { *out = static_cast<gustav::Multiplication *>(state)->result(); });
}

void gustav_peer_drop(void *state) {
  if (state != nullptr) gustav::guarded(nullptr, [&] { static_cast<gustav::Multiplication *>(state)->drop(); });
}

void gustav_peer_release(void *state) {
  gustav_peer_drop(state);
  delete static_cast<gustav::Multiplication *>(state);
}
