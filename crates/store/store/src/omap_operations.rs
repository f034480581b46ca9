//! Operations of a transaction on omaps.

use crate::Result;
use crate::operations::Work;
use crate::step::{OmapStep, Target};

impl Work<'_> {
    pub(crate) fn change_omap(&mut self, target: &Target, step: OmapStep) -> Result<()> {
        let (key, mut onode) = self.existing(target)?;
        match step {
            OmapStep::Set(rows) => {
                let number = match onode.omap {
                    Some(number) => number,
                    None => *onode.omap.insert(self.inner.take_number()?),
                };
                let rows = rows.into_iter();
                let rows = rows.map(|(name, value)| ((number, name), Some(value)));
                self.staging.omaps.extend(rows);
            }
            OmapStep::Remove(keys) => {
                let Some(number) = onode.omap else {
                    return Ok(());
                };
                let keys = keys.into_iter().map(|name| ((number, name), None));
                self.staging.omaps.extend(keys);
            }
            OmapStep::RemoveRange(from, to) => {
                let Some(number) = onode.omap else {
                    return Ok(());
                };
                self.staging.remove_range(number, &from, &to)?;
            }
            OmapStep::Clear => self.drop_omap(onode.omap.take()),
        }
        onode.modified_micros = self.now;
        self.staging.set_onode(key, Some(onode));
        Ok(())
    }

    /// Copies the rows of an omap, if any, to a new one; returns its number.
    pub(crate) fn copy_omap(&mut self, from: Option<u64>) -> Result<Option<u64>> {
        let Some(from) = from else { return Ok(None) };
        let to = self.inner.take_number()?;
        self.staging.copy_omap(from, to)?;
        Ok(Some(to))
    }

    /// Dooms an omap: its rows are purged later.
    pub(crate) fn drop_omap(&mut self, number: Option<u64>) {
        self.staging.doomed.extend(number);
    }
}
