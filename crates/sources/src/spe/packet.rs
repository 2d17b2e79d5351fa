//! One packet, little-endian: a header of one or two bytes, and a payload. Two bits of the header
//! give the payload's size.
//!
//! | header | packet | payload, bytes |
//! |---|---|---|
//! | `0000_0000` | padding | 0 |
//! | `0000_0001` | end of a record without a timestamp | 0 |
//! | `0111_0001` | timestamp: end of a record | 8 |
//! | `01ss_0010` | events | 1, 2, 4 or 8 |
//! | `01ss_0011` | data source | 1, 2, 4 or 8 |
//! | `0110_01ii` | context of exception level i + 1 | 4 |
//! | `0100_10cc` | operation of class c | 1 |
//! | `1011_0iii` | address i | 8 |
//! | `1001_1iii` | counter i | 2 |
//! | `0010_00ii` and then an address's or a counter's | the same with index i from 8 on | as those |
//! | `0010_aaaa`, `0000_0000` | padding to a multiple of 2^(a + 1) bytes | up to there |

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// Nothing.
    Padding,
    /// A record ends.
    End,
    /// A record ends; what the counter said when the operation was picked.
    Timestamp(u64),
    /// What happened to the operation, one bit each.
    Events(u64),
    /// Where the data came from: what it means is the processor's own.
    DataSource(u64),
    /// `CONTEXTIDR` of an exception level; Linux writes the process's number there, where it is
    /// built to.
    Context {
        /// The exception level.
        level: u8,
        /// The register.
        id: u32,
    },
    /// What kind of operation it is.
    Operation {
        /// 0: another one; 1: load, store or atomic; 2: branch; 3 is reserved.
        class: u8,
        /// More of it.
        subclass: u8,
    },
    /// An address.
    Address {
        /// 0: the instruction's; 1: a branch's target; 2: the data's, virtual; 3: the data's,
        /// physical; 4: the target of the branch before.
        index: u8,
        /// With a tag or a state above bit 55.
        payload: u64,
    },
    /// Cycles.
    Counter {
        /// 0: from issue to completion, all in all; 1: until it was issued; 2: for the translation
        /// of the address.
        index: u8,
        /// How many; the largest number stands for more, too.
        cycles: u16,
    },
}

/// Why there is no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bad {
    /// It goes on behind the last byte.
    Short,
    /// No packet begins like that.
    Unknown,
}

/// The largest alignment that is believed, as in the header: 2 KiB, for no record of a processor
/// that Linux supports is longer.
const ALIGNMENT: u8 = 10;

/// The packet that `bytes` begin with, and its length, at least 1. The first of the bytes is at
/// offset `at` of the buffer, which begins at a multiple of any alignment.
///
/// # Errors
/// No whole packet, or none at all.
pub fn read(bytes: &[u8], at: u64) -> Result<(Packet, usize), Bad> {
    let (header, rest) = bytes.split_first().ok_or(Bad::Short)?;
    match header {
        0x00 => Ok((Packet::Padding, 1)),
        0x01 => Ok((Packet::End, 1)),
        0x20..=0x2f => extended(*header, rest, at),
        _ => short(*header, 0, rest),
    }
}

fn extended(first: u8, rest: &[u8], at: u64) -> Result<(Packet, usize), Bad> {
    let (second, rest) = rest.split_first().ok_or(Bad::Short)?;
    if *second == 0 && first & 0xf <= ALIGNMENT {
        let unit = 2_u64 << (first & 0xf);
        let length = (unit - at % unit) as usize;
        // All that is skipped is padding: no matter if the bytes end before.
        return Ok((Packet::Padding, length.min(2 + rest.len())));
    }
    let indexed = matches!(second >> 3, 0b1_0110 | 0b1_0011);
    if first & 0xc != 0 || !indexed {
        return Err(Bad::Unknown);
    }
    let (packet, length) = short(*second, (first & 3) << 3, rest)?;
    Ok((packet, length + 1))
}

