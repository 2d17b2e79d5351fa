//! Records: the packets from the end of one record to the end of the next.
//!
//! A stretch of the buffer begins and ends with a record. If it does not (the buffer was full, or
//! bytes are damaged), this module looks for the next record. It starts one byte behind the start
//! of the invalid record and tries byte by byte, until a record begins that has everything a
//! processor says of an access. (Bytes of an address can look like a packet, or like the end of a
//! record. They hardly look like all of these packets, each once.) A record is invalid if
//!
//! - one of its bytes is no packet's first;
//! - it says something twice: it is then two records whose border was lost;
//! - it does not end before the bytes do, or is longer than records are.
//!
//! Each such place counts as one lost record. The true number is unknown.

use super::packet::{self, Packet};

/// What a processor says of one operation, as it says it. What it does not say is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpeRecord {
    /// The instruction's address, with its state in the upper bits.
    pub instruction: Option<u64>,
    /// The data's address, with its tag.
    pub data: Option<u64>,
    /// The data's physical address, which plain users do not get.
    pub physical: Option<u64>,
    /// Class and subclass.
    pub operation: Option<(u8, u8)>,
    /// What happened, one bit each.
    pub events: Option<u64>,
    /// Where the data came from.
    pub source: Option<u64>,
    /// Cycles from its issue to its completion.
    pub latency: Option<u16>,
    /// Cycles until it was issued.
    pub issue: Option<u16>,
    /// Cycles that the translation took.
    pub translation: Option<u16>,
    /// `CONTEXTIDR` of exception levels 1 and 2.
    pub contexts: [Option<u32>; 2],
    /// A branch's target, and that of the branch before.
    pub targets: [Option<u64>; 2],
    /// What the counter said.
    pub timestamp: Option<u64>,
}

impl SpeRecord {
    /// Takes in what a packet says; `false`: it was said before.
    fn add(&mut self, packet: Packet) -> bool {
        match packet {
            Packet::Events(v) => put(&mut self.events, v),
            Packet::DataSource(v) => put(&mut self.source, v),
            Packet::Operation { class, subclass } => put(&mut self.operation, (class, subclass)),
            Packet::Context { level: level @ 1..=2, id } => {
                put(&mut self.contexts[usize::from(level) - 1], id)
            }
            Packet::Address { index: 0, payload } => put(&mut self.instruction, payload),
            Packet::Address { index: 1, payload } => put(&mut self.targets[0], payload),
            Packet::Address { index: 2, payload } => put(&mut self.data, payload),
            Packet::Address { index: 3, payload } => put(&mut self.physical, payload),
            Packet::Address { index: 4, payload } => put(&mut self.targets[1], payload),
            Packet::Counter { index: 0, cycles } => put(&mut self.latency, cycles),
            Packet::Counter { index: 1, cycles } => put(&mut self.issue, cycles),
            Packet::Counter { index: 2, cycles } => put(&mut self.translation, cycles),
            // What later versions say besides.
            _ => true,
        }
    }

    /// Whether it says all that a processor says of an access.
    const fn is_full(&self) -> bool {
        matches!(self.operation, Some((1, _)))
            && self.instruction.is_some()
            && self.data.is_some()
            && self.events.is_some()
            && self.latency.is_some()
    }
}

fn put<T>(place: &mut Option<T>, value: T) -> bool {
    place.replace(value).is_none()
}

/// No record is longer on processors that Linux supports (`PMSIDR_EL1.MaxSize`,
/// drivers/perf/arm_spe_pmu.c).
const LONGEST: usize = 2048;

/// Makes records of bytes, and counts what cannot be made any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decoder {
    records: u64,
    lost: u64,
    skipped: u64,
}

impl Decoder {
    /// Tells the records of one stretch, whose first byte is at offset `at` of the buffer.
    pub fn decode(&mut self, bytes: &[u8], at: u64, mut tell: impl FnMut(&SpeRecord)) {
        let mut place = 0;
        let mut doubtful = false;
        while place < bytes.len() {
            let rest = &bytes[place..];
            if let Some(padding) = padding(rest, at.wrapping_add(place as u64), doubtful) {
                place += padding;
                continue;
            }
            match one(rest, at.wrapping_add(place as u64)) {
                Some((record, length)) if !doubtful || record.is_full() => {
                    doubtful = false;
                    place += length;
                    self.records += 1;
                    tell(&record);
                }
                _ => {
                    self.lost += u64::from(!doubtful);
                    doubtful = true;
                    self.skipped += 1;
                    place += 1;
                }
            }
        }
    }

