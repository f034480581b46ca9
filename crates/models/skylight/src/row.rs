//! A row of the report.

/// A property of the drive with its value and, if the value was inferred, its confidence.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Name of the property, as in table 2.3.
    pub property: &'static str,
    /// The value.
    pub value: String,
    /// Confidence of the value, from 0 to 1.
    pub confidence: Option<f64>,
}

impl Row {
    /// A row whose value is known without inference.
    pub const fn known(property: &'static str, value: String) -> Self {
        Self {
            property,
            value,
            confidence: None,
        }
    }

    /// The cells for people: property, confidence and value.
    pub fn cells(&self) -> Vec<String> {
        let sure = self.confidence.map(|c| format!("{:.0} %", c * 100.0));
        vec![
            self.property.to_owned(),
            sure.unwrap_or_default(),
            self.value.clone(),
        ]
    }
}
