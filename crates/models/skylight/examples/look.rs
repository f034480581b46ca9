//! Examines the drives of profiles: `cargo run --release -p skylight --example look st5000as0011`

#![allow(clippy::expect_used)]

fn main() {
    for name in std::env::args().skip(1) {
        let profile = drive_model::Profile::named(&name).expect("a profile");
        let mut model = skylight::Model::new(profile, 1).expect("a drive");
        let began = std::time::Instant::now();
        let options = skylight::Options {
            quick: false,
            seed: 7,
        };
        let (findings, _, result) = skylight::examine(&mut model, options, &mut |what| {
            eprintln!("{:8.1?} {what}", began.elapsed());
        });
        println!("{name}: {result:?} in {:?}: {findings:#?}", began.elapsed());
    }
}
