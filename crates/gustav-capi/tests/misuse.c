// What a C program may get wrong, and what it may do: each line says which status and which words of the
// error it expects.

#include <gustav.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

static void expect(int line, gustav_status found, gustav_status wanted, const char *words) {
  const char *text = found == GUSTAV_OK ? "" : gustav_last_error();
  if (found != wanted || !strstr(text, words)) {
    printf("line %d: status %d (%s), expected %d (%s)\n", line, (int)found, text, (int)wanted, words);
    failures++;
  }
}

#define OK(call) expect(__LINE__, call, GUSTAV_OK, "")
#define INVALID(call, words) expect(__LINE__, call, GUSTAV_INVALID, words)
#define UNSUPPORTED(call, words) expect(__LINE__, call, GUSTAV_UNSUPPORTED, words)
#define TRUE(condition)                               \
  do {                                                \
    if (!(condition)) {                               \
      printf("line %d: %s\n", __LINE__, #condition);  \
      failures++;                                     \
    }                                                 \
  } while (0)

static DLTensor tensor(void *data, uint8_t code, uint8_t bits, int32_t ndim, int64_t *shape) {
  DLTensor made = {.data = data,
                   .device = {.device_type = kDLCPU, .device_id = 0},
                   .ndim = ndim,
                   .dtype = {.code = code, .bits = bits, .lanes = 1},
                   .shape = shape};
  return made;
}

static int deleted = 0;

static void delete_tensor(DLManagedTensorVersioned *self) {
  deleted++;
  free(self->dl_tensor.data);
  free(self->dl_tensor.shape);
  free(self);
}

// A managed tensor of int32 with a copy of `data`.
static DLManagedTensorVersioned *managed(const int32_t *data, int64_t len) {
  DLManagedTensorVersioned *made = calloc(1, sizeof *made);
  made->version.major = 1;
  made->deleter = delete_tensor;
  int64_t *shape = malloc(sizeof *shape);
  shape[0] = len;
  int32_t *copy = malloc((size_t)len * sizeof *copy);
  memcpy(copy, data, (size_t)len * sizeof *copy);
  made->dl_tensor = tensor(copy, kDLInt, 32, 1, shape);
  return made;
}

// A is 2 × 3: row 0 has 1 in column 0 and 2 in column 2, row 1 has 3 in column 1.
static int32_t offsets[] = {0, 2, 3}, indices[] = {0, 2, 1};
static double values[] = {1, 2, 3}, b[] = {1, 2, 3, 4, 5, 6}, c[4];
static int64_t two[] = {2}, three[] = {3}, of_b[] = {3, 2}, of_c[] = {2, 2};
static DLTensor t_offsets, t_indices, t_values, t_b, t_c;
static const DLDataType f64 = {kDLFloat, 64, 1}, i64 = {kDLInt, 64, 1};

static void products(void) {
  gustav_pattern *pattern = NULL;
  gustav_plan *plan = NULL, *spmv = NULL, *sddmm = NULL;
  OK(gustav_pattern_new(&t_offsets, &t_indices, 3, &pattern));
  OK(gustav_spmm(&t_offsets, &t_indices, &t_values, &t_b, &t_c, NULL, NULL, NULL));
  TRUE(c[0] == 11 && c[1] == 14 && c[2] == 9 && c[3] == 12);
  // Column-major B, and α and β.
  double alpha = 2, beta = -1, columns[] = {1, 3, 5, 2, 4, 6};
  int64_t column_major[] = {1, 3};
  DLTensor t_columns = tensor(columns, kDLFloat, 64, 2, of_b);
  t_columns.strides = column_major;
  OK(gustav_plan_spmm(pattern, 2, f64, NULL, &plan));
  OK(gustav_execute(plan, &t_values, &t_columns, &t_c, &alpha, &beta));
  TRUE(c[0] == 11 && c[1] == 14 && c[2] == 9 && c[3] == 12);
  // Aᵀ, from a byte offset.
  gustav_options options = GUSTAV_OPTIONS;
  options.flags = GUSTAV_TRANSPOSE | GUSTAV_DETERMINISTIC;
  options.threads = 2;
  DLTensor t_x = tensor(b, kDLFloat, 64, 1, two), t_y = tensor(columns, kDLFloat, 64, 1, three);
  t_x.byte_offset = 8;
  OK(gustav_plan_spmv(pattern, f64, &options, &spmv));
  OK(gustav_execute(spmv, &t_values, &t_x, &t_y, NULL, NULL));
  TRUE(columns[0] == 2 && columns[1] == 9 && columns[2] == 4);
  OK(gustav_spmm(&t_offsets, &t_indices, &t_values, &t_x, &t_y, NULL, NULL, &options));
  TRUE(columns[0] == 2 && columns[1] == 9 && columns[2] == 4);
  // X·Yᵀ at the nonzeros.
  double x[] = {1, 2, 3, 4}, at[3];
  DLTensor t_xx = tensor(x, kDLFloat, 64, 2, of_c), t_at = tensor(at, kDLFloat, 64, 1, three);
  OK(gustav_plan_sddmm(pattern, 2, f64, NULL, &sddmm));
  OK(gustav_execute(sddmm, &t_xx, &t_b, &t_at, NULL, NULL));
  TRUE(at[0] == 5 && at[1] == 17 && at[2] == 25);
  // Over another semiring, α and β are its one and zero unless they are given.
  options.flags = 0;
  options.semiring = "min-plus";
  OK(gustav_spmm(&t_offsets, &t_indices, &t_values, &t_b, &t_c, NULL, NULL, &options));
  TRUE(c[0] == 2 && c[1] == 3 && c[2] == 6 && c[3] == 7);
  size_t rows = 0, nonzeros = 0;
  OK(gustav_pattern_shape(pattern, &rows, NULL, &nonzeros));
  TRUE(rows == 2 && nonzeros == 3);
  const char *text = NULL;
  OK(gustav_plan_explain(plan, &text));
  TRUE(text && strstr(text, "algorithm"));
  OK(gustav_plan_free(plan));
  OK(gustav_plan_free(spmv));
  OK(gustav_plan_free(sddmm));
  OK(gustav_pattern_free(pattern));
}

static void sparse_products(void) {
  gustav_pattern *a = NULL, *at = NULL, *product = NULL, *wide = NULL;
  gustav_plan *plan = NULL;
  int32_t offsets_t[] = {0, 1, 2, 3}, indices_t[] = {0, 1, 0};
  int64_t four[] = {4}, wide_offsets[] = {0, 2, 3};
  double values_t[] = {1, 3, 2};
  DLTensor t_offsets_t = tensor(offsets_t, kDLInt, 32, 1, four);
  DLTensor t_indices_t = tensor(indices_t, kDLInt, 32, 1, three);
  DLTensor t_values_t = tensor(values_t, kDLFloat, 64, 1, three);
  DLTensor t_wide = tensor(wide_offsets, kDLInt, 64, 1, three);
  OK(gustav_pattern_new(&t_offsets, &t_indices, 3, &a));
  OK(gustav_pattern_new(&t_offsets_t, &t_indices_t, 2, &at));
  OK(gustav_pattern_new(&t_wide, &t_indices, 3, &wide));
  INVALID(gustav_plan_spgemm(wide, at, NULL, f64, NULL, &plan), "different widths");
  OK(gustav_plan_spgemm(a, at, NULL, f64, NULL, &plan));
  INVALID(gustav_execute(plan, &t_values, &t_values_t, &t_c, NULL, NULL), "another product");
  DLManagedTensorVersioned *found = NULL, *of_offsets = NULL, *of_indices = NULL;
  OK(gustav_execute_spgemm(plan, &t_values, &t_values_t, NULL, &product, &found));
  OK(gustav_plan_free(plan));
  // A·Aᵀ is diagonal, with 5 and 9.
  const double *sums = found->dl_tensor.data;
  TRUE(found->dl_tensor.shape[0] == 2 && sums[0] == 5 && sums[1] == 9 && found->flags == 0);
  OK(gustav_pattern_arrays(product, &of_offsets, &of_indices));
  OK(gustav_pattern_free(product));
  const uint32_t *ends = of_offsets->dl_tensor.data, *columns = of_indices->dl_tensor.data;
  TRUE(ends[2] == 2 && columns[0] == 0 && columns[1] == 1);
  const DLTensor *unused = NULL;
  OK(gustav_tensor(of_indices, 0, &unused));
  INVALID(gustav_tensor(of_indices, 1, &unused), "read-only");
  found->deleter(found);
  of_offsets->deleter(of_offsets);
  of_indices->deleter(of_indices);
  // Masks: of another shape than C's, and one entry of C.
  INVALID(gustav_plan_spgemm(at, a, at, f64, NULL, &plan), "mask");
  gustav_options options = GUSTAV_OPTIONS;
  options.algorithm = "masked";
  int32_t corner_offsets[] = {0, 1, 1}, corner_indices[] = {0};
  int64_t one[] = {1};
  DLTensor t_corner_offsets = tensor(corner_offsets, kDLInt, 32, 1, three);
  DLTensor t_corner_indices = tensor(corner_indices, kDLInt, 32, 1, one);
  gustav_pattern *corner = NULL;
  OK(gustav_pattern_new(&t_corner_offsets, &t_corner_indices, 2, &corner));
  OK(gustav_plan_spgemm(a, at, corner, f64, &options, &plan));
  OK(gustav_execute_spgemm(plan, &t_values, &t_values_t, NULL, NULL, &found));
  TRUE(found->dl_tensor.shape[0] == 1 && *(double *)found->dl_tensor.data == 5);
  found->deleter(found);
  OK(gustav_plan_free(plan));
  OK(gustav_pattern_free(corner));
  OK(gustav_pattern_free(a));
  OK(gustav_pattern_free(at));
  OK(gustav_pattern_free(wide));
}

static void pointers(void) {
  gustav_pattern *pattern = NULL;
  gustav_plan *plan = NULL;
  INVALID(gustav_pattern_new(NULL, &t_indices, 3, &pattern), "row offsets: NULL");
  INVALID(gustav_pattern_new(&t_offsets, NULL, 3, &pattern), "column indices: NULL");
  INVALID(gustav_pattern_new(&t_offsets, &t_indices, 3, NULL), "pattern: NULL");
  INVALID(gustav_pattern_take(NULL, NULL, 3, &pattern), "row offsets: NULL");
  INVALID(gustav_spmm(&t_offsets, &t_indices, NULL, &t_b, &t_c, NULL, NULL, NULL), "values: NULL");
  INVALID(gustav_spmm(&t_offsets, &t_indices, &t_values, NULL, &t_c, NULL, NULL, NULL), "b: NULL");
  INVALID(gustav_spmm(&t_offsets, &t_indices, &t_values, &t_b, NULL, NULL, NULL, NULL), "c: NULL");
  INVALID(gustav_plan_spmm(NULL, 2, f64, NULL, &plan), "pattern: NULL");
  OK(gustav_pattern_new(&t_offsets, &t_indices, 3, &pattern));
  INVALID(gustav_plan_spmm(pattern, 2, f64, NULL, NULL), "plan: NULL");
  INVALID(gustav_execute(NULL, &t_values, &t_b, &t_c, NULL, NULL), "plan: NULL");
  INVALID(gustav_plan_explain(NULL, NULL), "text: NULL");
  INVALID(gustav_tensor(NULL, 0, NULL), "managed: NULL");
  // Addresses that no such struct has.
  const DLTensor *odd = (const DLTensor *)((const char *)&t_b + 1);
  INVALID(gustav_spmm(&t_offsets, &t_indices, &t_values, odd, &t_c, NULL, NULL, NULL), "not aligned");
  INVALID(gustav_spmm(&t_offsets, &t_indices, &t_values, &t_b, &t_c, (double *)((char *)b + 4), NULL,
                      NULL),
          "alpha: ");
  // Handles that were freed, of another kind, and none.
  OK(gustav_plan_spmm(pattern, 2, f64, NULL, &plan));
  INVALID(gustav_pattern_free((gustav_pattern *)plan), "of another kind");
  INVALID(gustav_execute((gustav_plan *)pattern, &t_values, &t_b, &t_c, NULL, NULL), "freed");
  INVALID(gustav_execute((gustav_plan *)c, &t_values, &t_b, &t_c, NULL, NULL), "freed");
  OK(gustav_pattern_free(pattern));
  OK(gustav_pattern_free(NULL));
  INVALID(gustav_pattern_free(pattern), "freed");
  INVALID(gustav_pattern_shape(pattern, NULL, NULL, NULL), "freed");
  OK(gustav_execute(plan, &t_values, &t_b, &t_c, NULL, NULL));
  OK(gustav_plan_free(plan));
  OK(gustav_plan_free(NULL));
  INVALID(gustav_plan_free(plan), "freed");
  INVALID(gustav_execute(plan, &t_values, &t_b, &t_c, NULL, NULL), "freed");
}

static void tensors(void) {
  gustav_pattern *pattern = NULL;
  gustav_plan *plan = NULL;
  OK(gustav_pattern_new(&t_offsets, &t_indices, 3, &pattern));
  OK(gustav_plan_spmm(pattern, 2, f64, NULL, &plan));
#define WITH(name, statement, words)                                      \
  do {                                                                    \
    DLTensor wrong = name;                                                \
    statement;                                                            \
    DLTensor *used = &wrong;                                              \
    INVALID(gustav_execute(plan, &name == &t_values ? used : &t_values,   \
                           &name == &t_b ? used : &t_b,                   \
                           &name == &t_c ? used : &t_c, NULL, NULL),      \
            words);                                                       \
  } while (0)
  int64_t negative[] = {-3, 2}, huge[] = {INT64_MAX, INT64_MAX}, far[] = {INT64_MAX, 1};
  int64_t zero[] = {0, 1}, backwards[] = {-2, 1}, gaps[] = {4, 2}, one[] = {1};
  WITH(t_values, wrong.dtype.bits = 32, "values: float32");
  WITH(t_values, wrong.dtype.lanes = 2, "float64 in 2 lanes");
  WITH(t_values, wrong.shape = two, "expected 3 elements, found 2");
  WITH(t_values, wrong.ndim = 2; wrong.shape = of_b, "two dimensions");
  WITH(t_values, wrong.strides = two, "a stride of 2");
  WITH(t_values, wrong.data = NULL, "data of NULL");
  WITH(t_b, wrong.dtype.code = kDLInt, "b: int64");
  WITH(t_b, wrong.dtype.code = 77, "code 77");
  WITH(t_b, wrong.ndim = 3, "3 dimensions");
  WITH(t_b, wrong.ndim = 0, "0 dimensions");
  WITH(t_b, wrong.ndim = -1, "-1 dimensions");
  WITH(t_b, wrong.shape = NULL, "a shape of NULL");
  WITH(t_b, wrong.shape = negative, "a length of -3");
  WITH(t_b, wrong.shape = huge, "that memory can hold");
  WITH(t_b, wrong.shape = of_c, "3");
  WITH(t_b, wrong.strides = far, "a byte offset of 0 with these strides");
  WITH(t_b, wrong.byte_offset = UINT64_MAX, "a byte offset of 18446744073709551615");
  WITH(t_b, wrong.byte_offset = 4, "not aligned for float64");
  WITH(t_b, wrong.data = (char *)b + 1, "not aligned for float64");
  WITH(t_b, wrong.strides = gaps, "strides 4 and 2");
  WITH(t_c, wrong.strides = zero, "strides 0 and 1");
  WITH(t_c, wrong.strides = backwards; wrong.byte_offset = 16, "strides -2 and 1");
  WITH(t_c, wrong.data = b, "overlaps b");
  WITH(t_c, wrong.data = values, "overlaps values");
  (void)one;
  DLTensor away = t_b;
  away.device.device_type = kDLCUDA;
  UNSUPPORTED(gustav_execute(plan, &t_values, &away, &t_c, NULL, NULL), "b in the memory of cuda:0");
  // Indices.
  DLTensor wrong = t_offsets;
  wrong.dtype.code = kDLFloat;
  INVALID(gustav_pattern_new(&wrong, &t_indices, 3, &pattern), "row offsets: float32");
  wrong = t_indices;
  wrong.dtype.bits = 64;
  wrong.shape = one;
  UNSUPPORTED(gustav_pattern_new(&t_offsets, &wrong, 3, &pattern), "both of 32 bits");
  INVALID(gustav_pattern_new(&t_offsets, &t_indices, 2, &pattern), "row 0, entry 1: index 2");
  INVALID(gustav_pattern_new(&t_offsets, &t_indices, (size_t)1 << 40, &pattern), "int32, for numbers");
  indices[1] = -1;
  INVALID(gustav_pattern_new(&t_offsets, &t_indices, 3, &pattern), "column indices");
  INVALID(gustav_pattern_new(&t_offsets, &t_indices, 3, &pattern), "-1");
  indices[1] = 2;
  offsets[1] = -2;
  INVALID(gustav_pattern_new(&t_offsets, &t_indices, 3, &pattern), "-2");
  offsets[1] = 2;
  int64_t none[] = {0};
  wrong = t_offsets;
  wrong.shape = none;
  INVALID(gustav_pattern_new(&wrong, &t_indices, 3, &pattern), "row offsets");
  // A result over arrays that are read unchecked.
  wrong = tensor(indices, kDLFloat, 32, 2, of_c);
  float of_values[3] = {0}, of_dense[6] = {0};
  DLTensor t_f_values = tensor(of_values, kDLFloat, 32, 1, three);
  DLTensor t_f_b = tensor(of_dense, kDLFloat, 32, 2, of_b);
  INVALID(gustav_spmm(&t_offsets, &t_indices, &t_f_values, &t_f_b, &wrong, NULL, NULL, NULL),
          "overlaps column indices");
  OK(gustav_plan_free(plan));
  OK(gustav_pattern_free(pattern));
}

static void options(void) {
  gustav_pattern *pattern = NULL;
  gustav_plan *plan = NULL;
  OK(gustav_pattern_new(&t_offsets, &t_indices, 3, &pattern));
#define OPTION(statement, words)                                      \
  do {                                                                \
    gustav_options wrong = GUSTAV_OPTIONS;                            \
    statement;                                                        \
    INVALID(gustav_plan_spmm(pattern, 2, f64, &wrong, &plan), words); \
  } while (0)
  OPTION(wrong.size = 3, "size of options");
  OPTION(wrong.flags = 64, "flags: 0x40");
  OPTION(wrong.device = "tpu", "tpu");
  OPTION(wrong.semiring = "plus", "plus-times, ");
  OPTION(wrong.semiring = "\xff", "semiring");
  OPTION(wrong.algorithm = "fast", "fast");
  OPTION(wrong.threads = 100000, "threads: 100000");
  gustav_options transposed = GUSTAV_OPTIONS;
  transposed.flags = GUSTAV_TRANSPOSE;
  UNSUPPORTED(gustav_plan_sddmm(pattern, 2, f64, &transposed, &plan), "GUSTAV_TRANSPOSE");
  DLDataType complex_type = {5, 128, 1};
  INVALID(gustav_plan_spmm(pattern, 2, complex_type, NULL, &plan), "dtype: complex128");
  double half = 0.5;
  int64_t zeros[6] = {0}, result[4];
  DLTensor t_i_values = tensor(zeros, kDLInt, 64, 1, three), t_i_b = tensor(zeros, kDLInt, 64, 2, of_b);
  DLTensor t_i_c = tensor(result, kDLInt, 64, 2, of_c);
  OK(gustav_plan_spmm(pattern, 2, i64, NULL, &plan));
  INVALID(gustav_execute(plan, &t_i_values, &t_i_b, &t_i_c, &half, NULL), "alpha: 0.5");
  OK(gustav_plan_free(plan));
  OK(gustav_pattern_free(pattern));
}

static void streams(void) {
  gustav_pattern *pattern = NULL;
  gustav_plan *plan = NULL;
  gustav_stream *stream = NULL;
  OK(gustav_pattern_new(&t_offsets, &t_indices, 3, &pattern));
  OK(gustav_plan_spmm(pattern, 2, f64, NULL, &plan));
  INVALID(gustav_stream_of(NULL, NULL, &stream), "device: NULL");
  INVALID(gustav_stream_of("cpu", NULL, &stream), "a CPU has no streams");
  INVALID(gustav_stream_of("cuda:x", NULL, &stream), "cuda:K");
  INVALID(gustav_stream_of("cuda:0", NULL, NULL), "handle: NULL");
  // A number that no machine has.
  expect(__LINE__, gustav_stream_of("cuda:1048576", NULL, &stream), GUSTAV_NO_DEVICE, "");
  TRUE(stream == NULL);
  INVALID(gustav_execute_on(plan, &t_values, &t_b, &t_c, NULL, NULL, NULL), "stream: NULL");
  INVALID(gustav_execute_on(plan, &t_values, &t_b, &t_c, NULL, NULL, (gustav_stream *)plan), "of another kind");
  INVALID(gustav_stream_synchronize((gustav_stream *)pattern), "of another kind");
  INVALID(gustav_stream_free((gustav_stream *)plan), "of another kind");
  OK(gustav_stream_free(NULL));
  // Where there is a GPU, a plan of the CPU and tensors in host memory are refused on its stream.
  if (gustav_stream_of("cuda:0", NULL, &stream) == GUSTAV_OK) {
    INVALID(gustav_execute_on(plan, &t_values, &t_b, &t_c, NULL, NULL, stream), "values: host memory");
    DLTensor away[] = {t_values, t_b, t_c};
    for (int k = 0; k < 3; k++) away[k].device.device_type = kDLCUDA;
    INVALID(gustav_execute_on(plan, &away[0], &away[1], &away[2], NULL, NULL, stream), "does not reach");
    away[2].data = away[1].data;
    INVALID(gustav_execute_on(plan, &away[0], &away[1], &away[2], NULL, NULL, stream), "overlaps b");
    OK(gustav_stream_synchronize(stream));
    OK(gustav_stream_free(stream));
    INVALID(gustav_stream_free(stream), "a handle that was freed");
  }
  OK(gustav_plan_free(plan));
  OK(gustav_pattern_free(pattern));
}

static void ownership(void) {
  gustav_pattern *pattern = NULL;
  gustav_plan *plan = NULL;
  DLManagedTensorVersioned *of_offsets = managed(offsets, 3), *of_indices = managed(indices, 3);
  // After an error, both are still the caller's.
  INVALID(gustav_pattern_take(of_offsets, of_indices, 2, &pattern), "index 2");
  INVALID(gustav_pattern_take(of_offsets, of_offsets, 3, &pattern), "one of their own");
  of_indices->version.major = 2;
  INVALID(gustav_pattern_take(of_offsets, of_indices, 3, &pattern), "version of DLPack: 2");
  of_indices->version.major = 1;
  TRUE(deleted == 0);
  OK(gustav_pattern_take(of_offsets, of_indices, 3, &pattern));
  OK(gustav_plan_spmm(pattern, 2, f64, NULL, &plan));
  DLTensor over = t_c;
  over.data = of_indices->dl_tensor.data;
  over.dtype.bits = 32;
  INVALID(gustav_execute(plan, &t_values, &t_b, &over, NULL, NULL), "overlaps column indices");
  OK(gustav_pattern_free(pattern));
  TRUE(deleted == 0);
  OK(gustav_execute(plan, &t_values, &t_b, &t_c, NULL, NULL));
  TRUE(c[0] == 11 && c[3] == 12);
  OK(gustav_plan_free(plan));
  TRUE(deleted == 2);
}

// Executes the plan until another thread has freed it.
static void *execute(void *plan) {
  double mine[4];
  DLTensor t_mine = tensor(mine, kDLFloat, 64, 2, of_c);
  for (int k = 0; k < 100000; k++) {
    gustav_status status = gustav_execute(plan, &t_values, &t_b, &t_mine, NULL, NULL);
    if (status == GUSTAV_INVALID) return (void *)gustav_last_error();
    if (status != GUSTAV_OK || mine[0] != 11 || mine[3] != 12) return NULL;
  }
  return NULL;
}

static void threads(void) {
  gustav_pattern *pattern = NULL;
  gustav_plan *plan = NULL;
  pthread_t first, second;
  OK(gustav_pattern_new(&t_offsets, &t_indices, 3, &pattern));
  OK(gustav_plan_spmm(pattern, 2, f64, NULL, &plan));
  OK(gustav_pattern_free(pattern));
  TRUE(pthread_create(&first, NULL, execute, plan) == 0);
  TRUE(pthread_create(&second, NULL, execute, plan) == 0);
  for (int k = 0; k < 100; k++) execute(NULL);
  OK(gustav_plan_free(plan));
  void *of_first = NULL, *of_second = NULL;
  pthread_join(first, &of_first);
  pthread_join(second, &of_second);
  TRUE(of_first != NULL && of_second != NULL);
}

int main(void) {
  t_offsets = tensor(offsets, kDLInt, 32, 1, three);
  t_indices = tensor(indices, kDLInt, 32, 1, three);
  t_values = tensor(values, kDLFloat, 64, 1, three);
  t_b = tensor(b, kDLFloat, 64, 2, of_b);
  t_c = tensor(c, kDLFloat, 64, 2, of_c);
  TRUE(strcmp(gustav_last_error(), "") == 0);
  TRUE(strcmp(gustav_version(), VERSION) == 0);
  products();
  sparse_products();
  pointers();
  tensors();
  options();
  streams();
  ownership();
  threads();
  printf("%d failures\n", failures);
  return failures != 0;
}
