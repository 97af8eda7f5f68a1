/* What a shared library exports so that `gustav bench --peer-program NAME=LIBRARY.so` measures a CUDA kernel in it
 * (bench/PROTOCOL.md). All work goes to the legacy default stream, or to streams that wait for it and that it waits
 * for. A call that fails says why in `message`, a text that lives until the next call. */
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What `gustav_peer_interface` returns. A library without that function, or with a smaller number, gets no column-major
 * matrices and no SDDMM, which earlier headers did not have. */
#define GUSTAV_PEER_INTERFACE 2

enum gustav_operation { GUSTAV_SPMM = 0, GUSTAV_SPMV = 1, GUSTAV_SPGEMM = 2, GUSTAV_SDDMM = 3 };
enum gustav_type { GUSTAV_F16 = 0, GUSTAV_F32 = 1, GUSTAV_F64 = 2 };
enum gustav_status {
  GUSTAV_OK = 0,
  GUSTAV_UNSUPPORTED = 1, /* the library has no kernel for this product */
  GUSTAV_FAILED = 2,
};

/* A CSR matrix, row offsets and column indices of 32 bits, columns ascending in every row. */
struct gustav_matrix {
  int64_t rows, cols, nnz;
  const int32_t *offsets, *indices; /* in device memory: rows + 1 and nnz of them */
  const void *values;
  const int32_t *host_offsets, *host_indices; /* the same in host memory */
  const void *host_values;
};

/* C = A·B. B and C are dense and `columns` wide (SpMM), vectors (SpMV) or CSR matrices (SpGEMM). SDDMM is values of
 * X·Yᵀ at A's pattern, without A's values: `columns` is the width of X and Y, both row-major. */
struct gustav_case {
  enum gustav_operation operation;
  enum gustav_type type;
  int64_t columns; /* of a dense B, or of X and Y */
  int32_t sorted;  /* SpGEMM: whether columns of C must ascend in every row */
  struct gustav_matrix a, b;
  int32_t b_column_major, c_column_major; /* SpMM: 0 for row-major; rows and columns follow without gaps */
};

/* A sparse C in device memory that the library owns. */
struct gustav_product {
  int64_t nnz;
  const int32_t *offsets, *indices;
  const void *values;
};

/* GUSTAV_PEER_INTERFACE of the header that the library was built with. */
int gustav_peer_interface(void);

/* Name and version of the sources, for the record: "sputnik <commit>". */
const char *gustav_peer_version(void);

/* Converts and chooses; whatever its users do once for a matrix. GUSTAV_UNSUPPORTED for every operation, type and layout
 * that it has no kernel for. Its arrays live until `gustav_peer_release`. If it chose among algorithms, `message` may
 * say which. */
int gustav_peer_prepare(const struct gustav_case *product, void **state, const char **message);

/* One product: `b` and `c` are dense in device memory, both null for SpGEMM, whose symbolic work and allocation of C
 * are part of it. For SDDMM `b` is Y, with X behind it, and `c` the values at A's nonzeros, in their order. It may
 * return before the device has finished. */
int gustav_peer_execute(void *state, const void *b, void *c, const char **message);

/* The C of the last execution of SpGEMM. */
int gustav_peer_product(void *state, struct gustav_product *out, const char **message);

/* Frees that C, if there is one. */
void gustav_peer_drop(void *state);

void gustav_peer_release(void *state);

#ifdef __cplusplus
}
#endif
