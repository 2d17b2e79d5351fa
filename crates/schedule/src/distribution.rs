//! Which part of a grid owns which elements of an array.
//!
//! # Problem
//!
//! A program distributes an array over nodes or threads and wants each thread to execute the
//! iterations whose elements its node has. Placement (which page goes where) and loops (which
//! thread gets which indices) must follow one rule.
//!
//! # Approach
//!
//! Each dimension of the array has a [`DimensionFormat`], as in High Performance Fortran. The parts
//! form a grid over the distributed dimensions. The part of an element follows from its indices
//! alone. [`crate::share`] gives a team's threads their indices, [`crate::page_owners`] gives each
//! page the node that owns most of the page.
//!
//! # Terms
//!
//! Dimension 0 is the outermost: an index step there is the largest step in memory. The *leading
//! dimension* is the number of elements from one innermost row to the next. A *unit* is the number
//! of indices that a block border is a multiple of.
//!
//! # Properties
//!
//! - Each element has one owner.
//! - Blocks of one dimension differ by at most one unit, and are those of `schedule(static)`.

/// Most dimensions of an array: as many as Fortran allowed before 2008.
pub const DIMENSIONS: usize = 7;
/// Most parts of a grid.
pub const PARTS: u64 = 1 << 16;

/// How one dimension is distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DimensionFormat {
    /// Not at all: each part has all indices.
    Star,
    /// Each part has one range of neighbouring indices.
    Block,
    /// Chunks of this many indices are dealt to the parts in turn. Above zero.
    Cyclic(u64),
}

/// One dimension of a distributed array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DistributedDimension {
    extent: u64,
    spec: DimensionFormat,
    parts: u64,
    unit: u64,
}

impl DistributedDimension {
    const NONE: Self = Self { extent: 1, spec: DimensionFormat::Star, parts: 1, unit: 1 };

    /// A dimension of `extent` indices over `parts` parts. Borders of blocks are multiples of
    /// `unit`.
    ///
    /// # Errors
    /// A number is zero, there are more than [`PARTS`] parts, or an undistributed dimension has
    /// several parts.
    pub fn new(extent: u64, spec: DimensionFormat, parts: u64, unit: u64) -> Result<Self, String> {
        if extent == 0 || i64::try_from(extent).is_err() {
            return Err(format!("a dimension of {extent} indices cannot be distributed"));
        }
        if matches!(spec, DimensionFormat::Cyclic(0)) {
            return Err("CYCLIC(0) deals chunks of no index: the chunk size is 1 or more".into());
        }
        if parts == 0 || parts > PARTS || unit == 0 || (spec == DimensionFormat::Star && parts != 1) {
            return Err(format!("{parts} parts with borders at multiples of {unit} are no grid"));
        }
        Ok(Self { extent, spec, parts, unit })
    }

    /// The number of indices.
    pub const fn extent(&self) -> u64 {
        self.extent
    }

    /// How it is distributed.
    pub const fn spec(&self) -> DimensionFormat {
        self.spec
    }

    /// Parts of the grid along the dimension.
    pub const fn parts(&self) -> u64 {
        self.parts
    }

    /// Borders of blocks are multiples of this many indices.
    pub const fn unit(&self) -> u64 {
        self.unit
    }

    /// The first index of a block; `extent` for a part behind the last one.
    pub fn border(&self, part: u64) -> u64 {
        let units = self.extent.div_ceil(self.unit);
        balanced(units, self.parts, part).saturating_mul(self.unit).min(self.extent)
    }

    /// The part that owns an index.
    pub fn owner(&self, index: u64) -> u64 {
        match self.spec {
            DimensionFormat::Star => 0,
            DimensionFormat::Cyclic(size) => index / size % self.parts,
            DimensionFormat::Block => {
                let (units, unit) = (self.extent.div_ceil(self.unit), index / self.unit);
                let (each, longer) = (units / self.parts, units % self.parts);
                match unit.checked_sub(longer * (each + 1)) {
                    None => unit / (each + 1),
                    // Where blocks are empty (`each` is 0), no unit lies behind the longer ones.
                    Some(behind) => longer + behind / each.max(1),
                }
            }
        }
    }

