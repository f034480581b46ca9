//! Bodies that stand still, and hold what others wait for.

use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// How long a body may stand still while all places are taken. Swift's proxy waits 10 seconds for a PUT to begin, and asks a
/// drive that kept it waiting no more for a while.
const CROWDED: Duration = Duration::from_secs(5);

/// What comes of `moving`, a body of those that have `places`; `None` if it stands still while all of these are taken.
pub async fn unless_crowded<T>(places: &Semaphore, moving: impl Future<Output = T>) -> Option<T> {
    tokio::pin!(moving);
    loop {
        match timeout(CROWDED, &mut moving).await {
            Ok(done) => return Some(done),
            Err(_) if places.available_permits() == 0 => return None,
            Err(_) => {}
        }
    }
}