    /// Records that were told.
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// Records that were not, as far as their number can be known.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Bytes that were passed over in search of the next record.
    pub const fn skipped(&self) -> u64 {
        self.skipped
    }
}

/// How much there is between two records: padding, and an end without a record. Where it is
/// doubtful what the bytes are, no byte says how many to skip.
fn padding(bytes: &[u8], at: u64, doubtful: bool) -> Option<usize> {
    match packet::read(bytes, at) {
        Ok((Packet::Padding, length)) if length == 1 || !doubtful => Some(length),
        Ok((Packet::End, length)) if !doubtful => Some(length),
        _ => None,
    }
}

/// The record that begins here, and its length; `None`: it makes no sense.
fn one(bytes: &[u8], at: u64) -> Option<(SpeRecord, usize)> {
    let mut record = SpeRecord::default();
    let mut place = 0;
    while place < LONGEST {
        // A third of most records.
        if *bytes.get(place)? == 0 {
            place += 1;
            continue;
        }
        let (packet, length) = packet::read(bytes.get(place..)?, at.wrapping_add(place as u64)).ok()?;
        place += length;
        match packet {
            Packet::Padding => {}
            Packet::End => return Some((record, place)),
            Packet::Timestamp(t) => {
                record.timestamp = Some(t);
                return Some((record, place));
            }
            other => record.add(other).then_some(())?,
        }
    }
    None
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bytes of a text of hexadecimal numbers; what is in brackets is a comment.
    pub fn bytes(text: &str) -> Vec<u8> {
        let plain = text.split('(').map(|t| t.split_once(')').map_or(t, |(_, after)| after));
        plain.flat_map(str::split_whitespace).map(|b| u8::from_str_radix(b, 16).unwrap()).collect()
    }

    pub fn decoded(bytes: &[u8]) -> (Vec<SpeRecord>, Decoder) {
        let (mut decoder, mut told) = (Decoder::default(), Vec::new());
        decoder.decode(bytes, 0, |r| told.push(*r));
        (told, decoder)
    }

    /// A load of an Ampere Altra (Neoverse N1), as a report of `perf report --dump-raw-trace` shows
    /// its bytes (github.com/AmpereComputing/ampere-lts-kernel---DEPRECATED, issue 123, 2021); the
    /// instruction's address, which is above what is shown there, is that of the record after it.
    pub const ALTRA: &str =
        "b0 88 b6 cb 8f 22 d4 ff c0 (pc) 00 00 00 00 00 00 00 00 00 00 49 00 (load) 52 1e 03 (events)
        99 51 01 (issue) 98 f5 01 (total) b2 50 9e d7 f1 3e 40 ff 00 (data) 9a 01 00 (translation)
        b3 50 9e d7 71 3f 40 00 80 (physical) 43 0c (source) 00 00 71 b3 9a e9 bd 3e 07 00 00 (time)";

    /// The first two records of a guest's trace, a load and an operation that is no access, as a
    /// series of patches for KVM's guests shows them (Haibo Xu, *Add vSPE support to KVM guest*,
    /// qemu-devel, 8 September 2020).
    const GUEST: &str =
        "b0 f4 d3 29 10 00 80 ff a0 99 0b 00 98 0d 00 52 16 00 49 00 b2 d0 40 d8 70 00 00 ff 00 9a 01 00
        00 00 00 71 a5 1f b3 20 14 00 00 00 b0 7c f9 29 10 00 80 ff a0 99 02 00 98 03 00 52 02 00 48 00
        00 00 00 71 ef 1f b3 20 14 00 00 00";

    /// A load with the operation first and no instruction before it, and events of one byte, as the
    /// patch that brought SPE to perf shows it (Kim Phillips, Linux ffd3d18c20b8, 2018).
    const FIRST: &str = "49 00 b2 c0 3b 29 0f 00 00 ff ff b3 c0 eb 24 fb 00 00 00 80 9a 00 00 42 16 b0 00 c4 15 08 00 00 ff ff
        98 00 00 71 36 6c 21 2c 09 00 00 00";

    /// A load and a conditional branch with contexts, as the test of google/perf_data_converter
    /// (src/quipper/arm_spe_decoder_test.cc) has them.
    pub const CONTEXTS: &str = "b0 d0 c2 a1 ed 66 ba ff c0 00 00 00 00 00 65 80 5f 00 00 49 00 52 16 00 99 04 00 98 0c 00
        b2 28 6b 09 03 37 0e ff 00 9a 01 00 00 00 00 00 00 00 00 00 00 43 00 00 00 71 2e 65 2f 6a 0a 00 00 00
        b0 e0 b0 ef ed 66 ba ff c0 00 00 00 00 00 65 0e 00 00 00 4a 01 52 42 00 99 10 00 98 11 00
        b1 e4 b0 ef ed 66 ba ff c0 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 71 8d 65 2f 6a 0a 00 00 00";

    #[test]
    fn a_load_of_an_altra_is_read() {
        let (told, decoder) = decoded(&bytes(ALTRA));
        let want = SpeRecord {
            instruction: Some(0xc0ff_d422_8fcb_b688),
            data: Some(0x00ff_403e_f1d7_9e50),
            physical: Some(0x8000_403f_71d7_9e50),
            operation: Some((1, 0)),
            events: Some(0x31e),
            source: Some(12),
            latency: Some(501),
            issue: Some(337),
            translation: Some(1),
            timestamp: Some(7_966_055_570_099),
            ..SpeRecord::default()
        };
        assert_eq!((told.as_slice(), decoder.lost(), decoder.skipped()), ([want].as_slice(), 0, 0));
    }

    #[test]
    fn recorded_streams_are_read_whole() {
        let (told, decoder) = decoded(&bytes(GUEST));
        let times: Vec<_> = told.iter().map(|r| (r.operation, r.timestamp, r.latency)).collect();
        let load = (Some((1, 0)), Some(86_447_955_877), Some(13));
        assert_eq!(times, [load, (Some((0, 0)), Some(86_447_955_951), Some(3))]);
        assert_eq!((decoder.records(), decoder.lost()), (2, 0));

        let (told, _) = decoded(&bytes(FIRST));
        assert_eq!((told.len(), told[0].events, told[0].data), (1, Some(0x16), Some(0xffff_0000_0f29_3bc0)));
        assert_eq!((told[0].timestamp, told[0].latency), (Some(39_395_093_558), Some(0)));

        let (told, _) = decoded(&bytes(CONTEXTS));
        assert_eq!((told[0].contexts, told[0].source), ([None, Some(0x5f80)], Some(0)));
        assert_eq!((told[1].contexts, told[1].operation), ([None, Some(0xe)], Some((2, 1))));
        assert_eq!((told.len(), told[1].targets[0]), (2, Some(0xc0ff_ba66_edef_b0e4)));
    }

    #[test]
    fn a_record_may_end_without_a_timestamp_and_be_followed_by_an_alignment() {
        let text = "49 01 b2 00 10 00 00 00 00 00 00 01 25 00";
        let stream = [bytes(text), vec![0xaa; 64 - 14], bytes("4a 00 01")].concat();
        let (told, decoder) = decoded(&stream);
        let operations: Vec<_> = told.iter().map(|r| r.operation).collect();
        assert_eq!((operations, told[0].timestamp), (vec![Some((1, 1)), Some((2, 0))], None));
        assert_eq!((decoder.lost(), decoder.skipped()), (0, 0));
    }

    #[test]
    fn what_later_versions_say_besides_does_no_harm() {
        let text = "49 00 b2 00 10 00 00 00 00 00 00 21 b0 1 2 3 4 5 6 7 8 9b 01 00 b5 1 2 3 4 5 6 7 8 66 1 2 3 4 4b 1 01";
        let (told, decoder) = decoded(&bytes(text.split(" 4b").next().unwrap()));
        assert_eq!((told.len(), decoder.lost()), (0, 1), "without its end");
        let (told, decoder) = decoded(&bytes(&text.replace(" 4b 1", "")));
        assert_eq!((told.len(), decoder.lost(), told[0].data), (1, 0, Some(0x1000)));
        let (told, decoder) = decoded(&bytes(text));
        assert_eq!((told.len(), decoder.lost()), (0, 1), "two operations in one record");
    }

    #[test]
    fn a_record_that_is_cut_off_is_lost_and_no_other() {
        let (one, two) = (bytes(ALTRA), bytes(FIRST));
        for cut in 1..two.len() {
            let (told, decoder) = decoded(&[&one[..], &two[..cut]].concat());
            assert_eq!((told.len(), decoder.lost()), (1, 1), "cut at {cut}");
        }
        // Cut off at its front it may look like a packet that goes on into the next, never into the
        // one after that.
        for cut in 1..one.len() {
            let (told, _) = decoded(&[&one[cut..], &two[..], &one[..]].concat());
            assert_eq!(told.last(), decoded(&one).0.last(), "cut at {cut}");
        }
    }

    #[test]
    fn damage_costs_its_record_and_the_next_is_believed_again() {
        let load = bytes(ALTRA);
        let mut damaged = load.clone();
        // The operation's header.
        damaged[19] = 0xff;
        let (told, decoder) = decoded(&[&load[..], &damaged, &load, &load].concat());
        assert_eq!((told.len(), decoder.lost()), (3, 1));
        // What looks like an end of a record among damaged bytes, and then half a record.
        let half = &load[load.len() - 25..];
        let (told, decoder) = decoded(&[&[0xff, 0xff, 0x01], half, &load[..]].concat());
        assert_eq!((told.len(), decoder.lost(), decoder.skipped() > 2), (1, 1, true));
        assert_eq!(told[0].instruction, Some(0xc0ff_d422_8fcb_b688));
    }

    /// Bytes that are no alignment, which would skip what its header says.
    const PLAIN: u64 = !0x2020_2020_2020_2020;

    /// A whole record of an access.
    fn packets() -> impl Strategy<Value = Vec<u8>> {
        (any::<[u64; 3]>(), any::<[u16; 3]>(), any::<u8>(), 0_u8..5).prop_map(
            |(long, counters, store, size)| {
                let (long, counters) = (long.map(|v| v & PLAIN), counters.map(|v| v & PLAIN as u16));
                let mut one = vec![0xb0];
                one.extend(long[0].to_le_bytes());
                one.extend([0x49, store & 1, 0x52]);
                one.extend(counters[0].to_le_bytes());
                for (index, value) in (0x98..).zip(counters) {
                    one.push(index);
                    one.extend(value.to_le_bytes());
                }
                one.push(0xb2);
                one.extend(long[1].to_le_bytes());
                one.extend(vec![0; usize::from(size)]);
                one.push(0x71);
                one.extend(long[2].to_le_bytes());
                one
            },
        )
    }

    proptest! {
        #[test]
        fn any_bytes_end_and_are_accounted_for(bytes in proptest::collection::vec(any::<u8>(), 0..4096), at: u64) {
            let mut decoder = Decoder::default();
            let mut told = 0;
            decoder.decode(&bytes, at, |_| told += 1);
            prop_assert_eq!(told, decoder.records());
            // A record has at least a timestamp, or a packet and an end.
            prop_assert!(decoder.records() * 3 + decoder.skipped() <= bytes.len() as u64);
            prop_assert!(decoder.lost() <= decoder.skipped());
        }

        #[test]
        fn whole_records_are_all_told(records in proptest::collection::vec(packets(), 0..50)) {
            let (told, decoder) = decoded(&records.concat());
            prop_assert_eq!((told.len(), decoder.lost(), decoder.skipped()), (records.len(), 0, 0));
            for (record, bytes) in told.iter().zip(&records) {
                prop_assert_eq!(&decoded(bytes).0[..], &[*record][..]);
            }
        }

        /// Damage reaches as far as the longest packet that it can look like, and records are found
        /// again behind that.
        #[test]
        fn records_before_and_after_damage_are_told(
            before in proptest::collection::vec(packets(), 0..8),
            damage in proptest::collection::vec(any::<u8>().prop_map(|b| b & PLAIN as u8), 1..100),
            after in proptest::collection::vec(packets(), 2..10),
        ) {
            let (told, _) = decoded(&[before.concat(), damage, after.concat()].concat());
            let whole = |records: &[Vec<u8>]| decoded(&records.concat()).0;
            prop_assert!(told.starts_with(&whole(&before)));
            prop_assert!(told.ends_with(&whole(&after[2..])));
        }
    }
}
