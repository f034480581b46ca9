//! Wraps text to the width of the terminal.

/// Width of the terminal in columns; `None` below 20, or without a terminal.
pub fn columns() -> Option<usize> {
    let (columns, _) = ratatui::crossterm::terminal::size().ok()?;
    (columns >= 20).then_some(columns.into())
}

/// Wraps `text` to lines of at most `columns`, as far as words allow. Continuation lines of a list or table are
/// indented to the text that they continue.
pub fn wrapped(text: &str, columns: usize) -> String {
    let lines = text.split('\n').map(|line| wrapped_line(line, columns));
    lines.collect::<Vec<_>>().join("\n")
}

fn wrapped_line(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let start = text.len() - text.trim_start().len();
    // Start of the last column of a table, if that leaves room for its text.
    let last_column = text.trim_end().rmatch_indices("  ").next();
    let last_column = last_column.map(|(at, _)| text[..at + 2].chars().count());
    let indent = match last_column {
        Some(column) if column > start && column * 2 <= columns => column,
        _ if text.trim_start().starts_with("- ") => start + 2,
        _ => start,
    };
    let (front, rest) = text.split_at(text.char_indices().nth(indent).map_or(0, |(at, _)| at));
    let mut done = front.to_owned();
    let mut column = indent;
    for (number, word) in rest.split(' ').enumerate() {
        let length = word.chars().count();
        if number > 0 && column + 1 + length > columns && column > indent {
            done.push('\n');
            done.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else if number > 0 {
            done.push(' ');
            column += 1;
        }
        done += word;
        column += length;
    }
    done
}

/// Joins the lines of each paragraph. Indented lines and columns stay as they are.
pub fn joined(text: &str) -> String {
    let mut done = String::new();
    let mut goes_on = false;
    for line in text.lines() {
        let is_prose = !line.is_empty() && !line.starts_with(' ') && !line.contains("  ");
        if !done.is_empty() {
            done.push(if goes_on && is_prose { ' ' } else { '\n' });
        }
        done += line;
        goes_on = is_prose && !line.ends_with(':');
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_joined_and_tables_are_not() {
        assert_eq!(joined("a\nb\n\nc"), "a b\n\nc");
        let kept = "Examples:\n  one\n  two\n\n 12  out\n130  ended";
        assert_eq!(joined(kept), kept);
    }

    #[test]
    fn long_lines_are_broken_between_words() {
        assert_eq!(wrapped("as it is", 20), "as it is");
        assert_eq!(
            wrapped("- one two three four", 10),
            "- one two\n  three\n  four"
        );
        assert_eq!(
            wrapped("name  one two three", 12),
            "name  one\n      two\n      three"
        );
        assert_eq!(
            wrapped("  a  b two three four", 10),
            "  a  b two\n     three\n     four"
        );
        assert_eq!(
            wrapped("  a  b two three four", 9),
            "  a  b\n  two\n  three\n  four"
        );
        // A word that does not fit stays whole, and a last column without room begins again in front.
        assert_eq!(
            wrapped("a /path/without/a/gap b", 8),
            "a\n/path/without/a/gap\nb"
        );
        assert_eq!(
            wrapped("naïve: größer\nals das", 8),
            "naïve:\ngrößer\nals das"
        );
        for columns in 1..40 {
            let text = "  one  two three: four, fïve; six  seven eight nine";
            let words = |text: &str| {
                text.split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            assert_eq!(words(&wrapped(text, columns)), words(text), "{columns}");
        }
    }
}
