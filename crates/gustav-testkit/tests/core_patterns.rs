//! Patterns: their identity, what they refuse, who owns their arrays, their transpose; and values
//! that belong to a pattern.

use std::sync::Arc;

use gustav_core::{
    AnyPattern, Csr, CsrView, Error, IndexType, Pattern, PatternId, PatternRef, PatternView, Values,
};

/// 3 × 4: columns 1 and 3 of row 0, none of row 1, columns 0 and 3 of row 2.
const OFFSETS: [u32; 4] = [0, 2, 2, 4];
const INDICES: [u32; 4] = [1, 3, 0, 3];

fn pattern() -> Pattern {
    Pattern::new(3, 4, OFFSETS.to_vec(), INDICES.to_vec()).unwrap()
}

#[test]
fn clones_and_views_have_the_identity_of_their_pattern() {
    let p = pattern();
    assert_eq!(p.clone().id(), p.id());
    assert_eq!(p.view().id(), p.id());
    assert_eq!(PatternView::from(&p).id(), p.id());
    let any: AnyPattern<'_> = PatternRef::from(&p).into();
    assert_eq!((any.id(), any.index_types()), (p.id(), (IndexType::U32, IndexType::U32)));
    let a = Csr::from_pattern(&p, vec![1.0f32; 4]).unwrap();
    assert_eq!((a.pattern().id(), a.view().pattern().id()), (p.id(), p.id()));
    assert_eq!(a.clone().pattern().id(), p.id());
    assert_eq!(a.values().pattern_id(), Some(p.id()));
}

#[test]
fn patterns_of_equal_arrays_are_equal_but_not_the_same() {
    let (p, q) = (pattern(), pattern());
    assert_eq!(p, q);
    assert_ne!(p.id(), q.id());
    assert_ne!(p.view().to_owned().unwrap().id(), p.id());
    let borrowed = PatternView::new(3, 4, &OFFSETS, &INDICES).unwrap();
    let copy = borrowed;
    assert_eq!(copy.id(), borrowed.id());
    assert_ne!(PatternView::new(3, 4, &OFFSETS, &INDICES).unwrap().id(), borrowed.id());
    assert_ne!(PatternId::fresh(), PatternId::fresh());
    let moved = Pattern::new(3, 4, OFFSETS.to_vec(), vec![1, 2, 0, 3]).unwrap();
    assert_ne!(p, moved);
}

#[test]
fn every_index_type_is_known_at_run_time() {
    let offsets = OFFSETS.map(u64::from);
    let indices = INDICES.map(u64::from);
    let types = |any: AnyPattern<'_>| (any.index_types(), any.nrows(), any.ncols(), any.nnz());
    use IndexType::{U32, U64};
    let wide = PatternView::new(3, 4, &offsets, &indices).unwrap();
    assert_eq!(types(PatternRef::from(wide).into()), ((U64, U64), 3, 4, 4));
    let mixed = PatternView::new(3, 4, &offsets, &INDICES).unwrap();
    assert_eq!(types(PatternRef::from(mixed).into()), ((U32, U64), 3, 4, 4));
    let mixed = PatternView::new(3, 4, &OFFSETS, &indices).unwrap();
    assert_eq!(types(PatternRef::from(mixed).into()), ((U64, U32), 3, 4, 4));
}

