// segmented of attention: O = softmax(leaky(scale Q K^T + bias)) V over the nonzeros of every row, and its gradients. Ours.
//
// Idea: a segment (a row, or at most S nonzeros of a long one) is the work of a group of lanes that holds the segment's
// own rows in registers, if the pass has any, and gathers two rows for every nonzero, CHUNK nonzeros at a time, all in
// flight at once. Gradients make the weights again from the logarithm of the sum of exponentials of every row; ROWS
// leaves them for COLUMNS, two numbers a nonzero, so that COLUMNS makes no inner products.
//
//   PASS      own rows      gathered rows     sums
//   FORWARD   q_i           k_j     v_j       O_i = sum of p v_j, p = exp(s - m), beside m and the sum of p
//   ROWS      q_i    dO_i   k_j     v_j       dQ_i = sum of scale ds k_j; stores p and ds
//   COLUMNS                 q_i     dO_i      dK_j = sum of scale ds q_i, dV_j = sum of p dO_i
//             "left" "right" "left" "right"
//
//   s = leaky(t) = t leak        t = scale <left, left> + bias        leak = t > 0 ? 1 : negative_slope
//   p = exp(s - lse)             ds = p (<right, right> - delta) leak, the gradient of t
//   delta = <dO_i, O_i>
//
// COLUMNS takes the transposed pattern. `left` has `depth` columns, `right` has `value_depth`.
//
//   grid.x -> segments, BLOCK / LANES a CTA     grid.y -> heads
//   lane l of a group: columns (k LANES + l) VECTOR + 0..VECTOR-1 of a row; one of CHUNK nonzeros' scores
//
// Parts of cut rows are merged as attention/rows.cuh says.
//
// Scores are NaN or +infinity: the row is NaN. A row without nonzeros, or with scores of -infinity alone: zeros,
// and gradients of zero.
//
// Invariants: VECTOR divides depths, leading dimensions, distances of heads and addresses of all matrices;
// CHUNK <= LANES; results overlap nothing; `weights` has room for all heads of a launch; COLUMNS follows ROWS of the
// same heads on the stream.
#include "attention/rows.cuh"
#include "ptx/dependents.cuh"
#include "tile/totals.cuh"

constexpr int CHUNK = GUSTAV_CHUNK;
static_assert(CHUNK <= LANES && LANES <= 32 && (CHUNK & (CHUNK - 1)) == 0, "a lane for every nonzero of a chunk");

template <int TILES>
__device__ __forceinline__ Accum product(const Row<TILES> &x, const Row<TILES> &y, const Span<TILES> &span) {
    Accum sum = 0;
#pragma unroll
    for (int k = 0; k < TILES; ++k) {
        if (!span.has(k)) continue;
#pragma unroll
        for (int v = 0; v < VECTOR; ++v)
            sum = times_plus(tile::widen_at(x[k], v), tile::widen_at(y[k], v), sum);
    }
    return sum;
}

template <int TILES>
__device__ __forceinline__ void add(Sums<TILES> &sum, Accum weight, const Row<TILES> &row) {
#pragma unroll
    for (int k = 0; k < TILES; ++k)
#pragma unroll
        for (int v = 0; v < VECTOR; ++v)
            sum[k][v] = times_plus(weight, tile::widen_at(row[k], v), sum[k][v]);
}

// The sum of `mine` over the lanes that have different nonzeros of a chunk.
__device__ __forceinline__ Accum over_nonzeros(Accum mine) {
#pragma unroll
    for (int step = LANES / CHUNK; step < LANES; step *= 2) mine = plus(mine, __shfl_xor_sync(~0u, mine, step));
    return mine;
}

// Stores the gradient of the bias at a nonzero. Heads that share a bias add to it in their order: the grid has one head
// at a time then.
__device__ __forceinline__ void store_bias_gradient(const Arguments &args, u64 head, u64 nonzero, Accum slope) {
    Value *to = args.bias_gradient + head * args.gradient_head + nonzero * args.gradient_nonzero;
    const bool adds = args.gradient_head == 0 && head > 0;
    *to = Narrow<Value>::from(adds ? plus(widen(*to), slope) : slope);
}

