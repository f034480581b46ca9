"""Swift's object server, which has drive daemons take the bodies of PUTs from its clients' sockets."""

from swift.obj import server

from zonestore_swift.writer import ZonedWriter


class ObjectController(server.ObjectController):
    def _stage_obj_data(self, request, device, obj_input, writer, fsize):
        # What Swift has wrapped (the parts of a fragment's body) is read here.
        if isinstance(writer, ZonedWriter) and obj_input is request.environ["wsgi.input"]:
            obj_input = writer.handed(obj_input)
        return super()._stage_obj_data(request, device, obj_input, writer, fsize)


def app_factory(global_conf, **local_conf):
    """For paste: `use = egg:zonestore-swift#object` in [app:object-server], with the options of Swift's."""
    return ObjectController({**global_conf, **local_conf})
