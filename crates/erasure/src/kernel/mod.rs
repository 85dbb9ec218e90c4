//! Sums of products over whole symbols: the only hot loop of this crate, once for each kind of CPU.
//!
//! In: coefficient rows and source bytes.  Out: for each row the sum of coefficient times source, byte by byte.
//!
//! `scalar.rs` is the twin that the others must equal byte for byte. The others differ only in how a vector is
//! multiplied, and share the loop in `lanes.rs`.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod gfni;
#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_feature = "neon"),
    all(target_arch = "wasm32", target_feature = "simd128")
))]
mod lanes;
#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
mod neon;
#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_feature = "neon"),
    all(target_arch = "wasm32", target_feature = "simd128")
))]
mod nibbles;
mod scalar;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128;
#[cfg(target_arch = "x86_64")]
mod ssse3;
#[cfg(test)]
mod tests;

use core::sync::atomic::{AtomicU8, Ordering};

use crate::matrix::Row;

/// How many rows one pass over the sources can serve: their sums stay in registers.
pub(crate) const ROWS_MAX: usize = 4;

/// A code path that this CPU has. There is no other way to get one than to ask the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kernel(Path);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Path {
    Scalar = 1,
    #[cfg(target_arch = "x86_64")]
    Ssse3,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Gfni256,
    #[cfg(target_arch = "x86_64")]
    Gfni512,
    #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
    Neon,
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    Simd128,
}

/// All paths of this architecture, the best first.
const PATHS: &[Path] = &[
    #[cfg(target_arch = "x86_64")]
    Path::Gfni512,
    #[cfg(target_arch = "x86_64")]
    Path::Gfni256,
    #[cfg(target_arch = "x86_64")]
    Path::Avx2,
    #[cfg(target_arch = "x86_64")]
    Path::Ssse3,
    #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
    Path::Neon,
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    Path::Simd128,
    Path::Scalar,
];

/// The path chosen, as its number; 0 while nobody has asked. Threads that race here choose the same.
static CHOSEN: AtomicU8 = AtomicU8::new(0);

/// What a sum starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// Zero: what the output held is overwritten.
    Zero,
    /// What the output holds.
    Output,
}

/// One pass over the sources: `outs[r] = start + sum over j of rows[r][j] * sources[j][from..]`.
///
/// [`Kernel::run`] checks the shape; the kernels rely on it.
pub(crate) struct Pass<'a, 'o> {
    /// One for each output, 1 to [`ROWS_MAX`] of them.
    pub(crate) rows: &'a [&'a Row],
    /// At most 64; each reaches at least to `from` plus the length of an output.
    pub(crate) sources: &'a [&'a [u8]],
    /// Where in each source the first byte of an output belongs.
    pub(crate) from: usize,
    /// As many as rows, of equal length.
    pub(crate) outs: &'a mut [&'o mut [u8]],
    /// What the sums start from.
    pub(crate) start: Start,
}

impl Kernel {
    /// The best path that this CPU has.
    pub(crate) fn get() -> Self {
        let chosen = CHOSEN.load(Ordering::Relaxed);
        if let Some(&path) = PATHS.iter().find(|&&path| path as u8 == chosen) {
            return Self(path);
        }
        // `Scalar` is in the list and always there.
        let best = Self::available().next().unwrap_or(Self(Path::Scalar));
        CHOSEN.store(best.0 as u8, Ordering::Relaxed);
        best
    }

    /// All paths that this CPU has, the best first.
    pub(crate) fn available() -> impl Iterator<Item = Self> {
        PATHS
            .iter()
            .copied()
            .filter(|path| path.is_available())
            .map(Self)
    }

    /// As in [`crate::kernel_name`].
    pub(crate) const fn name(self) -> &'static str {
        match self.0 {
            Path::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Path::Ssse3 => "ssse3",
            #[cfg(target_arch = "x86_64")]
            Path::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Path::Gfni256 => "gfni256",
            #[cfg(target_arch = "x86_64")]
            Path::Gfni512 => "gfni512",
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Path::Neon => "neon",
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Path::Simd128 => "simd128",
        }
    }

    /// Does the work of `pass`.
    pub(crate) fn run(self, pass: &mut Pass<'_, '_>) {
        pass.check();
        match self.0 {
            Path::Scalar => scalar::run(pass),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a `Kernel` exists only of a path whose CPU features were found, and the shape was just checked.
            Path::Ssse3 => unsafe { ssse3::run(pass) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Path::Avx2 => unsafe { avx2::run(pass) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Path::Gfni256 => unsafe { gfni::run_256(pass) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Path::Gfni512 => unsafe { gfni::run_512(pass) },
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            // SAFETY: as above.
            Path::Neon => unsafe { neon::run(pass) },
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            // SAFETY: as above.
            Path::Simd128 => unsafe { simd128::run(pass) },
        }
    }
}

impl Pass<'_, '_> {
    /// Panics when the shape is not as the fields promise, which is a mistake inside this crate.
    fn check(&self) {
        let length = self.outs.first().map_or(0, |out| out.len());
        assert!(self.rows.len() == self.outs.len(), "a row for each output");
        assert!(
            (1..=ROWS_MAX).contains(&self.rows.len()),
            "rows fit into registers"
        );
        assert!(
            self.outs.iter().all(|out| out.len() == length),
            "outputs of equal length"
        );
        assert!(
            self.sources.len() <= self.rows[0].len(),
            "a coefficient for each source"
        );
        let end = self.from + length;
        assert!(
            self.sources.iter().all(|source| source.len() >= end),
            "sources reach to the end"
        );
    }
}

/// True when the CPU has all these features, by asking it or because the compiler was told so.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
macro_rules! has {
    ($($feature:tt),+) => {
        $(std::arch::is_x86_feature_detected!($feature))&&+
    };
}

/// True when the compiler was told that the CPU has all these features: without `std` it cannot be asked.
#[cfg(all(target_arch = "x86_64", not(feature = "std")))]
macro_rules! has {
    ($($feature:tt),+) => {
        cfg!(all($(target_feature = $feature),+))
    };
}

impl Path {
    /// Whether the CPU has every feature that the path's functions are compiled with.
    fn is_available(self) -> bool {
        match self {
            Self::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Self::Ssse3 => has!("ssse3"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => has!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Gfni256 => has!("gfni", "avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Gfni512 => has!("gfni", "avx512f", "avx512bw"),
            // These two are compiled in only where the whole program may use them.
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Self::Neon => true,
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Self::Simd128 => true,
        }
    }
}