    /// One past the last index of those behind `index` that have its owner without a gap.
    pub fn same_owner_until(&self, index: u64) -> u64 {
        match self.spec {
            DimensionFormat::Star => self.extent,
            DimensionFormat::Block => self.border(self.owner(index) + 1),
            DimensionFormat::Cyclic(_) if self.parts == 1 => self.extent,
            DimensionFormat::Cyclic(size) => (index / size + 1).saturating_mul(size).min(self.extent),
        }
    }
}

/// The begin of share `which` where `count` things are divided into `shares`: the first shares have
/// one more.
pub fn balanced(count: u64, shares: u64, which: u64) -> u64 {
    (count / shares) * which + which.min(count % shares)
}

/// A distributed array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DistributedArray {
    dims: [DistributedDimension; DIMENSIONS],
    count: usize,
    element: u64,
    leading: u64,
}

impl DistributedArray {
    /// An array whose dimensions are known, with elements of `element` bytes and rows that are
    /// `leading` elements apart.
    ///
    /// # Errors
    /// There are no dimensions or too many; rows overlap; the array is larger than memory.
    pub fn of(dims: &[DistributedDimension], element: u64, leading: u64) -> Result<Self, String> {
        let Some(last) = dims.last().filter(|_| dims.len() <= DIMENSIONS) else {
            return Err(format!("an array has 1 to {DIMENSIONS} dimensions, not {}", dims.len()));
        };
        if element == 0 {
            return Err("elements of 0 bytes cannot be distributed".into());
        }
        if leading < last.extent {
            return Err(format!("rows of {} elements overlap: they are {leading} apart", last.extent));
        }
        let mut all = [DistributedDimension::NONE; DIMENSIONS];
        all[..dims.len()].copy_from_slice(dims);
        let made = Self { dims: all, count: dims.len(), element, leading };
        let parts = dims.iter().try_fold(1u64, |all, d| all.checked_mul(d.parts));
        if parts.is_none_or(|p| p > PARTS) {
            return Err(format!("a grid has at most {PARTS} parts"));
        }
        let rows = dims[..dims.len() - 1].iter().try_fold(1u64, |all, d| all.checked_mul(d.extent));
        let bytes = rows.and_then(|r| r.checked_mul(leading)).and_then(|e| e.checked_mul(element));
        match bytes.and_then(|b| i64::try_from(b).ok()) {
            Some(_) => Ok(made),
            None => Err("an array of more than 2^63 bytes cannot be distributed".into()),
        }
    }

    /// Distributes an array over `parts` parts, whose grid follows from the extents.
    ///
    /// # Errors
    /// Those of [`DistributedDimension::new`] and [`DistributedArray::of`]; fewer specs than
    /// extents.
    pub fn new(extents: &[u64], specs: &[DimensionFormat], element: u64, parts: u64) -> Result<Self, String> {
        let grid = grid(extents, specs, parts)?;
        let each = extents.iter().zip(specs).zip(&grid);
        let dims: Vec<DistributedDimension> = each
            .map(|((e, s), parts)| DistributedDimension::new(*e, *s, *parts, 1))
            .collect::<Result<_, _>>()?;
        Self::of(&dims, element, extents.last().copied().unwrap_or(0))
    }

