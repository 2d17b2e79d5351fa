//! Files and arrows between them: circles and floors.

use std::collections::{BTreeMap, BTreeSet};

/// Which file uses which.
pub struct Graph {
    arrows: BTreeMap<String, BTreeSet<String>>,
    /// Files that use each other, and single files; what a group uses comes before it.
    groups: Vec<Vec<String>>,
}

impl Graph {
    /// A graph of `files`. Arrows from a file to itself do not count.
    pub fn new(files: BTreeSet<String>, arrows: BTreeSet<(String, String)>) -> Self {
        let mut all: BTreeMap<String, BTreeSet<String>> =
            files.into_iter().map(|file| (file, BTreeSet::new())).collect();
        for (from, to) in arrows {
            if from != to && all.contains_key(&to) {
                all.entry(from).or_default().insert(to);
            }
        }
        let groups = Search::groups(&all);
        Self { arrows: all, groups }
    }

    /// The files that `file` uses.
    pub fn uses(&self, file: &str) -> impl Iterator<Item = &str> {
        self.arrows.get(file).into_iter().flatten().map(String::as_str)
    }

    /// Number of arrows.
    pub fn arrows(&self) -> usize {
        self.arrows.values().map(BTreeSet::len).sum()
    }

    /// The circles, each with its files in order.
    pub fn circles(&self) -> Vec<&[String]> {
        self.groups.iter().map(Vec::as_slice).filter(|group| group.len() > 1).collect()
    }

    /// The files of each floor, from the ground up.
    pub fn floors(&self) -> Vec<Vec<&String>> {
        let mut floor_of: BTreeMap<&str, usize> = BTreeMap::new();
        let mut floors: Vec<Vec<&String>> = Vec::new();
        for group in &self.groups {
            let below = group.iter().flat_map(|file| self.uses(file)).filter_map(|file| floor_of.get(file));
            let floor = below.max().map_or(0, |floor| floor + 1);
            if floors.len() <= floor {
                floors.resize_with(floor + 1, Vec::new);
            }
            floors[floor].extend(group);
            floor_of.extend(group.iter().map(|file| (file.as_str(), floor)));
        }
        floors.iter_mut().for_each(|floor| floor.sort());
        floors
    }
}

/// Tarjan's search for strongly connected components.
struct Search<'a> {
    arrows: &'a BTreeMap<String, BTreeSet<String>>,
    /// By file: the order of its first visit, and the earliest file that it reaches.
    seen: BTreeMap<&'a str, (usize, usize)>,
    open: Vec<&'a str>,
    groups: Vec<Vec<String>>,
}

impl<'a> Search<'a> {
    fn groups(arrows: &'a BTreeMap<String, BTreeSet<String>>) -> Vec<Vec<String>> {
        let mut search = Self { arrows, seen: BTreeMap::new(), open: Vec::new(), groups: Vec::new() };
        for file in arrows.keys() {
            if !search.seen.contains_key(file.as_str()) {
                search.visit(file);
            }
        }
        search.groups
    }

    /// Visits a file and returns the earliest file that it reaches.
    fn visit(&mut self, file: &'a str) -> usize {
        let number = self.seen.len();
        self.seen.insert(file, (number, number));
        self.open.push(file);
        let mut earliest = number;
        for used in self.arrows.get(file).into_iter().flatten() {
            let reaches = match self.seen.get(used.as_str()) {
                None => self.visit(used),
                Some((first, _)) if self.open.contains(&used.as_str()) => *first,
                Some(_) => continue,
            };
            earliest = earliest.min(reaches);
        }
        self.seen.insert(file, (number, earliest));
        if earliest == number {
            let at = self.open.iter().position(|open| *open == file).unwrap_or_default();
            let mut group: Vec<String> = self.open.drain(at..).map(str::to_owned).collect();
            group.sort();
            self.groups.push(group);
        }
        earliest
    }
}
