// gustav: products on sparse patterns. SPDX-License-Identifier: MIT OR Apache-2.0
//
// Made from the source of the crate gustav-capi; do not edit.
//
// Operands are tensors of DLPack (https://dmlc.github.io/dlpack/latest/) in host memory, those of
// gustav_execute_on in a GPU's, with one or two dimensions. What a tensor says is checked; that its memory is
// as large as it says is the caller's word.
//
// Every call returns a status, and gustav_last_error() the text of an error. Handles (gustav_pattern *,
// gustav_plan *, gustav_stream *) are numbers that are looked up and never followed: one that was freed, or is
// of another kind, is GUSTAV_INVALID. Any thread may use any handle.

#ifndef GUSTAV_H
#define GUSTAV_H

#include <stddef.h>
#include <stdint.h>

// A program that has a dlpack.h of its own includes it before this header.
#if !defined(DLPACK_DLPACK_H_) && defined(__has_include)
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#endif
#endif
#if defined(DLPACK_DLPACK_H_) && !defined(DLPACK_MAJOR_VERSION)
#error "gustav.h needs a dlpack.h of DLPack 1.0 or later"
#endif

// Without DLPack's own header, its structs that are used here.
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_

typedef struct {
  uint32_t major;
  uint32_t minor;
} DLPackVersion;

// int32_t is what compilers take for the enum of DLPack's header.
typedef int32_t DLDeviceType;
enum { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3, kDLROCM = 10, kDLROCMHost = 11, kDLCUDAManaged = 13 };

typedef struct {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;

typedef enum { kDLInt = 0U, kDLUInt = 1U, kDLFloat = 2U, kDLBfloat = 4U } DLDataTypeCode;

typedef struct {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  // In elements; NULL: packed, row-major.
  int64_t *strides;
  uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned *self);
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)

#endif

// Where every gustav_options begins.
#define GUSTAV_OPTIONS {sizeof(gustav_options), NULL, 0, 0, NULL, NULL, 0}


// Multiplies Aᵀ instead of A. Not for SDDMM.
#define GUSTAV_TRANSPOSE 1

// Results are the same to the bit from run to run and for any number of threads.
#define GUSTAV_DETERMINISTIC 2

// What a call did. The text of an error is that of `gustav_last_error`.
typedef enum {
  // Done.
  GUSTAV_OK = 0,
  // An argument is wrong: NULL, a shape, a type, strides, an index, a handle that was freed.
  GUSTAV_INVALID = 1,
  // The request is well formed, but not implemented; the text says the nearest that works.
  GUSTAV_UNSUPPORTED = 2,
  // There is no memory.
  GUSTAV_OUT_OF_MEMORY = 3,
  // There is no such device, or its driver or compiler is missing.
  GUSTAV_NO_DEVICE = 4,
  // A device's driver refused.
  GUSTAV_DEVICE = 5,
  // A defect of gustav.
  GUSTAV_INTERNAL = 6,
} gustav_status;

// Where the nonzeros of a sparse matrix are: row offsets and column indices of CSR, validated once and
// never written. Threads may share one.
typedef struct gustav_pattern gustav_pattern;

// A product that was planned for patterns and a type of values, which it keeps. Threads may share one;
// their executions run one after another.
typedef struct gustav_plan gustav_plan;

// A stream of a GPU, which executions are queued on. Threads may share one.
typedef struct gustav_stream gustav_stream;

// Options of a product. Begin with `gustav_options options = GUSTAV_OPTIONS;`, in which everything but the
// size is 0, and set what differs; NULL in place of options is the same.
typedef struct {
  // `sizeof(gustav_options)`: what a later version adds is 0 in programs that were compiled before.
  size_t size;
  // "cpu" or "cuda:0"; NULL: "cpu".
  const char *device;
  // Threads of the CPU; 0: one per core, or what RAYON_NUM_THREADS says.
  size_t threads;
  // How often a plan will be executed, as far as the caller knows; 0: once.
  uint64_t calls;
  // "plus-times", "min-plus", "max-times", "or-and", "plus-first" or "plus-second"; NULL: "plus-times".
  // Not for SDDMM.
  const char *semiring;
  // The name of an algorithm; NULL: what the library chooses.
  const char *algorithm;
  // `GUSTAV_TRANSPOSE`, `GUSTAV_DETERMINISTIC`, or both.
  uint32_t flags;
} gustav_options;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// A pattern with a copy of its arrays.
//
// `offsets` has one number more than A has rows and begins with 0; `indices` are the column indices, in
// any order within a row. Both are packed vectors in host memory, of int32, int64, uint32 or uint64, and
// of one width, or offsets of 64 bits beside indices of 32.
//
// # Safety
// `offsets` and `indices` are NULL or tensors whose memory is as they say, which nobody writes during the
// call; `pattern` is NULL or can be written.
gustav_status gustav_pattern_new(const DLTensor *offsets,
                                 const DLTensor *indices,
                                 size_t columns,
                                 gustav_pattern **pattern);