    /// As [`DistributedArray::new`], with rows padded and block borders rounded so that no page of
    /// `page` bytes has elements of two parts. The array begins at a page border.
    ///
    /// # Errors
    /// As [`DistributedArray::new`]; chunks of a cyclic innermost dimension are no whole pages.
    pub fn padded(
        extents: &[u64],
        specs: &[DimensionFormat],
        element: u64,
        parts: u64,
        page: u64,
    ) -> Result<Self, String> {
        let plain = Self::new(extents, specs, element, parts)?;
        let Some(finest) = plain.dims().iter().rposition(|d| d.parts > 1) else { return Ok(plain) };
        let mut dims = plain.dims().to_vec();
        let innermost = plain.count - 1;
        let is_outermost = dims[..finest].iter().all(|d| d.extent == 1);
        let mut leading = plain.leading;
        if finest == innermost {
            let unit = page / common(page, element);
            if let DimensionFormat::Cyclic(size) = dims[finest].spec
                && size % unit != 0
            {
                return Err(format!(
                    "chunks of {size} elements of {element} bytes are no whole pages: use CYCLIC({}) or pad \
                     another dimension",
                    size.next_multiple_of(unit)
                ));
            }
            dims[finest].unit = unit;
            if plain.count > 1 {
                leading = leading.next_multiple_of(unit);
            }
        } else {
            let middle: u64 = dims[finest + 1..innermost].iter().map(|d| d.extent).product();
            let steps = match dims[finest].spec {
                DimensionFormat::Cyclic(size) if is_outermost => size,
                _ => 1,
            };
            // Greatest common divisors with a page need no more than the remainder.
            let inner = (middle % page) * (element % page) % page * (steps % page) % page;
            let padded = leading.next_multiple_of(page / common(page, inner));
            if dims[finest].spec == DimensionFormat::Block
                && is_outermost
                && padded > leading.saturating_mul(2)
            {
                // Rows are short: borders between pages cost less than padding.
                let row = (middle % page) * (leading % page) % page * (element % page) % page;
                dims[finest].unit = page / common(page, row);
            } else {
                leading = padded;
            }
        }
        Self::of(&dims, element, leading)
    }

    /// The dimensions, the outermost first.
    pub fn dims(&self) -> &[DistributedDimension] {
        &self.dims[..self.count]
    }

    /// Parts of the grid.
    pub fn parts(&self) -> u64 {
        self.dims().iter().map(|d| d.parts).product()
    }

    /// Elements from one innermost row to the next.
    pub const fn leading(&self) -> u64 {
        self.leading
    }

    /// Bytes of an element.
    pub const fn element(&self) -> u64 {
        self.element
    }

    /// Bytes of the array, with the padding of its rows.
    pub fn bytes(&self) -> u64 {
        self.stride(0) * self.dims[0].extent
    }

    /// Bytes of one index step.
    pub fn stride(&self, dim: usize) -> u64 {
        if dim + 1 >= self.count {
            return self.element;
        }
        let between = &self.dims[dim + 1..self.count - 1];
        between.iter().map(|d| d.extent).product::<u64>() * self.leading * self.element
    }

    /// The part that owns the element with these indices. Parts are numbered with the innermost
    /// dimension the fastest.
    pub fn owner(&self, indices: &[u64]) -> u64 {
        self.dims().iter().zip(indices).fold(0, |part, (d, index)| part * d.parts + d.owner(*index))
    }

    /// The coordinates of a part in the grid.
    pub fn coordinates(&self, part: u64) -> [u64; DIMENSIONS] {
        let (mut at, mut left) = ([0; DIMENSIONS], part);
        for (dim, d) in self.dims().iter().enumerate().rev() {
            at[dim] = left % d.parts;
            left /= d.parts;
        }
        at
    }

    /// The outermost distributed dimension; 0 if none is.
    pub fn first_distributed(&self) -> usize {
        self.dims().iter().position(|d| d.parts > 1).unwrap_or(0)
    }
}

