//! An example configuration with every field, all commented out.

use super::sections::{SECTIONS, Section};

/// Every section and field with its meaning and an example, all of it in comments.
pub fn example() -> String {
    let mut text = "# Configuration of `zonestore serve --config FILE`. What is not said has its default.\n\
                    # `zonestore config check FILE` says whether it is sound, and what would be used.\n"
        .to_owned();
    // The example of the key shows its rights.
    for section in SECTIONS
        .iter()
        .filter(|section| section.path != "key.rights")
    {
        text += &format!("\n# {}\n#{}\n", section.what, header(section));
        for field in section.fields {
            text += &format!(
                "# {} ({}; default: {})\n",
                field.what, field.kind, field.default
            );
            text += &format!("#{} = {}\n", field.name, field.example);
        }
    }
    text
}

fn header(section: &Section) -> String {
    match section.path {
        "key" => "[[key]]".to_owned(),
        path => format!("[{path}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{parse, sections::File};
    use super::*;

    #[test]
    fn the_example_says_nothing_and_could_say_everything() {
        assert_eq!(parse(&example()), Ok(File::default()));
        let said: String = example()
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(said) if !said.starts_with(' ') => format!("{said}\n"),
                _ => format!("{line}\n"),
            })
            .collect();
        let file = parse(&said).unwrap();
        let [key] = &file.key[..] else {
            panic!("{said}")
        };
        let shown = [
            file.serve.shown(),
            file.drive.shown(),
            file.tls.shown(),
            file.log.shown(),
            file.trace.shown(),
            file.limits.key.shown(),
            file.limits.address.shown(),
            key.shown(),
        ];
        for (name, value) in shown.into_iter().flatten() {
            assert!(value.is_some(), "{name} has an example");
        }
    }

    /// `docs/configuration.md` has each section's table as it is made here.
    #[test]
    fn the_documentation_has_every_field() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../docs/configuration.md"
        );
        let document = std::fs::read_to_string(path).unwrap();
        for section in SECTIONS {
            let mut table = format!(
                "{}\n\n| field | type | default | example | |\n|---|---|---|---|---|\n",
                section.what
            );
            for field in section.fields {
                table += &format!(
                    "| `{}` | {} | {} | `{}` | {} |\n",
                    field.name, field.kind, field.default, field.example, field.what
                );
            }
            assert!(
                document.contains(&table),
                "{path} has to have under {}:\n{table}",
                section.path
            );
        }
    }
}
