// What programs do between products, on row-major packed matrices of fewer than 2^31 elements. One kernel a
// step; elements are taken in a stride of the grid, several at a time so that enough loads are in flight. Sums
// over columns are made in two kernels, without atomics: the same in every run.

typedef unsigned int u32;
typedef unsigned long long u64;

// Elements that a thread loads before it stores the first.
constexpr u32 AHEAD = 4;

// to[i] = value(i) for every i below `count`; `value` may read to[i].
template <class Value>
__device__ void map(float *to, u32 count, Value value) {
    u32 stride = gridDim.x * blockDim.x;
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += AHEAD * stride) {
        float found[AHEAD];
#pragma unroll
        for (u32 k = 0; k < AHEAD; ++k) {
            if (i + k * stride < count) found[k] = value(i + k * stride);
        }
#pragma unroll
        for (u32 k = 0; k < AHEAD; ++k) {
            if (i + k * stride < count) to[i + k * stride] = found[k];
        }
    }
}

// Threads of a CTA that adds up columns; the host has the same number.
constexpr u32 BLOCK = 256;

__device__ double term(u32 kind, float x, float y) {
    switch (kind) {
        case 0: return x;
        case 1: return double(x) * double(y);
        case 2: return fabs(double(x) - double(y));
        default: return x != y ? 1.0 : 0.0;
    }
}

// A CTA has BLOCK / width rows at a time of `width` columns; partial[CTA, column] is its sum.
extern "C" __global__ void column_sums(
    u32 kind, const float *x, const float *y, u32 rows, u32 columns, double *partial) {
    __shared__ double sums[BLOCK];
    u32 first = blockIdx.y * BLOCK, width = min(BLOCK, columns - first);
    u32 lines = BLOCK / width, line = threadIdx.x / width;
    u32 column = first + threadIdx.x % width;
    double sum = 0.0;
    if (line < lines) {
#pragma unroll 4
        for (u32 row = blockIdx.x * lines + line; row < rows; row += gridDim.x * lines) {
            u64 i = u64(row) * columns + column;
            sum += term(kind, x[i], y[i]);
        }
    }
    sums[threadIdx.x] = sum;
    for (u32 half = BLOCK / 2; half > 0; half /= 2) {
        __syncthreads();
        if (line < half && line + half < lines) sums[threadIdx.x] += sums[threadIdx.x + half * width];
    }
    if (line == 0) partial[u64(blockIdx.x) * columns + column] = sums[threadIdx.x];
}

// A CTA adds up the partial sums of its column.
extern "C" __global__ void finish_sums(const double *partial, u32 parts, u32 columns, float *to) {
    __shared__ double sums[BLOCK];
    double sum = 0.0;
    for (u32 k = threadIdx.x; k < parts; k += BLOCK) sum += partial[u64(k) * columns + blockIdx.x];
    sums[threadIdx.x] = sum;
    for (u32 half = BLOCK / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) to[blockIdx.x] = float(sums[0]);
}

extern "C" __global__ void ratios(const float *over, const float *under, float *to, u32 count) {
    map(to, count, [=](u32 i) { return under[i] > 0.0f ? over[i] / under[i] : 0.0f; });
}

extern "C" __global__ void add_columns(
    float *x, float sign, const float *factors, const float *y, u32 count, u32 columns) {
    map(x, count, [=](u32 i) { return x[i] + sign * factors[i % columns] * y[i]; });
}

extern "C" __global__ void scale_columns(
    float *x, const float *factors, const float *y, u32 count, u32 columns) {
    map(x, count, [=](u32 i) { return factors[i % columns] * x[i] + y[i]; });
}

extern "C" __global__ void add_number(
    float *x, float constant, float factor, const float *number, u32 count) {
    float sum = constant + factor * number[0];
    map(x, count, [=](u32 i) { return x[i] + sum; });
}

extern "C" __global__ void add_bias(float *x, const float *bias, u32 relu, u32 count, u32 columns) {
    map(x, count, [=](u32 i) {
        float sum = x[i] + bias[i % columns];
        return relu ? fmaxf(sum, 0.0f) : sum;
    });
}

extern "C" __global__ void relu_gradient(float *g, const float *x, u32 count) {
    map(g, count, [=](u32 i) { return x[i] > 0.0f ? g[i] : 0.0f; });
}

// A warp has a row.
extern "C" __global__ void cross_entropy(
    const float *z, const u32 *labels, float *g, float *losses, u32 rows, u32 classes) {
    u32 lane = threadIdx.x % 32, warps = gridDim.x * blockDim.x / 32;
    for (u32 row = (blockIdx.x * blockDim.x + threadIdx.x) / 32; row < rows; row += warps) {
        const float *from = z + u64(row) * classes;
        float *to = g + u64(row) * classes;
        float most = __int_as_float(0xff800000), sum = 0.0f, share = 1.0f / float(rows);
        for (u32 k = lane; k < classes; k += 32) most = fmaxf(most, from[k]);
        for (u32 d = 16; d > 0; d /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
        for (u32 k = lane; k < classes; k += 32) sum += expf(from[k] - most);
        for (u32 d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
        u32 label = labels[row];
        for (u32 k = lane; k < classes; k += 32) {
            to[k] = (expf(from[k] - most) / sum - (k == label ? 1.0f : 0.0f)) * share;
        }
        if (lane == 0) losses[row] = (logf(sum) + most - from[label]) * share;
    }
}

extern "C" __global__ void adam(
    float *value, const float *gradient, float *first, float *second, float rate, float root,
    float decay_first, float decay_second, float epsilon, u32 count) {
    map(value, count, [=](u32 i) {
        float g = gradient[i];
        float m = first[i] = decay_first * first[i] + (1.0f - decay_first) * g;
        float v = second[i] = decay_second * second[i] + (1.0f - decay_second) * g * g;
        return value[i] - rate * m / (sqrtf(v) * root + epsilon);
    });
}

extern "C" __global__ void leaky_relu(const float *x, float *to, float slope, u32 count) {
    map(to, count, [=](u32 i) { return x[i] > 0.0f ? x[i] : slope * x[i]; });
}

extern "C" __global__ void leaky_relu_gradient(float *g, const float *x, float slope, u32 count) {
    map(g, count, [=](u32 i) { return x[i] > 0.0f ? g[i] : slope * g[i]; });
}

// Rows of x and y have `width` elements.
extern "C" __global__ void split_scores(const float *scores, float *x, float *y, u32 width, u32 count) {
    const auto place = [=](u32 i, u32 of_score) {
        const u32 column = i % width;
        return column == of_score ? scores[i / width * 2 + of_score] : column < 2 ? 1.0f : 0.0f;
    };
    map(x, count, [=](u32 i) { return place(i, 0); });
    map(y, count, [=](u32 i) { return place(i, 1); });
}

extern "C" __global__ void join_scores(const float *of_x, const float *of_y, float *to, u32 width, u32 count) {
    map(to, count, [=](u32 i) { return i % 2 == 0 ? of_x[i / 2 * width] : of_y[i / 2 * width + 1]; });
}
