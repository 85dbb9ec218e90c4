use std::time::{Duration, Instant};
use punctual_lab::channel::*;
use punctual_lab::simulate::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let n: u64 = a[1].parse().unwrap();
    let split = if a[2] == "forward" { RttSplit::FORWARD } else { RttSplit::EVEN };
    let deadline: u64 = a[3].parse().unwrap();
    let mut path = PathSpec::fixed("x", Duration::from_millis(250), split);
    path.forward = std::sync::Arc::new((*path.forward).clone().with_loss(LossModel::Uniform(0.02)));
    let mut o = SimulateOptions::new(path, Duration::from_millis(deadline));
    o.messages = n;
    o.symbols = Some(4);
    if let Some(s) = a.get(5) { o.seed = s.parse().unwrap(); }
    o.policies = a[4].split(',').map(|p| p.parse().unwrap()).collect();
    let t = Instant::now();
    let r = simulate(&o, |_| {}).unwrap();
    let e = t.elapsed().as_secs_f64();
    for r in r { println!("{}", serde_json::to_string(&r.summary).unwrap()); }
    println!("{:.2}s {:.0} msg/s", e, n as f64 * o.policies.len() as f64 / e);
}
