//! Lifecycle rules that no client can make.
#![allow(clippy::unwrap_used)]

use super::*;

const RULES: &str = "<LifecycleConfiguration><Rule><Prefix/><Status>Enabled</Status>\
                     <Expiration><Date>2020-01-01T00:00:00Z</Date></Expiration></Rule></LifecycleConfiguration>";

#[tokio::test(flavor = "multi_thread")]
async fn rules_that_cannot_be_read_stop_no_other_bucket_s() {
    let drive = drive(128 << 20);
    let store = mount(&drive, true);
    let server = serve(&store, config());
    for bucket in ["/broken", "/other"] {
        assert_eq!(server.put(bucket, b"").await.status, 200);
        let object = format!("{bucket}/k");
        assert_eq!(server.put(&object, b"bytes").await.status, 200);
    }
    let mut attributes = store.collection("broken").unwrap().unwrap().attributes;
    attributes.insert("lifecycle".to_owned(), RULES.as_bytes()[..50].to_vec());
    let mut transaction = Transaction::new();
    transaction.set_collection_attributes("broken", attributes);
    store.commit(transaction).unwrap();
    let rules = server.request("PUT", "/other", "lifecycle=", RULES.as_bytes());
    assert_eq!(rules.await.status, 200);
    let is_gone = async {
        while server.get("/other/k").await.status != 404 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let gone = tokio::time::timeout(Duration::from_mins(10), is_gone).await;
    assert!(gone.is_ok());
    assert_eq!(server.get("/broken/k").await.status, 200);
    let rules = server.request("GET", "/broken", "lifecycle=", b"").await;
    assert_eq!((rules.status, &*rules.code()), (500, "InternalError"));
    server.stop().await;
}
