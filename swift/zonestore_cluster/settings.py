"""What Swift's configuration files say."""

from swift.common.storage_policy import ECStoragePolicy
from swift.common.utils import quorum_size

PORTS = {"object": 6200, "container": 6201, "account": 6202, "proxy": 8080, "memcached": 11211, "rsync": 873}
USERS = {"admin:admin": ("admin", ".admin .reseller_admin"), "test:tester": ("testing", ".admin"),
         "test:tester2": ("testing2", ".admin"), "test:tester3": ("testing3", ""),
         "test2:tester2": ("testing2", ".admin"), "test5:tester5": ("testing5", ".admin")}

PIPELINE = ("catch_errors gatekeeper healthcheck proxy-logging cache etag-quoter listing_formats container_sync bulk tempurl formpost"
            " ratelimit crossdomain s3api tempauth staticweb copy container-quotas account-quotas slo dlo versioned_writes symlink"
            " proxy-logging proxy-server")
PLAIN_FILTERS = ("catch_errors gatekeeper healthcheck listing_formats bulk tempurl formpost ratelimit crossdomain container_sync staticweb copy"
                 " dlo symlink").split()
FILTERS = """
[filter:proxy-logging]
use = egg:swift#proxy_logging
[filter:cache]
use = egg:swift#memcache
memcache_servers = {memcached}
[filter:etag-quoter]
use = egg:swift#etag_quoter
enable_by_default = false
[filter:s3api]
use = egg:swift#s3api
s3_acl = yes
# What was made by Swift's own interface has no owner for S3.
allow_no_owner = yes
check_bucket_owner = yes
# As many as S3 knows.
max_upload_part_num = 10000
[filter:slo]
use = egg:swift#slo
max_manifest_segments = 10000
[filter:container-quotas]
use = egg:swift#container_quotas
[filter:account-quotas]
use = egg:swift#account_quotas
[filter:versioned_writes]
use = egg:swift#versioned_writes
allow_versioned_writes = true
allow_object_versioning = true
[filter:tempauth]
use = egg:swift#tempauth
{users}
[app:proxy-server]
use = {app}
memcache_servers = {memcached}
memcache_max_connections = 2
allow_account_management = true
account_autocreate = true
allow_open_expired = true
"""
BACKGROUND = {
    "object": {
        "object-replicator": "sync_method = ssync\ninterval = {interval}\nconcurrency = 2\nreplicator_workers = {workers}\nhandoff_delete = auto\nrsync_module = {{replication_ip}}::object",
        "object-reconstructor": "interval = {interval}\nreconstructor_workers = {workers}",
        "object-updater": "interval = {interval}",
        "object-auditor": "interval = {interval}\nconcurrency = 1\nzero_byte_files_per_second = 0",
        # What is to expire is in no other queue yet: without the word, nothing is looked for.
        "object-expirer": "interval = {interval}\ndequeue_from_legacy = true",
        "object-relinker": "",
    },
    "container": {"container-replicator": "interval = {interval}", "container-updater": "interval = {interval}",
                  "container-auditor": "interval = 1800", "container-sync": "interval = {interval}"},
    "account": {"account-replicator": "interval = {interval}", "account-auditor": "interval = 1800", "account-reaper": "interval = 3600"},
}


def swift_conf(policies):
    text = "[swift-hash]\nswift_hash_path_prefix = zonestore\nswift_hash_path_suffix = cluster\n"
    for number, policy in enumerate(policies):
        lines = "\n".join(f"{key} = {value}" for key, value in policy.items())
        text += f"\n[storage-policy:{number}]\n{lines}\n"
    return text


# Drives that erasure coding takes.
LEAST_CODED = 3


def policies(devices, default="zoned"):
    """Those of a cluster of so many drives, as in swift.conf. Erasure coding takes as many drives as there are, up to six."""
    found = [{"name": "zoned", "diskfile_module": "egg:zonestore-swift#replication.zoned"}]
    if devices >= LEAST_CODED:
        parity = 2 if devices >= 6 else 1
        found.append({
            "name": "zoned-ec", "policy_type": "erasure_coding", "ec_type": "liberasurecode_rs_vand",
            "ec_num_data_fragments": min(devices, 6) - parity, "ec_num_parity_fragments": parity,
            "diskfile_module": "egg:zonestore-swift#erasure_coding.zoned"})
    found.append({"name": "files"})
    for policy in found:
        if policy["name"] == default:
            policy["default"] = "yes"
    return found


def replicas(policy, devices):
    if policy.get("policy_type") == "erasure_coding":
        return policy["ec_num_data_fragments"] + policy["ec_num_parity_fragments"]
    return min(3, devices)


