// Blocks of ROWS consecutive rows and the union of their columns.
//
// An entry of a block is one column and the rows of the block that have it. The entries of a block
// start at the offset of its first nonzero in A, so that the list is never longer than A has
// nonzeros. For every CHUNK entries, the list holds the current position of each row in the values
// of A.
//
//   entry  = column | rows << COLUMN_BITS      (bit r: row r of the block has it)
//   chunk  = CHUNK entries; chunk k of block b has its positions at ((start of b) / CHUNK + b + k)
//
// Rows are merged in their stored order: with unsorted or repeated columns, fewer nonzeros share an
// entry, but each is still in exactly one.
#pragma once
#include "common/types.cuh"

namespace schedule {

template <class Word, int ROWS>
struct BlockEntry {
    static constexpr int COLUMN_BITS = 8 * sizeof(Word) - ROWS;
    static __device__ __forceinline__ Word make(u64 column, u32 rows) {
        return (Word)column | (Word)rows << COLUMN_BITS;
    }
    static __device__ __forceinline__ Word column(Word entry) {
        return entry & (((Word)1 << COLUMN_BITS) - 1);
    }
    static __device__ __forceinline__ bool has(Word entry, int row) {
        return entry >> (COLUMN_BITS + row) & 1;
    }
};

// Takes the smallest of the next columns of all rows and advances the rows that have it.
template <int ROWS, class I>
struct Merge {
    const I *indices;
    u64 next[ROWS], last[ROWS];
    u64 column[ROWS];

    template <class O>
    __device__ Merge(const O *offsets, const I *indices, u64 first_row, u64 rows)
        : indices(indices) {
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const u64 row = first_row + r;
            next[r] = last[r] = 0;
            if (row < rows) next[r] = offsets[row], last[r] = offsets[row + 1];
            look(r);
        }
    }
    __device__ __forceinline__ void look(int r) {
        column[r] = next[r] < last[r] ? (u64)indices[next[r]] : ~0ull;
    }
    // The rows that had the column; 0 at the end.
    __device__ __forceinline__ u32 step(u64 &smallest) {
        smallest = ~0ull;
#pragma unroll
        for (int r = 0; r < ROWS; ++r) smallest = column[r] < smallest ? column[r] : smallest;
        u32 rows = 0;
        if (smallest == ~0ull) return rows;
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
            if (column[r] == smallest) {
                rows |= 1u << r;
                ++next[r];
                look(r);
            }
        return rows;
    }
};

}  // namespace schedule
