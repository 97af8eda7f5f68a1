// C = A·B in one call, and with a plan that is executed twice.
//
//   cc spmm.c $(pkg-config --cflags --libs gustav) -o spmm

#include <gustav.h>
#include <stdio.h>
#include <stdlib.h>

// Ends the program with the text of the error, if there is one.
static void check(gustav_status status) {
  if (status != GUSTAV_OK) {
    fprintf(stderr, "error: %s\n", gustav_last_error());
    exit(1);
  }
}

// A packed tensor over an array in host memory.
static DLTensor tensor(void *data, uint8_t code, uint8_t bits, int32_t ndim, int64_t *shape) {
  DLTensor made = {.data = data,
                   .device = {.device_type = kDLCPU, .device_id = 0},
                   .ndim = ndim,
                   .dtype = {.code = code, .bits = bits, .lanes = 1},
                   .shape = shape};
  return made;
}

static void print(const char *name, const float *c) {
  printf("%s = [[%g, %g], [%g, %g]]\n", name, c[0], c[1], c[2], c[3]);
}

int main(void) {
  // A is 2 × 3: row 0 has 1 in column 0 and 2 in column 2, row 1 has 3 in column 1.
  int32_t offsets[] = {0, 2, 3}, indices[] = {0, 2, 1};
  float values[] = {1, 2, 3}, other_values[] = {10, 20, 30};
  float b[] = {1, 2, 3, 4, 5, 6}, c[4];
  int64_t three[] = {3}, of_b[] = {3, 2}, of_c[] = {2, 2};
  DLTensor t_offsets = tensor(offsets, kDLInt, 32, 1, three);
  DLTensor t_indices = tensor(indices, kDLInt, 32, 1, three);
  DLTensor t_values = tensor(values, kDLFloat, 32, 1, three);
  DLTensor t_other = tensor(other_values, kDLFloat, 32, 1, three);
  DLTensor t_b = tensor(b, kDLFloat, 32, 2, of_b);
  DLTensor t_c = tensor(c, kDLFloat, 32, 2, of_c);

  check(gustav_spmm(&t_offsets, &t_indices, &t_values, &t_b, &t_c, NULL, NULL, NULL));
  print("A·B", c);

  // The pattern is validated once; the plan keeps it.
  gustav_pattern *pattern;
  gustav_plan *plan;
  gustav_options options = GUSTAV_OPTIONS;
  options.calls = 1000;
  check(gustav_pattern_new(&t_offsets, &t_indices, 3, &pattern));
  check(gustav_plan_spmm(pattern, 2, t_values.dtype, &options, &plan));
  check(gustav_pattern_free(pattern));

  const char *text;
  check(gustav_plan_explain(plan, &text));
  printf("%s\n", text);

  double alpha = 0.5, beta = 1;
  check(gustav_execute(plan, &t_values, &t_b, &t_c, NULL, NULL));
  check(gustav_execute(plan, &t_other, &t_b, &t_c, &alpha, &beta));
  print("A·B + A'·B/2", c);

  // Column indices that A lacks are found before anything is read through them.
  indices[1] = 7;
  gustav_status status = gustav_pattern_new(&t_offsets, &t_indices, 3, &pattern);
  printf("status %d: %s\n", (int)status, gustav_last_error());

  check(gustav_plan_free(plan));
  return 0;
}
