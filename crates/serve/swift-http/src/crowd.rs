//! Bodies that stand still, and hold what others wait for.

use std::time::Duration;
use tokio::time::timeout;

/// How long a body may stand still while all places are taken. Swift's proxy waits 10 seconds for a PUT to begin, and asks a
/// drive that kept it waiting no more for a while.
const CROWDED: Duration = Duration::from_secs(5);

/// What comes of `moving`, the next of a body that has a place; `None` if it stands still while `are_taken` says so of all.
pub async fn unless_crowded<T>(
    are_taken: impl Fn() -> bool,
    moving: impl Future<Output = T>,
) -> Option<T> {
    tokio::pin!(moving);
    loop {
        match timeout(CROWDED, &mut moving).await {
            Ok(done) => return Some(done),
            Err(_) if are_taken() => return None,
            Err(_) => {}
        }
    }
}
