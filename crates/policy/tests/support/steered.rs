//! The steered policy with all its tables, and draws.

use punctual_policy::Steered;

/// xorshift64*: one draw after the other from a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn unit(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

pub(crate) fn steered(miss_target: f32) -> Steered {
    let steered = Steered::new(miss_target).expect("in range");
    steered.build_all();
    steered
}
