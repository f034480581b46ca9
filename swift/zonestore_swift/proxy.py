"""Swift's proxy, which reads around drives that clean, are slow or fail. Writes go where the ring says."""

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


def app_factory(global_conf, **local_conf):
    """For paste: `use = egg:zonestore-swift#proxy` in [app:proxy-server], with the options of Swift's."""
    conf = {**global_conf, **local_conf}
    conf["policy_config"] = server.parse_per_policy_config(conf)
    app = Application(conf)
    app.check_config()
    return app
