//! How the columns of a row of B spread over lanes.

use gustav_core::DType;

use super::operands::Operands;

const LANES: [u32; 6] = [32, 16, 8, 4, 2, 1];

/// Lanes that share a row of B, and the vectors that each of them holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tile {
    pub lanes: u32,
    pub tiles: u32,
}

impl Tile {
    /// For `columns` in vectors of `vector` values, as few panels as `limit` allows, then as few
    /// idle lanes, then as near to its tiles as possible.
    pub(super) fn new(dtype: DType, vector: u32, columns: usize, limit: Limit) -> Self {
        let vectors = (columns as u64).div_ceil(u64::from(vector)).max(1);
        // Single values are many vectors, and registers hold as many of them: rather that than lanes,
        // so that a warp has several segments on their way.
        let bytes = u64::from(vector) * dtype.bytes() as u64;
        let (most, wanted) = match bytes {
            8.. => (limit.most_tiles, limit.tiles),
            _ => (limit.most_single, limit.tiles * 16 / bytes as u32),
        };
        let panels = |lanes: u32, tiles: u32| vectors.div_ceil(u64::from(lanes * tiles));
        let cost = |lanes, tiles| panels(lanes, tiles) * u64::from(lanes * tiles);
        // Neighbouring lanes read whole sectors of 32 bytes when a row of B has them.
        let sector = (32 / bytes).min(vectors.next_power_of_two());
        let (lanes, tiles) = LANES
            .iter()
            .filter(|lanes| **lanes <= limit.lanes && u64::from(**lanes) >= sector)
            .flat_map(|l| (1..=most).map(move |t| (*l, t)))
            .min_by_key(|&(l, t)| (panels(l, t), cost(l, t), t.abs_diff(wanted), t))
            .unwrap_or((limit.lanes, 1));
        Tile { lanes, tiles }
    }
}

/// What a tile keeps to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    /// Lanes at most.
    pub lanes: u32,
    /// Tiles preferred.
    pub tiles: u32,
    /// Tiles at most, of vectors of 8 bytes and more.
    pub most_tiles: u32,
    /// Tiles at most, of smaller ones.
    pub most_single: u32,
}

/// The most values of 16 bytes or less that divide `number`.
pub(super) fn widest(dtype: DType, number: u64) -> u32 {
    let most = 16 / dtype.bytes() as u64;
    (most.min(number & number.wrapping_neg())).max(1) as u32
}

/// The widest vector that the columns, leading dimensions and addresses of B and C allow.
pub(super) fn widest_for(o: &Operands) -> u32 {
    let aligned = |address: u64, ld: usize, dtype: DType| {
        let values = widest(dtype, ld as u64);
        let addressed = (address & address.wrapping_neg()).max(1) / dtype.bytes() as u64;
        if address == 0 { values } else { values.min(addressed.min(16) as u32) }
    };
    widest(o.dtype, o.columns as u64)
        .min(aligned(o.b, o.ldb, o.dtype))
        .min(aligned(o.c, o.ldc, o.dtype_c))
}

/// The type of sums of `dtype`.
pub(super) fn accumulator(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::Bf16 => DType::F32,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_columns_leave_few_lanes_idle() {
        let limit = Limit { lanes: 32, tiles: 2, most_tiles: 3, most_single: 10 };
        let of = |columns: usize| {
            let vector = widest(DType::F32, columns as u64);
            let Tile { lanes, tiles } = Tile::new(DType::F32, vector, columns, limit);
            (vector, lanes, tiles)
        };
        assert_eq!(of(31), (1, 8, 4));
        assert_eq!(of(33), (1, 8, 5));
        assert_eq!(of(36), (4, 4, 3));
        assert_eq!(of(129), (1, 16, 9));
        assert_eq!(of(132), (4, 16, 3));
        // Powers of two have two vectors a lane.
        for columns in [32, 64, 128, 256] {
            assert_eq!(of(columns), (4, columns as u32 / 8, 2));
        }
    }
}
