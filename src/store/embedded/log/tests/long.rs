//! Long histories of calls, failures, kills and losses of power, each drawn from a seed.

use super::history::{Effort, Play, Step, survives_power_loss};
use super::sim::Random;
use crate::store::embedded::settings::Durability;

/// The variable with the one seed to play.
const SEED: &str = "ONCEWARD_LOG_SEED";

/// The steps, each as often as it is drawn.
const STEPS: [Step; 24] = {
    use Step::{Append, Close, Forget, Keep, Kill, LosePower, Mark, RemoveOld, Seal, Sync};
    [
        Append(10),
        Append(300),
        Append(900),
        Append(900),
        Append(1500),
        Append(1500),
        Append(1500),
        Append(2500),
        Append(6000),
        Append(50),
        Append(50),
        Append(50),
        Seal,
        Sync,
        Mark,
        Mark,
        RemoveOld,
        RemoveOld,
        Keep,
        Kill,
        LosePower,
        LosePower,
        Close,
        Forget,
    ]
};

fn plays(seed: u64) {
    let mut random = Random::new(seed);
    let durability = [Durability::Sync, Durability::Os][random.below(2)];
    let mut play = Play::new(durability, seed);
    for _ in 0..random.below(5) {
        // Faults come and go.
        let share = [0, 0, 20, 100, 300][random.below(5)];
        play.disk.fail_often(seed, share);
        for _ in 0..random.below(30) {
            play.run(&[STEPS[random.below(STEPS.len())]]);
        }
        play.disk.fail_often(seed, 0);
    }
    survives_power_loss(&play, Effort { all: 4, each: false, drawn: 2 }, seed);
}

/// Plays these seeds, or the one that the environment names.
fn plays_all(seeds: std::ops::Range<u64>) {
    if let Ok(seed) = std::env::var(SEED) {
        return plays(seed.parse().unwrap());
    }
    for seed in seeds {
        let played = std::panic::catch_unwind(|| plays(seed));
        assert!(played.is_ok(), "play it again with {SEED}={seed}");
    }
}

#[test]
fn some_long_histories() {
    plays_all(0..300);
}

#[test]
#[ignore = "it takes minutes"]
fn long_histories() {
    plays_all(0..10_000);
}