// One segment in one head.
__device__ __forceinline__ void attend(const Arguments &args, const Segment &s, u64 head) {
    Group group(args);
    // Which of a chunk's nonzeros is this lane's, as `Totals` has it.
    const int mine = threadIdx.x % LANES / (LANES / CHUNK);
    const int group_lane = threadIdx.x % 32 / LANES * LANES;
    const Position length = s.last - s.first;
    // Columns, and positions in A, are read a chunk ahead of their use.
    const auto column_of = [&](Position done) {
        return done + mine < length ? __ldg(args.indices + s.first + done + mine) : Index(0);
    };
    const auto position_of = [&](Position done) {
        return done + mine < length ? __ldg(args.positions + s.first + done + mine) : Offset(0);
    };
    Index next = column_of(0);
    Offset next_position = PASS == COLUMNS ? position_of(0) : Offset(0);
    Weights *const weights = reinterpret_cast<Weights *>(args.weights) + (head - args.first_head) * args.nonzeros;
    const u64 own = s.none() ? 0 : s.cut() ? schedule::cut_row(args.slot_rows, s.target()).row : s.target();
    const Accum factor = from_bits<Accum>(args.scale), negative_slope = from_bits<Accum>(args.negative_slope);
    const Value *left = args.left.address + head * args.left.head;
    const Value *right = args.right.address + head * args.right.head;
    Row<LEFT> own_left;
    Row<RIGHT> own_right;
    Accum lse = 0, delta = 0;
    if constexpr (PASS != COLUMNS)
        load_row(args.own_left.address + head * args.own_left.head + own * args.own_left.row, group.left, own_left);
    if constexpr (PASS == ROWS) {
        Row<RIGHT> result;
        const Value *own_rights = args.own_right.address + head * args.own_right.head;
        load_row(own_rights + own * args.own_right.row, group.right, own_right);
        load_row(args.result.address + head * args.result.head + own * args.result.row, group.right, result);
        Accum sum[1] = {product(own_right, result, group.right)};
        tile::Totals<Accum, 1, LANES>::add(sum);
        delta = sum[0];
        lse = args.lse[head * args.rows + own];
    }
    // Groups of a warp go together: some have nothing left.
    Position longest = length;
    if constexpr (LANES < 32) {
#pragma unroll
        for (int step = LANES; step < 32; step *= 2) {
            const Position other = __shfl_xor_sync(~0u, longest, step);
            longest = other > longest ? other : longest;
        }
    }
    for (Position done = 0; done < longest; done += CHUNK) {
        const Position position = s.first + done;
        const int count = done >= length ? 0 : length - done < CHUNK ? (int)(length - done) : CHUNK;
        const bool has = mine < count;
        const u64 my_column = next, my_position = next_position;
        next = column_of(done + CHUNK);
        if constexpr (PASS == COLUMNS) next_position = position_of(done + CHUNK);
        Row<LEFT> lefts[CHUNK];
        Row<RIGHT> rights[CHUNK];
#pragma unroll
        for (int u = 0; u < CHUNK; ++u) {
            const u64 column = __shfl_sync(~0u, (Index)my_column, group_lane + u * (LANES / CHUNK));
            if (u >= count) continue;
            load_row(left + column * args.left.row, group.left, lefts[u]);
            load_row(right + column * args.right.row, group.right, rights[u]);
        }
        Accum weight = 0, slope = 0;
        if constexpr (PASS == COLUMNS) {
            if (has) {
                const Weights both = tile::load<Accum, 2>(reinterpret_cast<const Accum *>(weights + my_position));
                weight = both.at[0];
                slope = both.at[1];
            }
        } else {
            Accum bias = 0;
            if (BIASED && has)
                bias = widen(args.bias[head * args.bias_head + (u64)(position + mine) * args.bias_nonzero]);
            Accum score[CHUNK], change[CHUNK];
#pragma unroll
            for (int u = 0; u < CHUNK; ++u) {
                score[u] = u < count ? product(own_left, lefts[u], group.left) : Accum(0);
                if constexpr (PASS == ROWS)
                    change[u] = u < count ? product(own_right, rights[u], group.right) : Accum(0);
            }
            tile::Totals<Accum, CHUNK, LANES>::add(score);
            const Accum t_mine = times_plus(factor, score[0], bias);
            const Accum leak = t_mine > 0 ? Accum(1) : negative_slope;
            const Accum s_mine = has ? times(leak, t_mine) : none();
            if constexpr (PASS == FORWARD) {
                Accum largest = s_mine;
#pragma unroll
                for (int step = LANES / CHUNK; step < LANES; step *= 2)
                    largest = larger(largest, __shfl_xor_sync(~0u, largest, step));
                if (largest > group.largest) {
                    const Accum correction = exponential(group.largest - largest);
                    scale(group.right_sum, correction);
                    group.total = times(correction, group.total);
                    group.largest = largest;
                }
                weight = exponential(s_mine - base_of(group.largest));
                group.total = plus(group.total, weight);
            } else {
                tile::Totals<Accum, CHUNK, LANES>::add(change);
                weight = lse == none() ? Accum(0) : exponential(s_mine - lse);
                slope = times(leak, times(weight, change[0] - delta));
                if (!has) weight = slope = 0;
                if (has && threadIdx.x % (LANES / CHUNK) == 0) {
                    const u64 nonzero = position + mine;
                    weights[nonzero] = Weights{weight, slope};
                    if (args.bias_gradient) store_bias_gradient(args, head, nonzero, slope);
                }
            }
        }
#pragma unroll
        for (int u = 0; u < CHUNK; ++u) {
            const int lane = group_lane + u * (LANES / CHUNK);
            const Accum w = SUMS_RIGHT ? __shfl_sync(~0u, weight, lane) : Accum(0);
            const Accum ds = SUMS_LEFT ? __shfl_sync(~0u, slope, lane) : Accum(0);
            if (u >= count) continue;
            if constexpr (SUMS_RIGHT) add(group.right_sum, w, rights[u]);
            if constexpr (SUMS_LEFT) add(group.left_sum, ds, lefts[u]);
        }
    }
    const Accum total = PASS == FORWARD ? over_nonzeros(group.total) : Accum(0);
    if (s.none()) return;
    if (s.cut())
        merge(args, s, head, group, total);
    else
        finish(args, own, head, group, total);
}

extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT / BLOCK)
    attention(const __grid_constant__ Arguments args) {
    ptx::wait_for_prerequisites();
    const u64 i = (u64)blockIdx.x * (BLOCK / LANES) + threadIdx.x / LANES;
    const Segment s = i < args.count ? schedule::segment<Position>(args.segments, i) : schedule::no_segment<Position>();
    for (u64 head = args.first_head + blockIdx.y; head < args.end_head; head += gridDim.y) attend(args, s, head);
}