#[test]
fn broken_invariants_are_refused_with_the_position() {
    // Owned, borrowed and held arrays go through the same checks.
    let refusals = |offsets: &[u32], indices: &[u32]| -> [Error; 3] {
        let held: (Arc<[u32]>, Arc<[u32]>) = (offsets.into(), indices.into());
        [
            Pattern::new(3, 4, offsets.to_vec(), indices.to_vec()).map(drop),
            PatternView::new(3, 4, offsets, indices).map(drop),
            Pattern::from_owners(3, 4, held.0, held.1).map(drop),
        ]
        .map(|result| result.expect_err("a broken pattern"))
    };
    for e in refusals(&[0, 2, 4], &INDICES) {
        assert!(matches!(e, Error::Length { expected: 4, found: 3, .. }), "{e}");
    }
    for e in refusals(&[1, 2, 2, 4], &INDICES) {
        assert!(matches!(e, Error::Offsets { row: 0, found: 1, .. }), "{e}");
    }
    for e in refusals(&[0, 3, 2, 4], &INDICES) {
        assert!(matches!(e, Error::Offsets { row: 1, found: 2, .. }), "{e}");
    }
    for e in refusals(&[0, 2, 2, 5], &INDICES) {
        assert!(matches!(e, Error::Offsets { row: 3, found: 5, .. }), "{e}");
    }
    for e in refusals(&OFFSETS, &[1, 3, 0, 4]) {
        let found = matches!(e, Error::Index { row: 2, position: 3, value: 4, bound: 4 });
        assert!(found, "{e}");
    }
}

#[test]
fn owners_are_read_in_place_and_dropped_with_the_last_clone() {
    let (offsets, indices): (Arc<[u32]>, Arc<[u32]>) = (OFFSETS.into(), INDICES.into());
    let p = Pattern::from_owners(3, 4, offsets.clone(), indices.clone()).unwrap();
    assert_eq!(p.offsets().as_ptr(), offsets.as_ptr());
    assert_eq!(p.indices().as_ptr(), indices.as_ptr());
    assert_eq!(p, pattern());
    let clone = p.clone();
    drop(p);
    assert_eq!((Arc::strong_count(&offsets), clone.indices()), (2, &INDICES[..]));
    drop(clone);
    assert_eq!((Arc::strong_count(&offsets), Arc::strong_count(&indices)), (1, 1));
}

/// An owner whose array lies inside of it, so that it moves with its owner.
struct Inline([u32; 4]);

impl AsRef<[u32]> for Inline {
    fn as_ref(&self) -> &[u32] {
        &self.0
    }
}

#[test]
fn arrays_inside_their_owner_are_read_where_the_owner_ends_up() {
    let p = Pattern::from_owners(3, 4, Inline(OFFSETS), Inline(INDICES)).unwrap();
    let moved = std::hint::black_box([p.clone(), p]);
    assert_eq!(moved[1], pattern());
}

