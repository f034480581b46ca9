//! A row of what is said of a drive.

/// A property of the drive, what it is, and how sure that is, if it was a matter of deciding.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// As table 2.3 calls it.
    pub property: &'static str,
    /// What was found.
    pub value: String,
    /// 0 to 1.
    pub confidence: Option<f64>,
}

impl Row {
    /// What is known without deciding.
    pub const fn known(property: &'static str, value: String) -> Self {
        Self {
            property,
            value,
            confidence: None,
        }
    }

    /// For people: the property, how sure it is, and what it is.
    pub fn cells(&self) -> Vec<String> {
        let sure = self.confidence.map(|c| format!("{:.0} %", c * 100.0));
        vec![
            self.property.to_owned(),
            sure.unwrap_or_default(),
            self.value.clone(),
        ]
    }
}