/// A packet whose last header byte is this; `more` are the index's upper bits.
fn short(header: u8, more: u8, rest: &[u8]) -> Result<(Packet, usize), Bad> {
    let index = more | header & 7;
    let packet: fn(u8, u8, u64) -> Packet = match header {
        0x71 => |_, _, v| Packet::Timestamp(v),
        h if h & 0xcf == 0x42 => |_, _, v| Packet::Events(v),
        h if h & 0xcf == 0x43 => |_, _, v| Packet::DataSource(v),
        h if h & 0xfc == 0x64 => |h, _, v| Packet::Context { level: (h & 3) + 1, id: v as u32 },
        h if h & 0xfc == 0x48 => |h, _, v| Packet::Operation { class: h & 3, subclass: v as u8 },
        h if h & 0xf8 == 0xb0 => |_, index, v| Packet::Address { index, payload: v },
        h if h & 0xf8 == 0x98 => |_, index, v| Packet::Counter { index, cycles: v as u16 },
        _ => return Err(Bad::Unknown),
    };
    let size = 1 << (header >> 4 & 3);
    let payload = rest.get(..size).ok_or(Bad::Short)?;
    let mut value = [0; 8];
    value[..size].copy_from_slice(payload);
    Ok((packet(header, index, u64::from_le_bytes(value)), 1 + size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_kind_is_read_with_its_length() {
        let address = |index, payload| Packet::Address { index, payload };
        let cases: [(&[u8], Packet); 24] = [
            (&[0], Packet::Padding),
            (&[1], Packet::End),
            (&[0x71, 8, 7, 6, 5, 4, 3, 2, 1], Packet::Timestamp(0x0102_0304_0506_0708)),
            (&[0x42, 0x16], Packet::Events(0x16)),
            (&[0x52, 0x1e, 0x03], Packet::Events(0x31e)),
            (&[0x62, 1, 2, 3, 4], Packet::Events(0x0403_0201)),
            (&[0x72, 1, 0, 0, 0, 0, 0, 0, 0x80], Packet::Events(0x8000_0000_0000_0001)),
            (&[0x43, 0x0c], Packet::DataSource(0xc)),
            (&[0x53, 0x0c, 0x01], Packet::DataSource(0x10c)),
            (&[0x64, 1, 2, 0, 0], Packet::Context { level: 1, id: 0x201 }),
            (&[0x65, 0x80, 0x5f, 0, 0], Packet::Context { level: 2, id: 0x5f80 }),
            (&[0x48, 1], Packet::Operation { class: 0, subclass: 1 }),
            (&[0x49, 0x17], Packet::Operation { class: 1, subclass: 0x17 }),
            (&[0x4a, 2], Packet::Operation { class: 2, subclass: 2 }),
            (&[0x4b, 0], Packet::Operation { class: 3, subclass: 0 }),
            (&[0xb0, 1, 0, 0, 0, 0, 0, 0, 0xc0], address(0, 0xc000_0000_0000_0001)),
            (&[0xb4, 1, 0, 0, 0, 0, 0, 0, 0], address(4, 1)),
            (&[0x21, 0xb2, 1, 0, 0, 0, 0, 0, 0, 0], address(10, 1)),
            (&[0x98, 0xf5, 1], Packet::Counter { index: 0, cycles: 501 }),
            (&[0x9a, 1, 0], Packet::Counter { index: 2, cycles: 1 }),
            (&[0x23, 0x9f, 0xff, 0xff], Packet::Counter { index: 31, cycles: 0xffff }),
            (&[0x20, 0x98, 7, 0], Packet::Counter { index: 0, cycles: 7 }),
            (&[0x20, 0], Packet::Padding),
            (&[0x21, 0, 0, 0], Packet::Padding),
        ];
        for (bytes, packet) in cases {
            assert_eq!(read(bytes, 0), Ok((packet, bytes.len())), "{bytes:02x?}");
            let mut longer = bytes.to_vec();
            longer.extend([0xff; 20]);
            assert_eq!(read(&longer, 0), Ok((packet, bytes.len())), "{bytes:02x?} and more");
            if packet != Packet::Padding {
                for cut in 0..bytes.len() {
                    assert_eq!(read(&bytes[..cut], 0), Err(Bad::Short), "{bytes:02x?} cut at {cut}");
                }
            }
        }
    }

    #[test]
    fn alignment_goes_to_the_next_multiple_in_the_buffer() {
        let bytes = [[0x25, 0].as_slice(), &[0xff; 100]].concat();
        for (at, length) in [(0, 64), (1, 63), (62, 2), (63, 1), (64, 64), (1 << 40 | 10, 54)] {
            assert_eq!(read(&bytes, at), Ok((Packet::Padding, length)), "at {at}");
        }
        assert_eq!(read(&bytes[..20], 0), Ok((Packet::Padding, 20)), "as far as there are bytes");
        assert_eq!(read(&[0x2a, 0], 0), Ok((Packet::Padding, 2)));
        assert_eq!(read(&[0x2b, 0], 0), Err(Bad::Unknown), "larger than any record");
    }

    #[test]
    fn what_no_packet_begins_with_is_refused() {
        for header in
            [0x02, 0x1f, 0x30, 0x40, 0x41, 0x44, 0x4c, 0x70, 0x74, 0x80, 0x97, 0xa0, 0xb8, 0xc0, 0xff]
        {
            assert_eq!(read(&[header, 0, 0, 0, 0, 0, 0, 0, 0], 0), Err(Bad::Unknown), "{header:#x}");
        }
        for second in [0x01, 0x71, 0x42, 0x49, 0x65, 0x20] {
            assert_eq!(read(&[0x20, second, 0, 0, 0], 0), Err(Bad::Unknown), "{second:#x}");
        }
        assert_eq!(read(&[0x24, 0xb0, 0, 0, 0, 0, 0, 0, 0, 0], 0), Err(Bad::Unknown));
    }

    proptest! {
        #[test]
        fn a_packet_is_never_longer_than_its_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..64), at: u64) {
            if let Ok((_, length)) = read(&bytes, at) {
                prop_assert!(length >= 1 && length <= bytes.len());
            }
        }
    }
}
