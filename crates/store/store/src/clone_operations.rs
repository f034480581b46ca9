//! Operations of a transaction that clone objects, or ranges of them, without copying data.

use crate::format::onode::Onode;
use crate::operations::{Work, met_in};
use crate::step::Target;
use crate::{Error, Result};
use std::ops::Range;

impl Work<'_> {
    pub(crate) fn clone_range(
        &mut self,
        from: &Target,
        range: Range<u64>,
        to: &Target,
        at: u64,
    ) -> Result<()> {
        let (_, source) = self.existing(from)?;
        let size = source.size();
        if range.end > size || range.start > range.end {
            return Err(Error::Invalid {
                what: "the end of the range that is cloned",
                found: range.end,
                allowed: size,
            });
        }
        let mut clip = Vec::new();
        for span in object::spans(&source.segments, range.start, range.end) {
            let extents = self.staging.rows.copy(span.map, span.from, span.to);
            clip.extend(extents.map_err(met_in(from))?);
        }
        let (key, mut onode) = self.existing_or_new(to)?;
        onode.modified_micros = self.now;
        if let Some(span) = self.make_way(to, &mut onode, at, range.end - range.start)? {
            self.staging.rows.paste(span.map, span.from, clip)?;
        }
        self.staging.set_onode(key, Some(onode));
        Ok(())
    }

    /// Clones a whole object, with its attributes and omap.
    pub(crate) fn clone(&mut self, from: &Target, to: &Target) -> Result<()> {
        let (key, source) = self.existing(from)?;
        if key == self.key(to)? {
            return Ok(());
        }
        let attributes = source.attributes.clone();
        let empty = Onode {
            attributes,
            omap: self.copy_omap(source.omap)?,
            ..Onode::default()
        };
        self.replace(to, empty)?;
        self.clone_range(from, 0..source.size(), to, 0)
    }
}