def drives_to_lose(policy, devices):
    """How many drives may be lost, whichever, so that each write still finds the drives that the proxy wants for it."""
    copies = replicas(policy, devices)
    if policy.get("policy_type") == "erasure_coding":
        wanted = ECStoragePolicy(
            1, policy["name"], ec_type=policy["ec_type"], ec_ndata=policy["ec_num_data_fragments"],
            ec_nparity=policy["ec_num_parity_fragments"]).quorum
    else:
        wanted = quorum_size(copies)
    # The proxy asks homes, and as many handoffs (request_node_count).
    return min(devices, 2 * copies) - wanted


def _default(ip, port, folder, workers):
    return (f"[DEFAULT]\nbind_ip = {ip}\nbind_port = {port}\nworkers = {workers}\nuser = root\nlog_level = INFO\n"
            f"recon_cache_path = {folder}/cache\nmount_check = false\nfallocate_reserve = 0\n")


def server_conf(kind, ip, folder, interval, workers, memcached, port=None, socket="{device}.sock", extra=""):
    """Of an object, container or account server, and of what works behind it. `extra`: lines for all of them."""
    text = _default(ip, port or PORTS[kind], folder, workers) + f"devices = {folder}/devices\nring_ip = {ip}\n{extra}"
    if kind == "object":
        text += f"zonestore_socket = {folder}/{socket}\n"
        if workers:
            text += f"servers_per_port = {workers}\n"
    package = "zonestore-swift" if kind == "object" else "swift"
    text += f"\n[pipeline:main]\npipeline = {kind}-server\n[app:{kind}-server]\nuse = egg:{package}#{kind}\n"
    for section, lines in BACKGROUND[kind].items():
        text += f"[{section}]\n{lines.format(interval=interval, workers=workers)}\n"
    if kind == "object":
        text += f"[zonestore-reporter]\nmemcache_servers = {memcached}\nmemcache_max_connections = 2\n"
    return text


def internal_client_conf(memcached):
    return ("[DEFAULT]\n[pipeline:main]\npipeline = catch_errors proxy-logging cache symlink proxy-server\n"
            "[app:proxy-server]\nuse = egg:swift#proxy\naccount_autocreate = true\n"
            f"[filter:cache]\nuse = egg:swift#memcache\nmemcache_servers = {memcached}\n"
            "[filter:proxy-logging]\nuse = egg:swift#proxy_logging\n[filter:catch_errors]\nuse = egg:swift#catch_errors\n"
            "[filter:symlink]\nuse = egg:swift#symlink\n")


def proxy_conf(ip, folder, memcached, workers, port=PORTS["proxy"], app="egg:zonestore-swift#proxy"):
    users = "\n".join(f"user_{user.replace(':', '_')} = {key} {groups}".rstrip() for user, (key, groups) in USERS.items())
    filters = "".join(f"[filter:{name}]\nuse = egg:swift#{name}\n" for name in PLAIN_FILTERS)
    return (_default(ip, port, folder, workers) + f"\n[pipeline:main]\npipeline = {PIPELINE}\n" + filters
            + FILTERS.format(memcached=memcached, users=users, app=app))


def realms_conf(ip, key):
    """For container sync between containers of this cluster: the node's own proxy."""
    return f"[cluster]\nkey = {key}\ncluster_here = http://{ip}:{PORTS['proxy']}/v1/\n"


def rsync_conf(ip, folder):
    text = (f"uid = root\ngid = root\nuse chroot = no\nport = {PORTS['rsync']}\naddress = {ip}\nlog file = {folder}/log/rsync.log\n"
            f"pid file = {folder}/rsync.pid\n")
    for kind in ("account", "container", "object"):
        text += (f"[{kind}]\nmax connections = 20\npath = {folder}/devices\nread only = no\nlock file = {folder}/{kind}.lock\n")
    return text


def test_conf(ip, port=PORTS["proxy"]):
    """For Swift's own functional tests."""
    lines = ["[func_test]", f"auth_uri = http://{ip}:{port}/auth/v1.0", "s3_access_key = test:tester", "s3_secret_key = testing"]
    for number, user in (("", "test:tester"), ("2", "test2:tester2"), ("3", "test:tester3"), ("5", "test5:tester5")):
        account, name = user.split(":")
        lines += [f"account{number} = {account}"] if number != "3" else []
        lines += [f"username{number} = {name}", f"password{number} = {USERS[user][0]}"]
    lines += ["s3_access_key2 = test:tester2", "s3_secret_key2 = testing2", "s3_access_key3 = test:tester3", "s3_secret_key3 = testing3"]
    lines += ["[s3api_test]", f"endpoint = http://{ip}:{port}", "region = us-east-1"]
    for number, user in ((1, "test:tester"), (2, "test:tester2"), (3, "test:tester3")):
        lines += [f"access_key{number} = {user}", f"secret_key{number} = {USERS[user][0]}"]
    return "\n".join(lines) + "\n"