// The same without a copy: the pattern takes both managed tensors. Their deleters are called when the
// pattern was freed and no plan or exported array uses it any more, on whichever thread that happens.
// After an error both are still the caller's.
//
// # Safety
// As for `gustav_pattern_new`; the tensors are the caller's to give away, and nobody writes their memory
// until their deleters are called, which any thread may do.
gustav_status gustav_pattern_take(DLManagedTensorVersioned *offsets,
                                  DLManagedTensorVersioned *indices,
                                  size_t columns,
                                  gustav_pattern **pattern);

// Rows, columns and number of nonzeros; each of the three may be NULL.
//
// # Safety
// Each of the three is NULL or can be written.
gustav_status gustav_pattern_shape(const gustav_pattern *pattern,
                                   size_t *rows,
                                   size_t *columns,
                                   size_t *nonzeros);

// Row offsets and column indices as read-only tensors of uint32 or uint64, without a copy; either may be
// NULL. They live until their deleters are called, the pattern freed or not.
//
// # Safety
// `offsets` and `indices` are NULL or can be written.
gustav_status gustav_pattern_arrays(const gustav_pattern *pattern,
                                    DLManagedTensorVersioned **offsets,
                                    DLManagedTensorVersioned **indices);

// Frees the handle; plans that were made of the pattern keep it. NULL is nothing, a handle that was freed
// before is `GUSTAV_INVALID`.
gustav_status gustav_pattern_free(gustav_pattern *pattern);

// Plans C = α·op(A)·B + β·C for dense B and C with `columns` columns. Executed with values of A, B and C.
//
// # Safety
// `options` is NULL or as its documentation says; `plan` is NULL or can be written.
gustav_status gustav_plan_spmm(const gustav_pattern *pattern,
                               size_t columns,
                               DLDataType dtype,
                               const gustav_options *options,
                               gustav_plan **plan);

// Plans y = α·op(A)·x + β·y for packed vectors. Executed with values of A, x and y.
//
// # Safety
// As for `gustav_plan_spmm`.
gustav_status gustav_plan_spmv(const gustav_pattern *pattern,
                               DLDataType dtype,
                               const gustav_options *options,
                               gustav_plan **plan);

// Plans values = α·(X·Yᵀ) + β·values at the nonzeros of a pattern, for X with as many rows as the pattern
// and Y with as many as it has columns, both with `depth` columns. Executed with X, Y and values.
//
// # Safety
// As for `gustav_plan_spmm`.
gustav_status gustav_plan_sddmm(const gustav_pattern *pattern,
                                size_t depth,
                                DLDataType dtype,
                                const gustav_options *options,
                                gustav_plan **plan);

// Plans C = α·op(A)·B with three sparse matrices; with `mask` not NULL, the entries that it has and no
// others. All patterns have indices of the same widths. Executed by `gustav_execute_spgemm`.
//
// # Safety
// As for `gustav_plan_spmm`.
gustav_status gustav_plan_spgemm(const gustav_pattern *a,
                                 const gustav_pattern *b,
                                 const gustav_pattern *mask,
                                 DLDataType dtype,
                                 const gustav_options *options,
                                 gustav_plan **plan);

// Executes a plan of SpMM (values of A, B, C), SpMV (values of A, x, y) or SDDMM (X, Y, values): two
// operands and the result, all of the plan's type. Dense matrices are row-major or column-major with any
// leading dimension; a plan is made for each pair of layouts when it is first seen. Values are packed
// vectors in the order of the pattern's nonzeros. `alpha` and `beta` are as for `gustav_spmm`.
//
// # Safety
// As for `gustav_spmm`.
gustav_status gustav_execute(const gustav_plan *plan,
                             const DLTensor *first,
                             const DLTensor *second,
                             const DLTensor *result,
                             const double *alpha,
                             const double *beta);

