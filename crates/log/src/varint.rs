//! LEB128 and zigzag, into and out of byte slices, without panics.

/// Bytes a 64-bit number takes at most.
pub const MAX: usize = 10;

/// Writes `v` at `out[at..]`; the caller keeps [`MAX`] bytes free. Returns the new position.
#[inline]
pub fn put(out: &mut [u8], mut at: usize, mut v: u64) -> usize {
    loop {
        let Some(b) = out.get_mut(at) else { return at };
        at += 1;
        if v < 0x80 {
            *b = v as u8;
            return at;
        }
        *b = v as u8 | 0x80;
        v >>= 7;
    }
}

/// [`put`] for numbers that mostly take one byte or two in no foreseeable order: no branch between
/// these.
#[inline]
pub fn put_short(out: &mut [u8], at: usize, v: u64) -> usize {
    match out.get_mut(at..at + 2) {
        Some(two) if v < 1 << 14 => {
            let long = u8::from(v >= 0x80);
            two.copy_from_slice(&[v as u8 & 0x7f | long << 7, (v >> 7) as u8]);
            at + 1 + usize::from(long)
        }
        _ => put(out, at, v),
    }
}

/// [`put_short`] for each of `numbers`; most are small. The caller keeps [`MAX`] bytes free for
/// each.
pub fn put_many(out: &mut [u8], mut at: usize, numbers: &[u64]) -> usize {
    let (eights, rest) = numbers.as_chunks::<8>();
    for eight in eights {
        let all = eight.iter().fold(0, |all, v| all | v);
        match out.get_mut(at..at + 16) {
            Some(free) if all < 0x80 => {
                free[..8].copy_from_slice(&eight.map(|v| v as u8));
                at += 8;
            }
            Some(free) if all < 1 << 14 => {
                let mut n = 0;
                for v in eight {
                    let long = u8::from(*v >= 0x80);
                    free[n % 16] = *v as u8 & 0x7f | long << 7;
                    free[(n + 1) % 16] = (v >> 7) as u8;
                    n += 1 + usize::from(long);
                }
                at += n;
            }
            _ => at = eight.iter().fold(at, |at, v| put_short(out, at, *v)),
        }
    }
    rest.iter().fold(at, |at, v| put_short(out, at, *v))
}

/// Reads a number at `bytes[*at..]`; `None` if it ends early or is longer than 64 bits.
#[inline]
pub fn get(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let first = *bytes.get(*at)?;
    *at += 1;
    if first < 0x80 {
        return Some(u64::from(first));
    }
    get_long(bytes, at, first)
}

fn get_long(bytes: &[u8], at: &mut usize, first: u8) -> Option<u64> {
    let mut v = u64::from(first & 0x7f);
    for shift in (7..64).step_by(7) {
        let b = *bytes.get(*at)?;
        *at += 1;
        v |= u64::from(b & 0x7f) << shift;
        if b < 0x80 {
            return Some(v);
        }
    }
    None
}

/// Small magnitudes, either sign, to small numbers.
#[inline]
pub const fn zigzag(v: i64) -> u64 {
    ((v << 1) ^ (v >> 63)) as u64
}

/// Inverse of [`zigzag`].
#[inline]
pub const fn unzigzag(v: u64) -> i64 {
    (v >> 1) as i64 ^ -((v & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_survive(v: u64, s: i64) {
            let mut b = [0; MAX];
            let n = put(&mut b, 0, v);
            let mut at = 0;
            prop_assert_eq!(get(&b[..n], &mut at), Some(v));
            prop_assert_eq!(at, n);
            prop_assert_eq!(unzigzag(zigzag(s)), s);
            for v in [v, v % (1 << 15)] {
                let (mut a, mut b) = ([0; MAX], [0; MAX]);
                let (n, m) = (put(&mut a, 0, v), put_short(&mut b, 0, v));
                prop_assert_eq!(&a[..n], &b[..m]);
            }
        }

        #[test]
        fn many_numbers_are_one_after_the_other(v: Vec<u64>, small: Vec<u16>, bits in 0..16u32) {
            let small: Vec<u64> = small.iter().map(|v| u64::from(v >> bits)).collect();
            for v in [v, small] {
                let (mut a, mut b) = (vec![0; v.len() * MAX], vec![0; v.len() * MAX]);
                let n = v.iter().fold(0, |at, v| put(&mut a, at, *v));
                let m = put_many(&mut b, 0, &v);
                prop_assert_eq!(&a[..n], &b[..m]);
            }
        }
    }

    #[test]
    fn endless_and_cut_numbers_are_refused() {
        assert_eq!(get(&[0xff; 20], &mut 0), None);
        assert_eq!(get(&[0x80], &mut 0), None);
    }
}
