//! Pseudo-random numbers for campaigns: the same seed gives the same campaign.

/// A small generator. Not for anything that must be hard to guess.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = Self(seed);
        // Seeds that are near to each other begin alike.
        for _ in 0..4 {
            random.next();
        }
        random
    }

    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// A number from 0, below `limit`, which must not be 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// True once in `times`.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of `choices`; the first when there is no other.
    pub fn pick<T: Copy>(&mut self, first: T, others: &[T]) -> T {
        let index = usize::try_from(self.below(others.len() as u64 + 1)).unwrap_or_default();
        index.checked_sub(1).and_then(|index| others.get(index)).copied().unwrap_or(first)
    }

    /// One of `items`.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub fn one<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let index = usize::try_from(self.below(items.len() as u64)).unwrap_or_default();
        items.get(index).expect("there is something to choose from")
    }

    /// A generator of its own, so that what is drawn from it does not change what is drawn here.
    #[must_use]
    pub fn split(&mut self) -> Self {
        let (high, low) = (self.next(), self.next());
        Self::new(high << 31 ^ low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_and_another_seed_others() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            [0; 8].map(|_: u64| random.below(1000))
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        assert!(draw(7).iter().all(|number| *number < 1000));
    }

    #[test]
    fn every_choice_is_picked() {
        let mut random = Random::new(1);
        let picked: std::collections::BTreeSet<u8> =
            (0..100).map(|_| random.pick(1, &[2, 3])).collect();
        assert_eq!(picked.into_iter().collect::<Vec<_>>(), [1, 2, 3]);
    }
}
