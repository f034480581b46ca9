"""Swift's proxy, which reads around drives that clean, are slow or fail, and soon goes back to those that were away. Writes go where
the ring says."""

from swift.common.memcached import load_memcache
from swift.proxy import server

from zonestore_swift.news import News, ordered


class Application(server.Application):
    def __init__(self, conf, *args, memcache=None, **kwargs):
        super().__init__(conf, *args, **kwargs)
        self.news = News(memcache or load_memcache(conf, self.logger))

    def sort_nodes(self, nodes, policy=None):
        # Swift sorts in place and answers the same list.
        nodes[:] = ordered(super().sort_nodes(nodes, policy), self.news.of(nodes), self.news.clock())
        return nodes

    def error_limited(self, node):
        """Swift leaves a drive out for a minute after its errors. One that was away would be missing when the next one fails, so it is asked
        again as soon as it has come back. One that its news never missed is full, or its object server hangs: it stays out."""
        if not super().error_limited(node):
            return False
        errors = self.error_limiter.stats.get(self.error_limiter.node_key(node), {})
        return not self.news.has_returned(node, errors.get("last_error", 0))


def app_factory(global_conf, **local_conf):
    """For paste: `use = egg:zonestore-swift#proxy` in [app:proxy-server], with the options of Swift's."""
    conf = {**global_conf, **local_conf}
    conf["policy_config"] = server.parse_per_policy_config(conf)
    app = Application(conf)
    app.check_config()
    return app
