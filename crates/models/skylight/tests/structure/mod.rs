//! What tests 13 and 14 find below the blocks: surfaces, strokes, direction, torn writes.

mod surfaces;
mod torn_writes;

use crate::drives::judge::Record;
use crate::drives::{between, number, serpentine_middle};
use drive_model::mechanics::Stroke;
use drive_model::{BLOCK_BYTES, Profile, Request, Span, Time};
use skylight::finding::{DriveType, Finding, Shingling};
use skylight::place::turn;
use skylight::report::rows;
use skylight::target::Answer;
use skylight::test::t13_torn_writes;
use skylight::test::t14_zone_structure::{self, Found};
use skylight::{Findings, Model, Random, Target, TargetError};
use std::ops::ControlFlow;