// As `gustav_execute`, queued on a stream of the GPU that the plan is for, in whose memory all tensors are
// (`kDLCUDA`, `kDLCUDAManaged`): the call returns without waiting for it. The first execution with a pair of layouts
// plans and compiles, for which it waits and which a stream that is being captured refuses; a graph that is captured
// from later ones holds the plan.
//
// # Safety
// As for `gustav_execute`; memory of the tensors is not freed before the work on it is done, and work of others on it
// is ordered before or after, by the stream or by events. While a graph is replayed, its plans are executed on no
// other stream.
gustav_status gustav_execute_on(const gustav_plan *plan,
                                const DLTensor *first,
                                const DLTensor *second,
                                const DLTensor *result,
                                const double *alpha,
                                const double *beta,
                                const gustav_stream *stream);

// Executes a plan of SpGEMM: to `pattern`, if it is not NULL, a handle of C's pattern, the same in every
// execution, which the caller frees; to `values` its values, which the caller frees by their deleter.
//
// # Safety
// As for `gustav_spmm`; `pattern` is NULL or can be written, as is `values`.
gustav_status gustav_execute_spgemm(const gustav_plan *plan,
                                    const DLTensor *values_of_a,
                                    const DLTensor *values_of_b,
                                    const double *alpha,
                                    gustav_pattern **pattern,
                                    DLManagedTensorVersioned **values);

// What a plan does, and why: algorithm, configuration, facts and workspace, as text of some lines. It is
// valid until the plan is freed and no call uses it.
//
// # Safety
// `text` is NULL or can be written.
gustav_status gustav_plan_explain(const gustav_plan *plan,
                                  const char **text);

// Frees the handle. NULL is nothing, a handle that was freed before is `GUSTAV_INVALID`.
gustav_status gustav_plan_free(gustav_plan *plan);

// C = α·op(A)·B + β·C in one call, A in CSR with as many columns as the product needs, `b` and `c` dense.
//
// A is `offsets` and `indices` as for `gustav_pattern_new`, and `values` in their order. Values, B and C
// are of one type: float16, bfloat16 (both summed in float32), float32, float64, int32 or int64. B and C
// are row-major or column-major, with any leading dimension; vectors are matrices of one column. C
// overlaps no operand. `alpha` NULL is the semiring's one, `beta` NULL its zero, with which C is not read.
//
// # Safety
// Each tensor is NULL or one whose memory is as it says; nobody writes that of an operand during the
// call, and nobody else uses that of C. `alpha` and `beta` are NULL or point to a number, `options` is
// NULL or as its documentation says.
gustav_status gustav_spmm(const DLTensor *offsets,
                          const DLTensor *indices,
                          const DLTensor *values,
                          const DLTensor *b,
                          const DLTensor *c,
                          const double *alpha,
                          const double *beta,
                          const gustav_options *options);

// What went wrong in the last call of this thread that returned an error: what, where, and what would
// work; "" before the first. Valid until the thread's next call that returns an error.
const char *gustav_last_error(void);

// The version of the library, "major.minor.patch".
const char *gustav_version(void);

// The tensor of a managed one, to pass to the other functions: `*tensor` points into `managed`, which
// stays the caller's. With `written` not 0, a tensor whose flags say that it is read-only is an error;
// so is another major version of DLPack than 1.
//
// # Safety
// `managed` is NULL or points to a managed tensor; `tensor` is NULL or can be written.
gustav_status gustav_tensor(const DLManagedTensorVersioned *managed,
                            int32_t written,
                            const DLTensor **tensor);

// The handle of a stream of the driver (`CUstream`, which `cudaStream_t` is as well) of "cuda:0" and so on; NULL is
// the legacy default stream.
//
// # Safety
// `device` is NULL or a string that ends in 0; `stream` is a stream of that device's primary context, which lives
// until the handle is freed and every plan that was executed on it is freed, or was executed on another; `handle` is
// NULL or can be written.
gustav_status gustav_stream_of(const char *device,
                               void *stream,
                               gustav_stream **handle);

// Waits for what is queued on a stream.
gustav_status gustav_stream_synchronize(const gustav_stream *stream);

// Frees the handle, not the driver's stream, and does not wait. NULL is nothing, a handle that was freed before is
// `GUSTAV_INVALID`.
gustav_status gustav_stream_free(gustav_stream *stream);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* GUSTAV_H */
