"""Swift's proxy, which reads around drives that clean, are slow or fail, and soon goes back to those that no longer do. Writes go where
the ring says."""

from swift.common.memcached import load_memcache
from swift.proxy import server

from zonestore_swift.news import News, ordered, serves_since


class Application(server.Application):
    def __init__(self, conf, *args, memcache=None, **kwargs):
        super().__init__(conf, *args, **kwargs)
        self.news = News(memcache or load_memcache(conf, self.logger))

    def sort_nodes(self, nodes, policy=None):
        # Swift sorts in place and answers the same list.
        nodes[:] = ordered(super().sort_nodes(nodes, policy), self.news.of(nodes), self.news.clock())
        return nodes

    def error_limited(self, node):
        """Swift leaves a drive out for a minute after its errors. One that has come back would be missing when the next one fails, so it is
        asked again as soon as it tells that it serves; if that fails, not before it tells so once more."""
        if not super().error_limited(node):
            return False
        errors = self.error_limiter.stats.get(self.error_limiter.node_key(node), {})
        return not serves_since(node, self.news.known, errors.get("last_error", 0), self.news.clock())


def app_factory(global_conf, **local_conf):
    """For paste: `use = egg:zonestore-swift#proxy` in [app:proxy-server], with the options of Swift's."""
    conf = {**global_conf, **local_conf}
    conf["policy_config"] = server.parse_per_policy_config(conf)
    app = Application(conf)
    app.check_config()
    return app