/// `parts` as a grid over the distributed dimensions: the prime factors go, the largest first, to
/// the dimension that has the most indices a part. The outermost of equals wins.
fn grid(extents: &[u64], specs: &[DimensionFormat], parts: u64) -> Result<Vec<u64>, String> {
    if extents.len() != specs.len() || extents.is_empty() || extents.len() > DIMENSIONS {
        return Err(format!("an array has 1 to {DIMENSIONS} dimensions, not {}", extents.len()));
    }
    if parts == 0 || parts > PARTS {
        return Err(format!("an array cannot be distributed over {parts} parts: 1 to {PARTS} can"));
    }
    let mut grid = vec![1; extents.len()];
    let (mut left, mut primes) = (parts, Vec::new());
    let mut prime = 2;
    while left > 1 {
        while left % prime == 0 {
            primes.push(prime);
            left /= prime;
        }
        prime += 1;
    }
    for prime in primes.into_iter().rev() {
        let most = |dim: &usize| (extents[*dim] / grid[*dim], std::cmp::Reverse(*dim));
        let Some(dim) = (0..extents.len()).filter(|d| specs[*d] != DimensionFormat::Star).max_by_key(most)
        else {
            break;
        };
        grid[dim] *= prime;
    }
    Ok(grid)
}

/// The greatest common divisor; `a` where `b` is zero.
fn common(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
#[allow(missing_docs, reason = "other modules' tests use the strategies")]
pub mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Any way to distribute a dimension.
    pub fn any_spec() -> impl Strategy<Value = DimensionFormat> {
        prop_oneof![
            Just(DimensionFormat::Star),
            Just(DimensionFormat::Block),
            (1u64..9).prop_map(DimensionFormat::Cyclic)
        ]
    }

    /// Extents and specs of a small array.
    pub fn any_array() -> impl Strategy<Value = (Vec<u64>, Vec<DimensionFormat>)> {
        prop::collection::vec((1u64..14, any_spec()), 1..4).prop_map(|dims| dims.into_iter().unzip())
    }

    /// Every tuple of indices, in the order of memory.
    pub fn every_index(extents: &[u64]) -> Vec<Vec<u64>> {
        extents.iter().fold(vec![vec![]], |all, extent| {
            all.into_iter()
                .flat_map(|i| (0..*extent).map(move |n| i.iter().copied().chain([n]).collect()))
                .collect()
        })
    }

    #[test]
    fn blocks_are_those_of_schedule_static() {
        let dim = DistributedDimension::new(10, DimensionFormat::Block, 4, 1).unwrap();
        assert_eq!((0..=4).map(|p| dim.border(p)).collect::<Vec<_>>(), [0, 3, 6, 8, 10]);
        assert_eq!((0..10).map(|i| dim.owner(i)).collect::<Vec<_>>(), [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]);
        let few = DistributedDimension::new(2, DimensionFormat::Block, 4, 1).unwrap();
        assert_eq!((0..=4).map(|p| few.border(p)).collect::<Vec<_>>(), [0, 1, 2, 2, 2]);
        let paged = DistributedDimension::new(10, DimensionFormat::Block, 2, 4).unwrap();
        assert_eq!((0..=2).map(|p| paged.border(p)).collect::<Vec<_>>(), [0, 8, 10]);
    }

    #[test]
    fn a_grid_divides_the_longer_dimension_first() {
        let specs = [DimensionFormat::Block, DimensionFormat::Star, DimensionFormat::Cyclic(2)];
        assert_eq!(grid(&[100, 900, 1000], &specs, 12).unwrap(), [1, 1, 12]);
        assert_eq!(grid(&[1000, 900, 1000], &specs, 12).unwrap(), [3, 1, 4]);
        assert_eq!(grid(&[1000], &[DimensionFormat::Star], 4).unwrap(), [1], "nothing is distributed");
    }

    #[test]
    fn nonsense_is_refused_in_words() {
        let refused = |extents: &[u64], specs: &[DimensionFormat], element, parts| {
            DistributedArray::new(extents, specs, element, parts).unwrap_err()
        };
        assert!(refused(&[], &[], 8, 2).contains("1 to 7 dimensions"));
        assert!(refused(&[8], &[DimensionFormat::Cyclic(0)], 8, 2).contains("CYCLIC(0)"));
        assert!(refused(&[0], &[DimensionFormat::Block], 8, 2).contains("0 indices"));
        assert!(refused(&[8], &[DimensionFormat::Block], 0, 2).contains("0 bytes"));
        assert!(refused(&[8], &[DimensionFormat::Block], 8, 0).contains("0 parts"));
        assert!(refused(&[1 << 40, 1 << 30], &[DimensionFormat::Block; 2], 8, 2).contains("2^63 bytes"));
        assert!(refused(&[1 << 63], &[DimensionFormat::Block], 1, 2).contains("indices"));
        let small = DistributedArray::padded(
            &[8, 4096],
            &[DimensionFormat::Star, DimensionFormat::Cyclic(3)],
            8,
            2,
            4096,
        );
        assert!(small.unwrap_err().contains("use CYCLIC(512)"));
    }

    #[test]
    fn a_padded_matrix_has_columns_on_page_borders() {
        // The LU of the paper: columns of 1400 doubles, dealt in turn.
        let lu = DistributedArray::padded(
            &[1400, 1400],
            &[DimensionFormat::Cyclic(1), DimensionFormat::Star],
            8,
            4,
            4096,
        )
        .unwrap();
        assert_eq!(lu.leading(), 1536);
        // Chunks of 16 columns are whole pages with less.
        let wide = DistributedArray::padded(
            &[1400, 1400],
            &[DimensionFormat::Cyclic(16), DimensionFormat::Star],
            8,
            4,
            4096,
        )
        .unwrap();
        assert_eq!(wide.leading(), 1408);
        // Rows of 80 bytes are not padded to pages; borders move instead.
        let thin = DistributedArray::padded(
            &[100_000, 10],
            &[DimensionFormat::Block, DimensionFormat::Star],
            8,
            4,
            4096,
        )
        .unwrap();
        assert_eq!((thin.leading(), thin.dims()[0].unit()), (10, 256));
    }

    proptest! {
        #[test]
        fn the_owner_is_the_block_that_has_the_index(
            extent in 1u64..200, parts in 1u64..12, unit in 1u64..9, index in 0u64..200,
        ) {
            let index = index % extent;
            let dim = DistributedDimension::new(extent, DimensionFormat::Block, parts, unit).unwrap();
            let owner = dim.owner(index);
            prop_assert!(owner < parts);
            prop_assert!(dim.border(owner) <= index && index < dim.border(owner + 1));
            // Balance: two blocks differ by at most one unit, the last one may be cut off.
            let longest = (0..parts).map(|p| dim.border(p + 1) - dim.border(p)).max().unwrap();
            prop_assert!(longest <= (extent.div_ceil(unit) / parts + 1) * unit);
        }

        #[test]
        fn runs_of_one_owner_end_where_another_begins(
            extent in 1u64..200, parts in 1u64..12, spec in any_spec(), index in 0u64..200,
        ) {
            let index = index % extent;
            let parts = if spec == DimensionFormat::Star { 1 } else { parts };
            let dim = DistributedDimension::new(extent, spec, parts, 1).unwrap();
            let end = dim.same_owner_until(index);
            prop_assert!(index < end && end <= extent);
            prop_assert!((index..end).all(|i| dim.owner(i) == dim.owner(index)));
            prop_assert!(end == extent || dim.owner(end) != dim.owner(index));
        }

        #[test]
        fn every_part_has_its_coordinates((extents, specs) in any_array(), parts in 1u64..13) {
            let array = DistributedArray::new(&extents, &specs, 8, parts).unwrap();
            let distributed = specs.iter().any(|s| *s != DimensionFormat::Star);
            prop_assert_eq!(array.parts(), if distributed { parts } else { 1 });
            for indices in every_index(&extents) {
                let at = array.coordinates(array.owner(&indices));
                for (dim, d) in array.dims().iter().enumerate() {
                    prop_assert_eq!(at[dim], d.owner(indices[dim]));
                }
            }
        }
    }
}