#[test]
fn the_last_owner_takes_the_arrays_without_a_copy() {
    let p = pattern();
    let (offsets, indices) = (p.offsets().as_ptr(), p.indices().as_ptr());
    let parts = p.into_parts().unwrap();
    assert_eq!((parts.0.as_ptr(), parts.1.as_ptr()), (offsets, indices));

    let (p, values) = (pattern(), vec![5.0f64; 4]);
    let a = Csr::from_pattern(&p, values).unwrap();
    let offsets = p.offsets().as_ptr();
    // A pattern with another owner is copied and stays as it is.
    let parts = a.into_parts().unwrap();
    assert_ne!(parts.0.as_ptr(), offsets);
    assert_eq!(
        (&parts.0[..], &parts.1[..], &parts.2[..]),
        (&OFFSETS[..], &INDICES[..], &[5.0; 4][..])
    );
    assert_eq!(p, pattern());

    let held: Arc<[u32]> = INDICES.into();
    let p = Pattern::from_owners(3, 4, OFFSETS, held.clone()).unwrap();
    let parts = p.into_parts().unwrap();
    assert_eq!((&parts.0[..], &parts.1[..]), (&OFFSETS[..], &INDICES[..]));
    assert_ne!(parts.1.as_ptr(), held.as_ptr());
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn the_transposed_pattern_is_made_once_and_says_where_values_come_from() {
    let p = pattern();
    let transposed = p.transposed().unwrap();
    assert!(Arc::ptr_eq(&transposed, &p.transposed().unwrap()));
    assert!(Arc::ptr_eq(&transposed, &p.clone().transposed().unwrap()));
    let PatternRef::Shared(shared) = PatternRef::from(&p) else { panic!("a counted reference") };
    assert!(Arc::ptr_eq(&transposed, &shared.transposed().unwrap()));
    assert!(!Arc::ptr_eq(&transposed, &pattern().transposed().unwrap()));

    // Columns 0 to 3 hold row 2; row 0; nothing; rows 0 and 2.
    let t = transposed.pattern();
    assert_eq!((t.nrows(), t.ncols()), (4, 3));
    assert_eq!((t.offsets(), t.indices()), (&[0, 1, 2, 2, 4][..], &[2, 0, 0, 2][..]));
    assert_eq!(transposed.permutation(), [2, 0, 1, 3]);
    let mut values = [0.0f32; 4];
    transposed.gather(&[1.0, 2.0, 3.0, 4.0], &mut values).unwrap();
    assert_eq!(values, [3.0, 1.0, 2.0, 4.0]);
    for (from, to) in [(3, 4), (4, 3)] {
        let refused = transposed.gather(&vec![1.0f32; from], &mut vec![0.0; to]);
        assert!(matches!(refused, Err(Error::Length { expected: 4, found: 3, .. })), "{refused:?}");
    }
}

#[test]
fn a_pattern_does_not_keep_itself_alive() {
    let owner: Arc<[u32]> = INDICES.into();
    let p = Pattern::from_owners(3, 4, OFFSETS, owner.clone()).unwrap();
    let transposed = p.transposed().unwrap();
    drop(p);
    assert_eq!(Arc::strong_count(&owner), 1);
    assert_eq!(Arc::strong_count(&transposed), 1);
}

#[test]
fn threads_share_one_transposed_pattern() {
    let p = pattern();
    let made: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| p.transposed().unwrap())).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert!(made.iter().all(|t| Arc::ptr_eq(t, &made[0])));
}

#[test]
fn values_fit_their_pattern_alone_and_slices_any_of_their_length() {
    let (p, q) = (pattern(), pattern());
    let a = Csr::from_pattern(&p, vec![1.0f32, 2.0, 3.0, 4.0]).unwrap();
    let numbers = [5.0f32; 4];
    assert_eq!(a.values().fit("A", p.id(), 4).unwrap(), [1.0, 2.0, 3.0, 4.0]);
    let refused = a.values().fit("A", q.id(), 4).unwrap_err();
    assert!(matches!(refused, Error::Pattern { .. }) && refused.to_string().contains("of A"));
    for id in [p.id(), q.id()] {
        assert_eq!(Values::from(&numbers).fit("A", id, 4).unwrap(), numbers);
        let refused = Values::from(&numbers[1..]).fit("A", id, 4).unwrap_err();
        assert!(matches!(refused, Error::Length { what: "A", expected: 4, found: 3 }));
    }
    // A view of arrays has an identity of its own; other values under it have the same.
    let one: CsrView<'_, f32> = CsrView::new(3, 4, &OFFSETS, &INDICES, &numbers).unwrap();
    let other = [6.0f32; 4];
    let two = one.pattern().with_values(&other).unwrap();
    assert_eq!(two.values().fit("A", one.pattern().id(), 4).unwrap(), other);
    assert!(one.values().fit("A", p.id(), 4).is_err());
    // Slicing leaves the identity behind.
    assert_eq!(Values::from(a.values().as_slice()).pattern_id(), None);
}

#[test]
fn as_many_values_as_nonzeros() {
    let refused = Csr::from_pattern(&pattern(), vec![1.0f32; 3]).map(drop);
    assert!(matches!(refused, Err(Error::Length { what: "values", expected: 4, found: 3 })));
    let refused = pattern().view().with_values(&[1.0f32; 5]).map(drop);
    assert!(matches!(refused, Err(Error::Length { what: "values", expected: 4, found: 5 })));
}
